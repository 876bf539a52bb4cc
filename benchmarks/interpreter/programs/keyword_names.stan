data {
  int<lower=0> N;
  vector[N] y;
}
transformed data {
  vector[N] operator = y - mean(y);
}
parameters {
  real class;
  real<lower=0> new;
}
transformed parameters {
  real union = class + new;
}
model {
  class ~ normal(0, 1);
  new ~ exponential(1);
  operator ~ normal(class, new);
}
generated quantities {
  vector[2] private = [union, square(class)]';
}
