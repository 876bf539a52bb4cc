// A level with two breaks; the times are not ordered, so that the breaks may change places.
data {
  int<lower=1> N;
  vector[N] t;
  vector[N] y;
}
parameters {
  array[2] real<lower=0, upper=100> when;
  array[2] real jump;
  real level;
  real<lower=0> s;
}
model {
  vector[N] m = rep_vector(level, N);
  for (k in 1:2) m += jump[k] * inv_logit(2 * (t - when[k]));
  jump ~ normal(0, 5);
  level ~ normal(0, 5);
  s ~ normal(0, 1);
  y ~ normal(m, s);
}
