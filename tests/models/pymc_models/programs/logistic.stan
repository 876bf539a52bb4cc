data {
  int N, K;
  matrix[N, K] X;
  array[N] int y;
}
parameters {
  real alpha;
  vector[K] beta;
}
model {
  alpha ~ normal(0, 5);
  beta ~ double_exponential(0, 1);
  y ~ bernoulli_logit(alpha + X * beta);
}
