data {
  int<lower=1> J;
  vector[J] effect;
  vector<lower=0>[J] error;
}
parameters {
  real mu;
  real<lower=0> tau;
  vector[J] z;
}
transformed parameters {
  vector[J] theta = mu + tau * z;
}
model {
  mu ~ normal(0, 5);
  tau ~ student_t(3, 0, 5);
  z ~ std_normal();
  effect ~ normal(theta, error);
}
generated quantities {
  vector[J] log_lik;
  for (j in 1 : J) log_lik[j] = normal_lpdf(effect[j] | theta[j], error[j]);
  real new_school = normal_rng(mu, tau);
}
