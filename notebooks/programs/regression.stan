// A straight line in five predictors.
data {
  int<lower=1> N;
  int<lower=1> P;
  matrix[N, P] X;
  vector[N] y;
}
parameters {
  real alpha;
  vector[P] beta;
  real<lower=0> sigma;
}
model {
  alpha ~ normal(0, 5);
  beta ~ normal(0, 2);
  sigma ~ exponential(1);
  y ~ normal_id_glm(X, alpha, beta, sigma);
}
generated quantities {
  vector[N] log_lik;
  vector[N] y_rep;
  for (n in 1 : N) {
    real mean_n = alpha + X[n] * beta;
    log_lik[n] = normal_lpdf(y[n] | mean_n, sigma);
    y_rep[n] = normal_rng(mean_n, sigma);
  }
}
