functions {
  vector excess(vector p, real supply, vector demand) {
    return [demand[1] * exp(-p[1]) - supply * p[1]]';
  }
}
data {
  int<lower=0> N;
  vector[N] price;
}
parameters {
  real<lower=0> supply;
  vector<lower=0>[1] demand;
  real<lower=0> sigma;
}
transformed parameters {
  vector[1] root = solve_newton(excess, [0.5]', supply, demand);
}
model {
  supply ~ gamma(3, 2);
  demand ~ gamma(3, 2);
  sigma ~ exponential(1);
  price ~ normal(root[1], sigma);
}
generated quantities {
  real left = excess(root, supply, demand)[1];
}
