// A hidden Markov model with covariates: start, both axes of A, and regressions change places together.
data {
  int<lower=1> T;
  int<lower=2> K;
  int<lower=1> M;
  array[T] real y;
  array[T] vector[M] u;
}
parameters {
  simplex[K] start;
  array[K] simplex[K] A;
  array[K] vector[M] b;
  array[K] real<lower=0, upper=10> sigma;
}
model {
  vector[K] level;
  for (k in 1 : K) {
    b[k] ~ normal(0, 5);
    level[k] = log(start[k]) + normal_lpdf(y[1] | dot_product(u[1], b[k]), sigma[k]);
  }
  for (t in 2 : T) {
    vector[K] next;
    for (k in 1 : K) {
      vector[K] from;
      for (j in 1 : K) {
        from[j] = level[j] + log(A[j, k]);
      }
      next[k] = log_sum_exp(from) + normal_lpdf(y[t] | dot_product(u[t], b[k]), sigma[k]);
    }
    level = next;
  }
  target += log_sum_exp(level);
}
