functions {
  real part(array[] int slice, int start, int end, vector x, real a, real b) {
    return poisson_log_lpmf(slice | a + b * x[start : end]);
  }
}
data {
  int<lower=0> N;
  vector[N] x;
  array[N] int<lower=0> y;
}
parameters {
  real a;
  real b;
}
model {
  a ~ normal(0, 1);
  b ~ normal(0, 1);
  target += reduce_sum(part, y, 5, x, a, b);
}
generated quantities {
  real log_lik = reduce_sum_static(part, y, N + 1, x, a, b);
}
