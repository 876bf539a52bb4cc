// A network with a tanh layer whose priors have scales of their own, and K classes.
data {
  int<lower=1> N;
  int<lower=1> D;
  int<lower=1> J;
  int<lower=2> K;
  matrix[N, D] x;
  array[N] int<lower=1, upper=K> y;
}
parameters {
  real<lower=0> scale_alpha;
  real<lower=0> scale_beta;
  matrix[D, J] alpha;
  row_vector[J] alpha1;
  matrix[J, K - 1] beta;
  row_vector[K - 1] beta1;
}
model {
  matrix[N, K] eta = append_col(rep_vector(0, N),
                                tanh(x * alpha + rep_matrix(alpha1, N)) * beta
                                + rep_matrix(beta1, N));
  to_vector(alpha) ~ normal(0, scale_alpha);
  to_vector(beta) ~ normal(0, scale_beta);
  alpha1 ~ normal(0, 1);
  beta1 ~ normal(0, 1);
  scale_alpha ~ normal(0, 1);
  scale_beta ~ normal(0, 1);
  for (n in 1 : N) {
    y[n] ~ categorical_logit(eta[n]');
  }
}
