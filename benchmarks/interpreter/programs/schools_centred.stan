data {
  int<lower=1> J;
  vector[J] effect;
  vector<lower=0>[J] error;
}
parameters {
  real mu;
  real<lower=0> tau;
  vector[J] theta;
}
model {
  mu ~ normal(0, 5);
  tau ~ cauchy(0, 5);
  theta ~ normal(mu, tau);
  effect ~ normal(theta, error);
}
generated quantities {
  vector[J] log_lik;
  array[J] real y_rep = normal_rng(theta, error);
  for (j in 1 : J) log_lik[j] = normal_lpdf(effect[j] | theta[j], error[j]);
}
