data { int<lower=1> K; int<lower=1> T; vector[T] y; }
parameters { simplex[K] begin; array[K] simplex[K] move; ordered[K] level; vector<lower=0>[K] spread; }
model {
  vector[K] ahead;
  level ~ normal(0, 5);
  spread ~ lognormal(0, 0.5);
  for (k in 1 : K) move[k] ~ dirichlet(rep_vector(2, K));
  for (k in 1 : K) ahead[k] = log(begin[k]) + normal_lpdf(y[1] | level[k], spread[k]);
  for (t in 2 : T) {
    vector[K] next;
    for (k in 1 : K) {
      vector[K] from = ahead;
      for (j in 1 : K) from[j] += log(move[j, k]);
      next[k] = log_sum_exp(from) + normal_lpdf(y[t] | level[k], spread[k]);
    }
    ahead = next;
  }
  target += log_sum_exp(ahead);
}
