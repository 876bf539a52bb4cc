data { int<lower=1> I; int<lower=1> J; array[I, J] int<lower=0, upper=1> y; }
parameters { vector[J] ability; vector[I] slope; vector[I] easy; }
model {
  ability ~ std_normal();
  slope ~ normal(0, 2);
  easy ~ normal(0, 2);
  for (i in 1 : I) y[i] ~ bernoulli_logit(slope[i] * ability + easy[i]);
}
