// Densities of one to five arguments, of Stan's own and of functions of the program's, with and without constants.
functions {
  real one_lpdf(real x) { return normal_lupdf(x | 1, 2); }
  real two_lpdf(real x, real m) { return normal_lupdf(x | m, 2) + gamma_lpdf(1.5 | 2, 3); }
  real three_lpdf(real x, real m, real s) { return student_t_lupdf(x | 4, m, s); }
  real four_lpmf(int n, real l, real a, real b) { return poisson_lupmf(n | l) + beta_lupdf(0.3 | a, b) ; }
  real five_lpdf(real x, real a, real b, real c, real d) { return skew_normal_lupdf(x | a, b, c) + two_lupdf(x | d); }
  real add_lp(real x) { x ~ cauchy(0, 2); return x; }
}
parameters { simplex[3] o; real x; real<lower=0> l; corr_matrix[2] R; }
model {
  o ~ dirichlet([1, 2, 3]'); x ~ std_normal(); x ~ one(); x ~ two(0.5); x ~ three(0.1, 2); 4 ~ four(l, 2, 3);
  x ~ five(0.1, 1, 0.5, 2); 3 ~ poisson(l); l ~ exponential(2); R ~ lkj_corr(2); 1 ~ bernoulli_logit(x); 
  {1, 2, 1} ~ multinomial(o); 2 ~ categorical(o); 3 ~ neg_binomial_2(l, 2); x ~ normal(0, 3) T[-9, 9];
  0.7 ~ wiener(l + 1, 0.1, 0.5, 0.2); [0.1, 0.2]' ~ multi_normal([x, 0]', R); real z = add_lp(x);
  target += two_lupdf(x | 1); target += gamma_lupdf(l | 2, 3); target += poisson_lpmf(2 | l);
}
