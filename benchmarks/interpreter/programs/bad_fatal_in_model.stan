parameters {
  real mu;
}
model {
  if (mu > -100) fatal_error("the model stops at ", mu);
  mu ~ normal(0, 1);
}
