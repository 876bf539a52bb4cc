data {
  int T;
  vector[T] y;
}
parameters {
  real mu;
  real<lower=0> base;
  real<lower=0, upper=1> shock;
  real raw;
}
transformed parameters {
  real memory = (1 - shock) * inv_logit(raw);
}
model {
  vector[T] variance;
  variance[1] = 0.5;
  for (t in 2 : T) {
    variance[t] = base + shock * (y[t - 1] - mu) ^ 2 + memory * variance[t - 1];
  }
  mu ~ normal(0, 2);
  base ~ normal(0, 1);
  target += log_inv_logit(raw) + log1m_inv_logit(raw);
  y ~ normal(mu, sqrt(variance));
}
