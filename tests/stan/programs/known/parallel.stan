// A Poisson regression whose likelihood is summed in slices.
functions {
  real part(array[] int y, int first, int last, vector x, real alpha, real beta) {
    return poisson_log_lpmf(y | alpha + beta * x[first : last]);
  }
}
data {
  int<lower=0> N;
  vector[N] x;
  array[N] int<lower=0> y;
}
parameters {
  real alpha;
  real beta;
}
model {
  alpha ~ normal(0, 1);
  beta ~ normal(0, 1);
  target += reduce_sum(part, y, 5, x, alpha, beta);
}
