data {
  int<lower=0> P;
  int<lower=0> N;
  matrix[N, P] X;
  vector[N] y;
  array[0] int nothing;
}
parameters {
  vector[P] slope;
  array[P] simplex[1] one;
  matrix[P, 3] wide;
  real<lower=0> sigma;
  real a;
}
transformed parameters {
  vector[N] mu = rep_vector(a, N);
  if (P > 0) mu += X * slope;
}
model {
  slope ~ normal(0, 1);
  to_vector(wide) ~ normal(0, 1);
  a ~ normal(0, 5);
  sigma ~ exponential(1);
  y ~ normal(mu, sigma);
}
generated quantities {
  array[P] real squared = to_array_1d(square(slope));
  real total = sum(slope) + size(nothing);
}
