data {
  int<lower=0> N;
}
transformed data {
  if (N < 3) fatal_error("N is ", N, ", and at least 3 are needed");
}
parameters {
  real mu;
}
model {
  mu ~ normal(0, N);
}
