// A correlated Gaussian and a skewed positive variable; all moments are known.
data {
  vector[2] mu;
  cov_matrix[2] Sigma;
  real<lower=0> shape;
  real<lower=0> rate;
}
parameters {
  vector[2] x;
  real<lower=0> tau;
}
model {
  x ~ multi_normal(mu, Sigma);
  tau ~ gamma(shape, rate);
}
