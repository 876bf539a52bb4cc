// Two parameters an item: abilities and discriminations may change sign together.
data {
  int<lower=1> I;
  int<lower=1> J;
  array[I, J] int<lower=0, upper=1> y;
}
parameters {
  vector[J] theta;
  vector[I] a;
  vector[I] b;
}
model {
  theta ~ std_normal();
  a ~ normal(0, 2);
  b ~ normal(0, 3);
  for (i in 1 : I)
    y[i] ~ bernoulli_logit(a[i] * theta - b[i]);
}
