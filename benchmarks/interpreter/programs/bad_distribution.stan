parameters {
  real mu;
}
model {
  mu ~ gaussian(0, 1);
}
