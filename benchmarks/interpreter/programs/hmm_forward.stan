data {
  int<lower=1> K;
  int<lower=1> T;
  vector[T] y;
}
parameters {
  array[K] simplex[K] transition;
  ordered[K] mu;
  real<lower=0> sigma;
}
model {
  array[K] real alpha;
  array[K] real term;
  mu ~ normal(0, 3);
  sigma ~ exponential(1);
  for (k in 1 : K) alpha[k] = -log(K) + normal_lpdf(y[1] | mu[k], sigma);
  for (t in 2 : T) {
    array[K] real next;
    for (k in 1 : K) {
      for (j in 1 : K) term[j] = alpha[j] + log(transition[j, k]);
      next[k] = log_sum_exp(term) + normal_lpdf(y[t] | mu[k], sigma);
    }
    alpha = next;
  }
  target += log_sum_exp(alpha);
}
generated quantities {
  array[T] int<lower=1, upper=K> path;
  {
    array[T, K] int back;
    array[T, K] real best;
    for (k in 1 : K) best[1, k] = normal_lpdf(y[1] | mu[k], sigma);
    for (t in 2 : T) {
      for (k in 1 : K) {
        best[t, k] = negative_infinity();
        for (j in 1 : K) {
          real score = best[t - 1, j] + log(transition[j, k])
                       + normal_lpdf(y[t] | mu[k], sigma);
          if (score > best[t, k]) {
            back[t, k] = j;
            best[t, k] = score;
          }
        }
      }
    }
    path[T] = sort_indices_desc(best[T])[1];
    for (s in 1 : (T - 1)) path[T - s] = back[T - s + 1, path[T - s + 1]];
  }
}
