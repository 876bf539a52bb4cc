data { int<lower=1> N; int<lower=1> P; int<lower=1> F; matrix[N, P] y; }
parameters { matrix[P, F] load; vector<lower=0>[P] noise; }
transformed parameters { matrix[P, P] common = load * load'; }
model {
  matrix[P, P] root = cholesky_decompose(add_diag(common, square(noise)));
  to_vector(load) ~ std_normal();
  noise ~ lognormal(-0.5, 0.5);
  for (n in 1 : N) y[n]' ~ multi_normal_cholesky(rep_vector(0, P), root);
}
