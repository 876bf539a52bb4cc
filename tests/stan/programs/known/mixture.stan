// A mixture of K Gaussians, the components summed out.
data {
  int<lower=1> K;
  int<lower=0> N;
  vector[N] y;
}
parameters {
  simplex[K] weight;
  ordered[K] mu;
  vector<lower=0>[K] sigma;
}
model {
  mu ~ normal(0, 10);
  sigma ~ lognormal(0, 1);
  for (n in 1 : N) {
    vector[K] part = log(weight);
    for (k in 1 : K) {
      part[k] += normal_lpdf(y[n] | mu[k], sigma[k]);
    }
    target += log_sum_exp(part);
  }
}
