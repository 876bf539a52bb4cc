// Variables of every shape, whose columns and names are told apart.
parameters {
  matrix[2, 3] m;
  array[2] vector[2] a;
  real<lower=0> tau;
}
transformed parameters {
  tuple(real, array[2] vector[2]) pair = (tau, {[tau, a[1, 1]]', a[2]});
  array[2] tuple(real, vector[2]) pairs = {(tau, a[1]), (2, a[2])};
}
model {
  to_vector(m) ~ normal(0, 1);
  for (i in 1 : 2) a[i] ~ student_t(4, i, 2);
  tau ~ exponential(1);
}
