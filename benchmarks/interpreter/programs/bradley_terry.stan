data {
  int<lower=2> K;
  int<lower=0> N;
  array[N] int<lower=1, upper=K> home;
  array[N] int<lower=1, upper=K> away;
  array[N] int<lower=0, upper=1> home_wins;
}
parameters {
  sum_to_zero_vector[K] skill;
  real advantage;
  real<lower=0> spread;
}
model {
  spread ~ normal(0, 1);
  skill ~ normal(0, spread * sqrt(K * inv(K - 1.0)));
  advantage ~ normal(0, 1);
  home_wins ~ bernoulli_logit(advantage + skill[home] - skill[away]);
}
generated quantities {
  array[K] int<lower=1, upper=K> order = sort_indices_desc(skill);
  array[K] int position;
  for (k in 1 : K) position[order[k]] = k;
}
