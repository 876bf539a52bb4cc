/* A Bayesian network for regression with Gaussian noise, whose standard deviation is known, inferred, or predicted too:
 * any number of hidden layers, free or constrained weights and biases, with or without fixed skip matrices. The same density
 * as models/bayesian_network.py. One program serves every such network, so that it is compiled once; parts that a network
 * lacks have size zero.
 */
functions {
#include functions/charts.stanfunctions
#include functions/packing.stanfunctions
#include functions/forward.stanfunctions

// Where noise is predicted, the last layer is twice as wide as the targets: first their means, then their noise, which is
// `sigma` times its softplus.
real regression_lpdf(matrix y, matrix inputs, matrix weight, vector bias, real sigma) {
  int num_out = cols(y);
  if (cols(weight) == 2 * num_out) {
    matrix[rows(y), 2 * num_out] outputs = inputs * weight + rep_matrix(bias', rows(y));
    return normal_lpdf(to_vector(y) | to_vector(outputs[ : , 1:num_out]),
                       sigma * log1p_exp(to_vector(outputs[ : , (num_out + 1):])));
  }
  if (num_out == 1) {
    return normal_id_glm_lpdf(y[ : , 1] | inputs, bias[1], weight[ : , 1], sigma);
  }
  return normal_lpdf(to_vector(y) | to_vector(inputs * weight + rep_matrix(bias', rows(y))), sigma);
}
}
data {
#include functions/network_data.stanfunctions
  int<lower=0, upper=1> predict_noise;
  matrix[num_obs, width[num_hidden_layers + 2] %/% (1 + predict_noise)] y;
  int<lower=0, upper=1> infer_noise;
  real<lower=0> noise; // the known standard deviation, or the scale of what is predicted, where it is not inferred
  real<lower=0> noise_scale; // scale of its half-normal prior, where it is
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
  vector<lower=0>[infer_noise] sigma;
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
  sigma ~ normal(0, noise_scale);
  y ~ regression(last_inputs(x, x_with_ones, weights, biases, skips, width, activation),
                 last_weights(weights, skips, width, sum_readout),
                 last_biases(biases, width, sum_readout),
                 infer_noise ? sigma[1] : noise);
}
