data {
  int<lower=2> K;
  int<lower=1> I;
  int<lower=1> R;
  array[I, R] int<lower=1, upper=K> rating;
}
parameters {
  simplex[K] prevalence;
  array[R, K] simplex[K] confusion;
}
transformed parameters {
  array[I] vector[K] log_class;
  for (i in 1 : I) {
    log_class[i] = log(prevalence);
    for (r in 1 : R) {
      for (k in 1 : K) {
        log_class[i, k] += log(confusion[r, k, rating[i, r]]);
      }
    }
  }
}
model {
  prevalence ~ dirichlet(rep_vector(3, K));
  for (r in 1 : R) {
    for (k in 1 : K) {
      vector[K] prior = rep_vector(1, K);
      prior[k] = 4;
      confusion[r, k] ~ dirichlet(prior);
    }
  }
  for (i in 1 : I) target += log_sum_exp(log_class[i]);
}
generated quantities {
  array[I] simplex[K] share;
  array[I] int drawn;
  for (i in 1 : I) {
    share[i] = softmax(log_class[i]);
    drawn[i] = categorical_rng(share[i]);
  }
}
