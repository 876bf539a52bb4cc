// two factors turned so that the first row of loadings has one entry: lengths of Gaussian rows are chi distributed
data { int<lower=1> N; int<lower=1> P; int<lower=1> F; matrix[N, P] y; }
parameters { real<lower=0> first; real<lower=0> second; real below; matrix[P - 2, 2] rest; vector<lower=0>[P] noise; }
transformed parameters {
  matrix[P, 2] load = append_row([[first, 0], [below, second]], rest);
  matrix[P, P] common = load * load';
}
model {
  matrix[P, P] root = cholesky_decompose(add_diag(common, square(noise)));
  target += log(first) - square(first) / 2;
  second ~ std_normal();
  below ~ std_normal();
  to_vector(rest) ~ std_normal();
  noise ~ lognormal(-0.5, 0.5);
  for (n in 1 : N) y[n]' ~ multi_normal_cholesky(rep_vector(0, P), root);
}
