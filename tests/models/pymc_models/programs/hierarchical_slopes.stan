data {
  int N, J;
  vector[N] x, y;
  array[N] int group;
}
parameters {
  real alpha, mu;
  sum_to_zero_vector[J] apart;
  real<lower=0> tau, sigma;
  vector[J] slope;
}
model {
  alpha ~ normal(0, 2);
  apart ~ normal(0, 1);
  mu ~ normal(0, 1);
  tau ~ gamma(2, 4);
  slope ~ normal(mu, tau);
  sigma ~ lognormal(0, 1);
  y ~ normal(alpha + apart[group] + slope[group] .* x, sigma);
}
