data {
  int<lower=2> K;
  int<lower=0> N;
  int<lower=1> P;
  matrix[N, P] X;
  array[N] int<lower=1, upper=K> y;
}
transformed data {
  vector[P] zeros = rep_vector(0, P);
}
parameters {
  matrix[P, K - 1] free_slope;
}
transformed parameters {
  matrix[P, K] slope = append_col(free_slope, zeros);
}
model {
  to_vector(free_slope) ~ normal(0, 2);
  for (n in 1 : N) y[n] ~ categorical_logit((X[n] * slope)');
}
generated quantities {
  matrix[N, K] probability;
  array[N] int y_rep;
  for (n in 1 : N) {
    probability[n] = softmax((X[n] * slope)')';
    y_rep[n] = categorical_rng(probability[n]');
  }
}
