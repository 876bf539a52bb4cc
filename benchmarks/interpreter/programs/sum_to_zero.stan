data {
  int<lower=2> R;
  int<lower=2> C;
  matrix[R, C] y;
}
parameters {
  real mu;
  sum_to_zero_vector[R] row;
  sum_to_zero_matrix[R, C] cell;
  array[2] sum_to_zero_vector[3] more;
  real<lower=0> sigma;
}
model {
  mu ~ normal(0, 3);
  row ~ normal(0, 1);
  to_vector(cell) ~ normal(0, 0.5);
  for (i in 1 : 2) more[i] ~ normal(0, 1);
  sigma ~ exponential(1);
  for (r in 1 : R) y[r] ~ normal(mu + row[r] + cell[r], sigma);
}
generated quantities {
  real zero = sum(row) + sum(cell);
}
