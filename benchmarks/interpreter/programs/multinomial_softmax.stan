data {
  int<lower=1> N;
  int<lower=2> K;
  vector[N] x;
  array[N, K] int<lower=0> y;
}
parameters {
  vector[K - 1] a;
  vector[K - 1] b;
}
model {
  a ~ normal(0, 1);
  b ~ normal(0, 1);
  for (n in 1 : N) y[n] ~ multinomial(softmax(append_row(a + b * x[n], 0)));
}
generated quantities {
  array[N] simplex[K] share;
  array[N, K] int y_rep;
  for (n in 1 : N) {
    share[n] = softmax(append_row(a + b * x[n], 0));
    y_rep[n] = multinomial_rng(share[n], sum(y[n]));
  }
}
