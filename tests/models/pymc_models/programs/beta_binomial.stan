data {
  int N;
  array[N] int trials, y;
}
parameters {
  real<lower=0, upper=1> mean;
  real<lower=0.5> size;
}
model {
  mean ~ beta(2, 2);
  size ~ pareto(0.5, 1.5);
  y ~ beta_binomial(trials, mean * size, (1 - mean) * size);
}
