data {
  int<lower=2> T;
  vector[T] y;
}
parameters {
  real mu;
  real<lower=-1, upper=1> phi;
  real<lower=0> sigma;
  vector[T] z;
}
transformed parameters {
  vector[T] h = z * sigma;
  h[1] /= sqrt(1 - phi * phi);
  h += mu;
  for (t in 2 : T) h[t] += phi * (h[t - 1] - mu);
}
model {
  (phi + 1) / 2 ~ beta(20, 1.5);
  sigma ~ cauchy(0, 2);
  mu ~ cauchy(0, 5);
  z ~ std_normal();
  y ~ normal(0, exp(h / 2));
}
generated quantities {
  array[T] real y_rep = normal_rng(0, exp(h / 2));
}
