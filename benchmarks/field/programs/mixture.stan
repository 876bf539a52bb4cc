data { int<lower=1> N; int<lower=1> K; real<lower=0> prior; vector[N] y; }
parameters { simplex[K] w; vector[K] mu; vector<lower=0>[K] sigma; }
model {
  w ~ dirichlet(rep_vector(prior, K));
  mu ~ normal(0, 5);
  sigma ~ lognormal(0, 0.5);
  for (n in 1 : N) {
    vector[K] part = log(w);
    for (k in 1 : K) part[k] += normal_lpdf(y[n] | mu[k], sigma[k]);
    target += log_sum_exp(part);
  }
}
