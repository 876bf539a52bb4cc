data {
  int<lower=0> N_seen;
  int<lower=0> N_censored;
  vector<lower=0>[N_seen] seen;
  vector<lower=0>[N_censored] censored;
  vector[N_seen] x_seen;
  vector[N_censored] x_censored;
}
parameters {
  real<lower=0> shape;
  real a;
  real b;
}
model {
  shape ~ gamma(2, 1);
  a ~ normal(0, 2);
  b ~ normal(0, 1);
  seen ~ weibull(shape, exp(a + b * x_seen));
  target += weibull_lccdf(censored | shape, exp(a + b * x_censored));
}
generated quantities {
  real median_time = exp(a) * log2() ^ (1 / shape);
  array[N_seen] real y_rep = weibull_rng(shape, exp(a + b * x_seen));
}
