data {
  int T;
  vector[T] y;
}
parameters {
  real mu;
  real<lower=-1, upper=1> phi, theta;
  real<lower=0> sigma;
}
model {
  vector[T] error;
  error[1] = y[1] - (mu + phi * mu);
  for (t in 2 : T) {
    error[t] = y[t] - (mu + phi * y[t - 1] + theta * error[t - 1]);
  }
  mu ~ normal(0, 2);
  sigma ~ cauchy(0, 2.5);
  error ~ normal(0, sigma);
}
