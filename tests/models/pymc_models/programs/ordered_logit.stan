data {
  int N, K;
  matrix[N, K] X;
  array[N] int y;
}
parameters {
  vector[K] beta;
  ordered[3] cuts;
}
model {
  beta ~ normal(0, 1);
  cuts ~ normal(0, 3);
  y ~ ordered_logistic(X * beta, cuts);
}
