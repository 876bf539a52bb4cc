// clusters in the plane, each with its own correlation
data { int<lower=1> K; int<lower=1> N; array[N] vector[2] y; }
parameters { simplex[K] share; array[K] vector[2] mu; array[K] vector<lower=0>[2] sd; array[K] cholesky_factor_corr[2] root; }
model {
  array[K] matrix[2, 2] factor;
  share ~ dirichlet(rep_vector(2, K));
  for (k in 1 : K) {
    mu[k] ~ normal(0, 5);
    sd[k] ~ lognormal(0, 0.5);
    root[k] ~ lkj_corr_cholesky(2);
    factor[k] = diag_pre_multiply(sd[k], root[k]);
  }
  for (n in 1 : N) {
    vector[K] part = log(share);
    for (k in 1 : K) part[k] += multi_normal_cholesky_lpdf(y[n] | mu[k], factor[k]);
    target += log_sum_exp(part);
  }
}
