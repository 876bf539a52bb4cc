/* A Bayesian network for classification:
 * any number of hidden layers, free or constrained weights and biases, with or without fixed skip matrices. The same density
 * as models/bayesian_network.py. One program serves every such network, so that it is compiled once; parts that a network
 * lacks have size zero.
 */
functions {
#include functions/charts.stanfunctions
#include functions/packing.stanfunctions
#include functions/forward.stanfunctions
}
data {
#include functions/network_data.stanfunctions
  array[num_obs] int<lower=1, upper=width[num_hidden_layers + 2]> label;
}
transformed data {
  matrix[num_obs, width[1] + has_biases] x_with_ones = with_ones(x, has_biases);
  vector[count_weights(width, sum_readout)] weight_sd = per_weight(weight_scale, width, sum_readout);
  vector[count_biases(width, has_biases, sum_readout)] bias_sd
      = per_bias(bias_scale, width, has_biases, sum_readout);
}
parameters {
  vector[count_raw_weights(width, weight_chart, sum_readout)] weights_raw;
  vector[count_biases(width, has_biases, sum_readout)] biases_raw;
}
transformed parameters {
  vector[count_weights(width, sum_readout)] weights
      = constrain_weights_jacobian(weights_raw, width, weight_chart, sum_readout);
  vector[count_biases(width, has_biases, sum_readout)] biases
      = constrain_biases_jacobian(biases_raw, width, ordered_biases);
}
model {
  weights ~ normal(0, weight_sd);
  biases ~ normal(0, bias_sd);
  label ~ categorical_logit_glm(last_inputs(x, x_with_ones, weights, biases, skips, width, activation),
                                last_biases(biases, width, sum_readout),
                                last_weights(weights, skips, width, sum_readout));
}
