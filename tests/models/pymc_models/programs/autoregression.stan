data {
  int T;
  vector[T] y;
}
parameters {
  vector[2] rho;
  real<lower=0> sigma;
}
model {
  rho ~ normal(0, 1);
  sigma ~ normal(0, 1);
  y[1] ~ normal(0, 10);
  y[2 : T] ~ normal(rho[1] + rho[2] * y[1 : T - 1], sigma);
}
