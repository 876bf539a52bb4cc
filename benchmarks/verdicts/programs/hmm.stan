data { int<lower=1> K; int<lower=1> N; vector[N] y; }
parameters { simplex[K] pi1; array[K] simplex[K] A; vector[K] mu; vector<lower=0>[K] sigma; }
model {
  mu ~ normal(0, 5);
  sigma ~ normal(0, 2);
  for (k in 1 : K) A[k] ~ dirichlet(rep_vector(1, K));
  {
    vector[K] alpha;
    vector[K] next;
    for (k in 1 : K) alpha[k] = log(pi1[k]) + normal_lpdf(y[1] | mu[k], sigma[k]);
    for (t in 2 : N) {
      for (j in 1 : K) {
        vector[K] acc;
        for (i in 1 : K) acc[i] = alpha[i] + log(A[i, j]);
        next[j] = log_sum_exp(acc) + normal_lpdf(y[t] | mu[j], sigma[j]);
      }
      alpha = next;
    }
    target += log_sum_exp(alpha);
  }
}
