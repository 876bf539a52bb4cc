data {
  int<lower=1> K;
  int<lower=K + 1> T;
  vector[T] y;
}
parameters {
  real level;
  vector<lower=-1, upper=1>[K] phi;
  real<lower=0> sigma;
}
model {
  level ~ normal(0, 2);
  phi ~ normal(0, 0.5);
  sigma ~ cauchy(0, 1);
  for (t in (K + 1) : T) {
    real mu = level;
    for (k in 1 : K) mu += phi[k] * y[t - k];
    y[t] ~ normal(mu, sigma);
  }
}
generated quantities {
  vector[T + 5] path;
  path[1 : T] = y;
  for (t in (T + 1) : (T + 5)) {
    path[t] = normal_rng(level + dot_product(phi, reverse(path[(t - K) : (t - 1)])),
                         sigma);
  }
}
