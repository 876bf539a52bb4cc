data {
  int<lower=0> N;
  vector<lower=0>[N] y;
}
parameters {
  real log_shape;
  vector[2] raw;
}
transformed parameters {
  real shape = exp(log_shape);
  jacobian += log_shape;
  vector<lower=0>[2] rate;
  for (i in 1 : 2) {
    rate[i] = log1p_exp(raw[i]);
    jacobian += log_inv_logit(raw[i]);
  }
}
model {
  shape ~ gamma(2, 1);
  rate ~ gamma(2, 2);
  target += log_mix(0.3, gamma_lpdf(y | shape, rate[1]), gamma_lpdf(y | shape, rate[2]));
}
generated quantities {
  real y_new = gamma_rng(shape, rate[1]);
}
