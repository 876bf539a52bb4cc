data {
  int<lower=2> K;
  array[K, K] int<lower=0> moves;
}
parameters {
  row_stochastic_matrix[K, K] P;
  column_stochastic_matrix[K, K] Q;
}
model {
  for (k in 1 : K) {
    P[k]' ~ dirichlet(rep_vector(1.5, K));
    moves[k] ~ multinomial(P[k]');
    Q[ : , k] ~ dirichlet(rep_vector(2, K));
  }
}
generated quantities {
  row_vector[K] next = P[1] * P;
}
