data {
  int N, K;
  matrix[N, K] X;
  array[N] int y;
}
parameters {
  sum_to_zero_vector[3] apart;
  matrix[K, 3] beta;
}
model {
  apart ~ normal(0, 1.5);
  to_vector(beta) ~ normal(0, 1);
  for (n in 1 : N) {
    y[n] ~ categorical_logit(apart + (X[n] * beta)');
  }
}
