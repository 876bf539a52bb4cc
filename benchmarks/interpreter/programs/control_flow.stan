functions {
  int collatz(int n) {
    int steps = 0;
    int value = n;
    while (value != 1) {
      if (value % 2 == 0) value = value %/% 2;
      else value = 3 * value + 1;
      steps += 1;
      if (steps > 1000) break;
    }
    return steps;
  }
}
data {
  int<lower=0> N;
  vector[N] y;
}
transformed data {
  array[N] int steps;
  for (n in 1 : N) steps[n] = collatz(n);
  print("steps of the last: ", steps[N]);
}
parameters {
  real mu;
  real<lower=0> sigma;
}
model {
  if (mu > 1.5) {
    reject("mu is ", mu, ", above 1.5");
  }
  real root = sigma;
  int rounds = 0;
  while (rounds < 8) {
    rounds += 1;
    if (rounds == 3) continue;
    root = 0.5 * (root + sigma / root);
  }
  if (is_nan(root) || is_inf(root)) print("no root of ", sigma);
  mu ~ normal(0, 1);
  root ~ gamma(2, 2);
  for (n in 1 : N) {
    if (steps[n] > 5 && !(y[n] < 0)) y[n] ~ normal(mu, sigma);
    else if (steps[n] > 2) y[n] ~ double_exponential(mu, sigma);
    else target += -log1p_exp(y[n] - mu);
  }
}
generated quantities {
  int total = sum(steps);
  int even = 0;
  for (step in steps) {
    if (step % 2) continue;
    even += 1;
  }
}
