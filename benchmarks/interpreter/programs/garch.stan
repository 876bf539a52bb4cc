data {
  int<lower=1> T;
  vector[T] r;
  real<lower=0> first;
}
parameters {
  real mu;
  real<lower=0> base;
  real<lower=0, upper=1> shock;
  real<lower=0, upper=1 - shock> memory;
}
transformed parameters {
  vector<lower=0>[T] sigma;
  sigma[1] = first;
  for (t in 2 : T) {
    sigma[t] = sqrt(base + shock * pow(r[t - 1] - mu, 2)
                    + memory * square(sigma[t - 1]));
  }
}
model {
  r ~ normal(mu, sigma);
}
generated quantities {
  real next = normal_rng(mu, sqrt(base + shock * (r[T] - mu) ^ 2
                                  + memory * sigma[T] ^ 2));
}
