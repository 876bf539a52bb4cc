data {
  int I, J;
  array[I, J] int y;
}
parameters {
  vector[I] ability;
  vector[J] difficulty;
  vector<lower=0>[J] slope;
}
model {
  ability ~ normal(0, 1);
  difficulty ~ normal(0, 2);
  slope ~ lognormal(0, 0.5);
  for (i in 1 : I) {
    y[i] ~ bernoulli_logit(slope .* (ability[i] - difficulty));
  }
}
