data {
  int<lower=0> N;
  vector[N] x;
  vector[N] y;
}
parameters {
  real a;
  real b;
  real<lower=0> sigma;
}
transformed parameters {
  vector[N] mu;
  profile("mean") {
    mu = a + b * x;
  }
}
model {
  profile("prior") {
    a ~ normal(0, 1);
    b ~ normal(0, 1);
    sigma ~ normal(0, 1);
  }
  profile("likelihood") {
    y ~ skew_normal(mu, sigma, 1.5);
  }
}
generated quantities {
  vector[N] log_lik;
  profile("generated") {
    for (n in 1 : N) log_lik[n] = skew_normal_lpdf(y[n] | mu[n], sigma, 1.5);
  }
}
