// Two normal modes of the same width, 10 apart; the lower one holds exp(-depth) of the other's probability.
data {
  real<lower=0> depth;
}
parameters {
  real x;
  simplex[3] other; // a constrained parameter, which an init file has to carry along
}
model {
  target += log_sum_exp(normal_lpdf(x | 5, 0.5), normal_lpdf(x | -5, 0.5) - depth);
  other ~ dirichlet([1, 2, 3]');
}
