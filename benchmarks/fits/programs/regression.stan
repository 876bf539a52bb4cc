data {
  int<lower=0> N;
  int<lower=1> P;
  matrix[N, P] X;
  vector[N] y;
}
parameters {
  vector[P] slope;
  real<lower=0> sigma;
}
model {
  y ~ normal(X * slope, sigma);
}
