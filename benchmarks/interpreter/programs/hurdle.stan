data {
  int<lower=0> N;
  vector[N] x;
  array[N] int<lower=0> y;
}
parameters {
  vector[2] zero;
  vector[2] count;
}
model {
  zero ~ normal(0, 1.5);
  count ~ normal(0, 1);
  for (n in 1 : N) {
    real eta = zero[1] + zero[2] * x[n];
    real lambda = exp(count[1] + count[2] * x[n]);
    if (y[n] == 0) {
      1 ~ bernoulli_logit(eta);
    } else {
      0 ~ bernoulli_logit(eta);
      y[n] ~ poisson(lambda) T[1, ];
    }
  }
}
generated quantities {
  vector[N] log_lik;
  for (n in 1 : N) {
    real eta = zero[1] + zero[2] * x[n];
    real lambda = exp(count[1] + count[2] * x[n]);
    log_lik[n] = bernoulli_logit_lpmf(y[n] == 0 | eta);
    if (y[n] > 0) {
      log_lik[n] += poisson_lpmf(y[n] | lambda) - log1m_exp(-lambda);
    }
  }
}
