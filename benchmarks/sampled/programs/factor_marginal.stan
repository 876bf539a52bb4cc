// the scores integrated out, and the first loading positive
data { int<lower=1> N; int<lower=1> P; matrix[N, P] y; }
parameters { real<lower=0> first; vector[P - 1] rest; vector<lower=0>[P] noise; }
transformed parameters { vector[P] load = append_row(first, rest); }
model {
  matrix[P, P] root = cholesky_decompose(add_diag(load * load', square(noise)));
  first ~ std_normal();
  rest ~ std_normal();
  noise ~ lognormal(-0.5, 0.5);
  for (n in 1 : N) y[n]' ~ multi_normal_cholesky(rep_vector(0, P), root);
}
