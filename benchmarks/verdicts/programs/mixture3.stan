data { int<lower=1> K; int<lower=1> N; vector[N] y; }
parameters { simplex[K] theta; vector[K] mu; vector<lower=0.05, upper=20>[K] sigma; }
model {
  theta ~ dirichlet(rep_vector(2, K));
  mu ~ normal(0, 10);
  sigma ~ lognormal(0, 1);
  for (n in 1 : N) {
    vector[K] lps = log(theta);
    for (k in 1 : K) lps[k] += normal_lpdf(y[n] | mu[k], sigma[k]);
    target += log_sum_exp(lps);
  }
}
generated quantities {
  vector[N] log_lik;
  vector[N] y_rep;
  for (n in 1 : N) {
    vector[K] lps = log(theta);
    for (k in 1 : K) lps[k] += normal_lpdf(y[n] | mu[k], sigma[k]);
    log_lik[n] = log_sum_exp(lps);
    { int z = categorical_rng(theta); y_rep[n] = normal_rng(mu[z], sigma[z]); }
  }
}
