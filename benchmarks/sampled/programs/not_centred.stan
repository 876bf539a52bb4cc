data { int<lower=1> J; vector[J] y; vector<lower=0>[J] error; }
parameters { real mu; real<lower=0> tau; vector[J] raw; }
transformed parameters { vector[J] effect = mu + tau * raw; }
model {
  mu ~ normal(0, 5);
  tau ~ cauchy(0, 5);
  raw ~ std_normal();
  y ~ normal(effect, error);
}
