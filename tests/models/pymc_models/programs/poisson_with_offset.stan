data {
  int N, K;
  matrix[N, K] X;
  vector[N] exposure;
  array[N] int y;
}
parameters {
  real alpha;
  vector[K] beta;
}
model {
  beta ~ normal(0, 1);
  y ~ poisson_log(log(exposure) + alpha + X * beta);
}
