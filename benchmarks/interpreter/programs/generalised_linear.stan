data {
  int<lower=1> N;
  int<lower=1> P;
  int<lower=3> K;
  matrix[N, P] X;
  array[N] int<lower=0, upper=1> binary;
  array[N] int<lower=0> count;
  array[N] int<lower=1, upper=K> grade;
  vector[N] y;
}
parameters {
  vector[4] intercept;
  matrix[P, 5] slope;
  ordered[K - 1] cut;
  matrix[P, K] class_slope;
  real<lower=0> sigma;
  real<lower=0> phi;
}
model {
  intercept ~ normal(0, 1);
  to_vector(slope) ~ normal(0, 1);
  to_vector(class_slope) ~ normal(0, 1);
  cut ~ normal(0, 2);
  sigma ~ exponential(1);
  phi ~ gamma(2, 1);
  binary ~ bernoulli_logit_glm(X, intercept[1], slope[ : , 1]);
  count ~ poisson_log_glm(X, intercept[2], slope[ : , 2]);
  count ~ neg_binomial_2_log_glm(X, intercept[3], slope[ : , 3], phi);
  y ~ normal_id_glm(X, intercept[4], slope[ : , 4], sigma);
  grade ~ ordered_logistic_glm(X, slope[ : , 5], cut);
  grade ~ categorical_logit_glm(X, rep_vector(0, K), class_slope);
}
generated quantities {
  real log_lik = bernoulli_logit_glm_lpmf(binary | X, intercept[1], slope[ : , 1]);
}
