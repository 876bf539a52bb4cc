data {
  int<lower=1> I;
  int<lower=1> J;
  array[J, I] int<lower=0, upper=1> y;
}
parameters {
  vector[J] ability;
  vector<lower=0>[I] discrimination;
  vector[I] difficulty;
}
model {
  ability ~ std_normal();
  discrimination ~ lognormal(0, 1);
  difficulty ~ normal(0, 1.5);
  for (j in 1 : J) {
    y[j] ~ bernoulli_logit(discrimination .* (ability[j] - difficulty));
  }
}
generated quantities {
  array[J] real log_lik;
  for (j in 1 : J) {
    log_lik[j] = bernoulli_logit_lpmf(y[j] | discrimination
                                             .* (ability[j] - difficulty));
  }
}
