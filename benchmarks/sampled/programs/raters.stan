// raters' votes on items whose class nobody knows
data { int<lower=1> N; int<lower=1> R; int<lower=1> K; array[N, R] int<lower=1, upper=K> vote; }
parameters { simplex[K] share; array[R, K] simplex[K] says; }
model {
  share ~ dirichlet(rep_vector(1, K));
  for (r in 1 : R) for (k in 1 : K) says[r, k] ~ dirichlet(rep_vector(1, K));
  for (n in 1 : N) {
    vector[K] part = log(share);
    for (r in 1 : R) for (k in 1 : K) part[k] += log(says[r, k, vote[n, r]]);
    target += log_sum_exp(part);
  }
}
