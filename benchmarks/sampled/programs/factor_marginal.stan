// the scores integrated out, and loadings positive
data { int<lower=1> N; int<lower=1> P; matrix[N, P] y; }
parameters { vector<lower=0>[P] load; vector<lower=0>[P] noise; }
model {
  matrix[P, P] root = cholesky_decompose(add_diag(load * load', square(noise)));
  load ~ std_normal();
  noise ~ lognormal(-0.5, 0.5);
  for (n in 1 : N) y[n]' ~ multi_normal_cholesky(rep_vector(0, P), root);
}
