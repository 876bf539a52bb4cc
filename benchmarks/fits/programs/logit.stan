data {
  int<lower=0> N;
  int<lower=1> P;
  matrix[N, P] X;
  array[N] int<lower=0, upper=1> y;
}
parameters {
  vector[P] slope;
}
model {
  y ~ bernoulli_logit(X * slope);
}
