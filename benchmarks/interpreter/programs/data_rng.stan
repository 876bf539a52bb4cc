data {
  int<lower=1> N;
  int<lower=1> M;
  matrix[N, M] X;
  vector[N] y;
}
transformed data {
  int H = 4;
  matrix[M, H] projection;
  array[N] int shuffled = sort_indices_asc(to_vector(normal_rng(rep_vector(0, N), 1)));
  for (m in 1 : M) for (h in 1 : H) projection[m, h] = normal_rng(0, inv_sqrt(M));
  matrix[N, H] Z = tanh(X * projection);
}
parameters {
  vector[H] w;
  real<lower=0> sigma;
}
model {
  w ~ normal(0, 1);
  sigma ~ exponential(1);
  y[shuffled] ~ normal(Z[shuffled] * w, sigma);
}
generated quantities {
  real first = projection[1, 1];
  int place = shuffled[1];
}
