data {
  int<lower=1> T;
  vector[T] y;
}
parameters {
  real<lower=0> sigma_level;
  real<lower=0> sigma_y;
  real start;
}
transformed parameters {
  vector[T] error;
  vector[T] variance;
  {
    real a = start;
    real P = 1;
    for (t in 1 : T) {
      error[t] = y[t] - a;
      variance[t] = P + square(sigma_y);
      real gain = P / variance[t];
      a += gain * error[t];
      P = P * (1 - gain) + square(sigma_level);
    }
  }
}
model {
  start ~ normal(y[1], 2);
  sigma_level ~ normal(0, 1);
  sigma_y ~ normal(0, 1);
  target += -0.5 * sum(log(2 * pi() * variance) + square(error) ./ variance);
}
generated quantities {
  vector[T] log_lik;
  for (t in 1 : T) log_lik[t] = normal_lpdf(error[t] | 0, sqrt(variance[t]));
}
