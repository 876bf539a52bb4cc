data {
  int<lower=1> N;
  int<lower=2> K;
  array[N, K] int<lower=0> y;
}
parameters {
  simplex[K] mean_share;
  real<lower=0> concentration;
}
transformed parameters {
  vector<lower=0>[K] alpha = concentration * mean_share;
}
model {
  concentration ~ lognormal(1, 1);
  for (n in 1 : N) y[n] ~ dirichlet_multinomial(alpha);
}
generated quantities {
  array[N, K] int y_rep;
  array[N] real log_lik;
  for (n in 1 : N) {
    y_rep[n] = dirichlet_multinomial_rng(alpha, sum(y[n]));
    log_lik[n] = dirichlet_multinomial_lpmf(y[n] | alpha);
  }
}
