data { int<lower=1> N; int<lower=1> P; int<lower=1> D; matrix[N, P] Y; }
parameters { matrix[P, D] L; matrix[N, D] F; vector<lower=0>[P] psi; }
model {
  to_vector(L) ~ std_normal();
  to_vector(F) ~ std_normal();
  psi ~ normal(0, 1);
  for (p in 1 : P) Y[ : , p] ~ normal(F * L[p]', psi[p]);
}
