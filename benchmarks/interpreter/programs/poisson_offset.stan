data {
  int<lower=0> N;
  vector[N] x;
  vector<lower=0>[N] exposure;
  array[N] int<lower=0> y;
}
transformed data {
  vector[N] offset_ = log(exposure);
}
parameters {
  real a;
  real b;
}
model {
  target += normal_lpdf(a | 0, 2) + normal_lpdf(b | 0, 1);
  target += poisson_log_lpmf(y | offset_ + a + b * x);
}
generated quantities {
  vector[N] log_lik;
  array[N] int y_rep;
  for (n in 1 : N) {
    log_lik[n] = poisson_log_lpmf(y[n] | offset_[n] + a + b * x[n]);
    y_rep[n] = poisson_log_rng(fmin(offset_[n] + a + b * x[n], 15));
  }
}
