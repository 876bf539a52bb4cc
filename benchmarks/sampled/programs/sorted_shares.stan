// labels are sorted by hand, so that the raw simplexes change places and nothing else does
data { int<lower=1> N; int<lower=1> V; array[N, V] int<lower=0> count; }
parameters { real<lower=0, upper=1> share; array[2] simplex[V] emit; }
transformed parameters {
  array[2] simplex[V] sorted;
  sorted = emit;
  if (emit[1, 1] < emit[2, 1]) {
    sorted[1] = emit[2];
    sorted[2] = emit[1];
  }
}
model {
  share ~ beta(2, 2);
  for (k in 1 : 2) emit[k] ~ dirichlet(rep_vector(1.5, V));
  for (n in 1 : N) target += log_mix(share, multinomial_lpmf(count[n] | sorted[1]), multinomial_lpmf(count[n] | sorted[2]));
}
