// A quantity that decays at an unknown rate, by an ODE solver.
functions {
  vector decay(real time, vector state, real rate) {
    return -rate * state;
  }
}
data {
  int<lower=1> N;
  array[N] real<lower=0> time;
  vector[N] y;
}
parameters {
  real<lower=0> rate;
}
transformed parameters {
  array[N] vector[1] state = ode_rk45_tol(decay, [1]', 0, time, 1e-10, 1e-10, 10000, rate);
}
model {
  rate ~ lognormal(0, 1);
  for (n in 1 : N) {
    y[n] ~ normal(state[n, 1], 0.1);
  }
}
