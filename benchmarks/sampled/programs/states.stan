// hidden states, each with a logistic regression of its own
data { int<lower=1> T; int<lower=1> K; array[T] int<lower=0, upper=1> y; vector[T] x; }
parameters { array[K] simplex[K] move; vector[K] base; vector[K] slope; }
model {
  vector[K] ahead;
  base ~ normal(0, 2);
  slope ~ normal(0, 2);
  for (k in 1 : K) {
    move[k] ~ dirichlet(rep_vector(2, K));
    ahead[k] = -log(K) + bernoulli_logit_lpmf(y[1] | base[k] + slope[k] * x[1]);
  }
  for (t in 2 : T) {
    vector[K] next;
    for (k in 1 : K) {
      vector[K] from = ahead;
      for (j in 1 : K) from[j] += log(move[j, k]);
      next[k] = log_sum_exp(from) + bernoulli_logit_lpmf(y[t] | base[k] + slope[k] * x[t]);
    }
    ahead = next;
  }
  target += log_sum_exp(ahead);
}
