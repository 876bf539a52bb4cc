// Logistic regression by the generalised linear model's own density.
data {
  int<lower=0> N;
  matrix[N, 1] x;
  array[N] int<lower=0, upper=1> y;
}
parameters {
  real alpha;
  vector[1] beta;
}
model {
  alpha ~ normal(0, 2);
  beta ~ normal(0, 2);
  y ~ bernoulli_logit_glm(x, alpha, beta);
}
