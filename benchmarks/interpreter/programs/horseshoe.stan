data {
  int<lower=0> N;
  int<lower=1> P;
  matrix[N, P] X;
  vector[N] y;
  real<lower=0> scale;
}
parameters {
  vector[P] z;
  vector<lower=0>[P] local;
  real<lower=0> global;
  real<lower=0> slab2;
  real<lower=0> sigma;
}
transformed parameters {
  vector[P] slope;
  {
    vector[P] squared = square(local);
    vector[P] bounded = sqrt(slab2 * squared ./ (slab2 + square(global) * squared));
    slope = z .* bounded * global;
  }
}
model {
  z ~ std_normal();
  local ~ cauchy(0, 1);
  global ~ cauchy(0, scale * sigma);
  slab2 ~ inv_gamma(2, 4);
  sigma ~ gamma(2, 1);
  y ~ normal(X * slope, sigma);
}
generated quantities {
  int near_zero = 0;
  for (p in 1 : P) near_zero += abs(slope[p]) < 0.1;
}
