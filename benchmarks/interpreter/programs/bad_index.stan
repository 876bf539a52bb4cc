data {
  int<lower=1> K;
  vector[3] y;
}
parameters {
  real mu;
}
model {
  y[K] ~ normal(mu, 1);
}
