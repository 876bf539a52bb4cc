// a network of nodes that belong to blocks in part
data { int<lower=1> N; int<lower=1> K; array[N, N] int<lower=0, upper=1> edge; }
parameters { array[N] simplex[K] member; matrix<lower=0, upper=1>[K, K] rate; }
model {
  for (n in 1 : N) member[n] ~ dirichlet(rep_vector(0.4, K));
  to_vector(rate) ~ beta(1, 1);
  for (i in 1 : N) for (j in 1 : N) if (i != j) edge[i, j] ~ bernoulli(member[i]' * rate * member[j]);
}
