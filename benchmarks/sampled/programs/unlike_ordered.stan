data { int<lower=1> K; int<lower=1> N; vector[N] y; vector[K] centre; real<lower=0> width; }
parameters { simplex[K] share; ordered[K] mu; vector<lower=0>[K] sigma; }
model {
  share ~ dirichlet(rep_vector(2, K));
  mu ~ normal(centre, width);
  sigma ~ lognormal(0, 0.5);
  for (n in 1 : N) {
    vector[K] part = log(share);
    for (k in 1 : K) part[k] += normal_lpdf(y[n] | mu[k], sigma[k]);
    target += log_sum_exp(part);
  }
}
