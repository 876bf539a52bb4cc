data {
  int T;
  vector[T] y;
}
parameters {
  real<lower=-1, upper=1> phi;
  real<lower=0> sigma;
  vector[T] h;
}
model {
  sigma ~ normal(0, 1);
  h[1] ~ normal(0, 2);
  h[2 : T] ~ normal(phi * h[1 : T - 1], sigma);
  y ~ normal(0, exp(h / 2));
}
