data {
  int<lower=1> N;
  int<lower=2> K;
  vector[N] y;
}
parameters {
  vector<lower=0, upper=1>[K - 1] v;
  real<lower=0> alpha;
  vector[K] mu;
  vector<lower=0>[K] sigma;
}
transformed parameters {
  simplex[K] w;
  {
    real left = 1;
    for (k in 1 : K - 1) {
      w[k] = v[k] * left;
      left *= 1 - v[k];
    }
    w[K] = left;
  }
}
model {
  alpha ~ gamma(2, 2);
  v ~ beta(1, alpha);
  mu ~ normal(0, 5);
  sigma ~ lognormal(0, 0.5);
  for (n in 1 : N) {
    vector[K] lp = log(w);
    for (k in 1 : K) {
      lp[k] += normal_lpdf(y[n] | mu[k], sigma[k]);
    }
    target += log_sum_exp(lp);
  }
}
