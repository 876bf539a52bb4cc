data {
  int<lower=0> N;
  vector<lower=0>[N] y;
}
parameters {
  real mu;
}
model {
  y ~ normal(mu, 1);
}
