// The sum of two decays, by an ODE solver: amounts change places with their rates.
functions {
  vector decay(real time, vector state, vector rate) {
    return -rate .* state;
  }
}
data {
  int<lower=1> N;
  array[N] real<lower=0> time;
  vector[N] y;
}
parameters {
  vector<lower=0>[2] amount;
  vector<lower=0>[2] rate;
}
model {
  array[N] vector[2] state = ode_rk45(decay, amount, 0, time, rate);
  amount ~ lognormal(0, 1);
  rate ~ lognormal(0, 1);
  for (n in 1 : N) {
    y[n] ~ normal(sum(state[n]), 0.1);
  }
}
