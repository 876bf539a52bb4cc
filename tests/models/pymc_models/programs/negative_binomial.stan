data {
  int N, K;
  matrix[N, K] X;
  array[N] int y;
}
parameters {
  real alpha;
  vector[K] beta;
  real<lower=0> phi;
}
model {
  alpha ~ normal(0, 2);
  beta ~ normal(0, 1);
  phi ~ inv_gamma(2, 3);
  y ~ neg_binomial_2_log(alpha + X * beta, phi);
}
