data {
  int<lower=2> K; int<lower=2> V; int<lower=1> M; array[M, V] int<lower=0> n;
}
parameters { array[M] simplex[K] theta; array[K] simplex[V] phi; }
model {
  for (m in 1 : M) theta[m] ~ dirichlet(rep_vector(0.5, K));
  for (k in 1 : K) phi[k] ~ dirichlet(rep_vector(0.2, V));
  for (m in 1 : M) {
    vector[V] p = rep_vector(0, V);
    for (k in 1 : K) p += theta[m, k] * phi[k];
    target += dot_product(to_vector(n[m]), log(p));
  }
}
