data {
  int<lower=1> K;
  int<lower=0> N;
  vector[N] y;
}
parameters {
  simplex[K] weight;
  ordered[K] mu;
  vector<lower=0>[K] sigma;
}
model {
  vector[K] log_weight = log(weight);
  weight ~ dirichlet(rep_vector(2, K));
  mu ~ normal(0, 4);
  sigma ~ lognormal(0, 1);
  for (n in 1 : N) {
    vector[K] term = log_weight;
    for (k in 1 : K) term[k] += normal_lpdf(y[n] | mu[k], sigma[k]);
    target += log_sum_exp(term);
  }
}
generated quantities {
  array[N] int component;
  vector[N] y_rep;
  for (n in 1 : N) {
    vector[K] term = log(weight);
    for (k in 1 : K) term[k] += normal_lpdf(y[n] | mu[k], sigma[k]);
    component[n] = categorical_logit_rng(term);
    int drawn = categorical_rng(weight);
    y_rep[n] = normal_rng(mu[drawn], sigma[drawn]);
  }
}
