data {
  int<lower=1> N;
  int<lower=0> E;
  array[E] int<lower=1, upper=N> node1;
  array[E] int<lower=1, upper=N> node2;
  vector<lower=0>[N] expected;
  array[N] int<lower=0> y;
}
parameters {
  real a;
  real<lower=0> sigma;
  real<lower=0, upper=1> rho;
  vector[N] theta;
  vector[N] phi;
}
transformed parameters {
  vector[N] mixed = sqrt(1 - rho) * theta + sqrt(rho) * phi;
}
model {
  y ~ poisson_log(log(expected) + a + sigma * mixed);
  target += -0.5 * dot_self(phi[node1] - phi[node2]);
  sum(phi) ~ normal(0, 0.001 * N);
  a ~ normal(0, 1);
  theta ~ std_normal();
  sigma ~ normal(0, 1);
  rho ~ beta(0.5, 0.5);
}
generated quantities {
  vector[N] risk = exp(a + sigma * mixed);
}
