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
real regression_lpdf(matrix y, matrix inputs, matrix weight, real sigma) {
  int num_out = cols(y);
  matrix[rows(y), cols(weight)] outputs = times(inputs, weight);
  if (cols(weight) == num_out) {
    return normal_lpdf(to_vector(y) | to_vector(outputs), sigma);
  }
  vector[size(y)] means;
  vector[size(y)] sds;
  for (j in 1:num_out) {
    for (i in 1:rows(y)) {
      means[(j - 1) * rows(y) + i] = outputs[i, j];
      sds[(j - 1) * rows(y) + i] = sigma * log1p_exp(outputs[i, num_out + j]);
    }
  }
  return normal_lpdf(to_vector(y) | means, sds);
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
  vector<lower=0>[infer_noise] sigma;
}
transformed parameters {
  vector[num_weights] weights
      = constrain_weights_jacobian(weights_raw, width, weight_chart, num_weights);
  vector[num_biases] biases = constrain_biases_jacobian(biases_raw, width, ordered_biases);
}
model {
  weights ~ normal(0, weight_sd);
  biases ~ normal(0, bias_sd);
  sigma ~ normal(0, noise_scale);
  y ~ regression(last_inputs(x_inputs, weights, biases, skips, width, activation, sum_readout),
                 last_matrix(weights, biases, skips, width, sum_readout),
                 infer_noise ? sigma[1] : noise);
}
