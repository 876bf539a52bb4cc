data {
  int<lower=2> K;
  int<lower=0> N;
  vector[N] x;
  array[N] int<lower=1, upper=K> y;
}
parameters {
  real slope;
  ordered[K - 1] cut;
}
model {
  slope ~ normal(0, 2);
  cut ~ normal(0, 3);
  y ~ ordered_logistic(slope * x, cut);
}
generated quantities {
  array[N] int<lower=1, upper=K> y_rep;
  vector[N] log_lik;
  for (n in 1 : N) {
    y_rep[n] = ordered_logistic_rng(slope * x[n], cut);
    log_lik[n] = ordered_logistic_lpmf(y[n] | slope * x[n], cut);
  }
}
