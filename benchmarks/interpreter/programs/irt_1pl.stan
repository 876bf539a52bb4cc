data {
  int<lower=1> I;
  int<lower=1> J;
  int<lower=0> N;
  array[N] int<lower=1, upper=I> item;
  array[N] int<lower=1, upper=J> person;
  array[N] int<lower=0, upper=1> y;
}
parameters {
  vector[I] difficulty;
  vector[J] ability;
  real<lower=0> spread;
}
model {
  difficulty ~ normal(0, 2);
  spread ~ lognormal(0, 0.5);
  ability ~ normal(0, spread);
  y ~ bernoulli_logit(ability[person] - difficulty[item]);
}
generated quantities {
  array[N] int y_rep = bernoulli_logit_rng(ability[person] - difficulty[item]);
  array[I] int right = rep_array(0, I);
  for (n in 1 : N) right[item[n]] += y_rep[n];
}
