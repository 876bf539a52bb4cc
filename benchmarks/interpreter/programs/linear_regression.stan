data {
  int<lower=0> N;
  int<lower=1> P;
  matrix[N, P] X;
  vector[N] y;
}
transformed data {
  vector[P] centre;
  matrix[N, P] Xc;
  for (p in 1 : P) {
    centre[p] = mean(X[ : , p]);
    Xc[ : , p] = X[ : , p] - centre[p];
  }
}
parameters {
  real intercept;
  vector[P] slope;
  real<lower=0> sigma;
}
model {
  intercept ~ normal(0, 10);
  slope ~ normal(0, 2.5);
  sigma ~ exponential(1);
  y ~ normal(intercept + Xc * slope, sigma);
}
generated quantities {
  real at_zero = intercept - dot_product(centre, slope);
  vector[N] log_lik;
  array[N] real y_rep = normal_rng(intercept + Xc * slope, sigma);
  for (n in 1 : N) {
    log_lik[n] = normal_lpdf(y[n] | intercept + Xc[n] * slope, sigma);
  }
}
