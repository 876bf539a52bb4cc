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
  int num_weights = count_weights(width, sum_readout);
  int num_biases = count_biases(width, has_biases, sum_readout);
  matrix[num_obs, has_biases + (1 + has_skips) * width[1]] x_inputs
      = layer_inputs(x, 1, has_biases, has_skips);
  vector[num_weights] weight_sd = per_weight(weight_scale, width, sum_readout);
  vector[num_biases] bias_sd = per_bias(bias_scale, width, has_biases, sum_readout);
}
parameters {
  vector[count_raw_weights(width, weight_chart, sum_readout)] weights_raw;
  vector[num_biases] biases_raw;
}
transformed parameters {
  vector[num_weights] weights
      = constrain_weights_jacobian(weights_raw, width, weight_chart, num_weights);
  vector[num_biases] biases = constrain_biases_jacobian(biases_raw, width, ordered_biases);
}
model {
  weights ~ normal(0, weight_sd);
  biases ~ normal(0, bias_sd);
  target += categorical_logit_glm_lpmf(label | last_inputs(x_inputs, weights, biases, skips, width,
                                                          activation, sum_readout),
                                       zeros_vector(width[num_hidden_layers + 2]),
                                       last_matrix(weights, biases, skips, width, sum_readout));
}
