data {
  int<lower=1> K;
  int<lower=1> T;
  array[T] int<lower=0> y;
}
parameters {
  array[K] simplex[K] row;
  simplex[K] start;
  positive_ordered[K] rate;
}
transformed parameters {
  matrix[K, K] Gamma;
  matrix[K, T] log_omega;
  for (k in 1 : K) {
    Gamma[k] = row[k]';
    for (t in 1 : T) log_omega[k, t] = poisson_lpmf(y[t] | rate[k]);
  }
}
model {
  rate ~ gamma(2, 0.5);
  target += hmm_marginal(log_omega, Gamma, start);
}
generated quantities {
  matrix[K, T] probability = hmm_hidden_state_prob(log_omega, Gamma, start);
  array[T] int state = hmm_latent_rng(log_omega, Gamma, start);
}
