// Generated quantities that are all integers.
data {
  int<lower=0> N;
  int<lower=0, upper=N> successes;
}
parameters {
  real<lower=0, upper=1> theta;
}
model {
  successes ~ binomial(N, theta);
}
generated quantities {
  int again = binomial_rng(N, theta);
  array[2, 3] int dice;
  for (i in 1 : 2) {
    for (j in 1 : 3) {
      dice[i, j] = categorical_rng(rep_vector(1.0 / 6, 6));
    }
  }
}
