data {
  int<lower=2> T;
  int<lower=2> W;
  int<lower=1> D;
  int<lower=1> N;
  array[N] int<lower=1, upper=W> word;
  array[N] int<lower=1, upper=D> document;
}
parameters {
  array[D] simplex[T] share;
  array[T] simplex[W] topic;
}
model {
  for (d in 1 : D) share[d] ~ dirichlet(rep_vector(0.8, T));
  for (t in 1 : T) topic[t] ~ dirichlet(rep_vector(0.5, W));
  for (n in 1 : N) {
    vector[T] term;
    for (t in 1 : T) term[t] = log(share[document[n], t]) + log(topic[t, word[n]]);
    target += log_sum_exp(term);
  }
}
generated quantities {
  vector[W] marginal = rep_vector(0, W);
  for (t in 1 : T) marginal += topic[t] / T;
}
