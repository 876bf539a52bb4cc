data {
  int<lower=0> N;
  int<lower=1> P;
  matrix[N, P] X;
  array[N] int<lower=0, upper=1> y;
}
parameters {
  real intercept;
  vector[P] slope;
}
model {
  intercept ~ student_t(4, 0, 2);
  slope ~ normal(0, 1);
  y ~ bernoulli_logit(intercept + X * slope);
}
generated quantities {
  vector[N] log_lik;
  array[N] int y_rep;
  for (n in 1 : N) {
    real eta = intercept + X[n] * slope;
    log_lik[n] = bernoulli_logit_lpmf(y[n] | eta);
    y_rep[n] = bernoulli_logit_rng(eta);
  }
}
