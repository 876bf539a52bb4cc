data { int<lower=1> J; vector[J] y; vector<lower=0>[J] error; }
parameters { real mu; real<lower=0> tau; vector[J] effect; }
model {
  mu ~ normal(0, 5);
  tau ~ cauchy(0, 5);
  effect ~ normal(mu, tau);
  y ~ normal(effect, error);
}
