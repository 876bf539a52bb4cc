data { int<lower=1> N; int<lower=1> P; int<lower=1> K; matrix[P, P] C; }
parameters { matrix[P, K] load; vector<lower=0>[P] noise; }
model {
  matrix[P, P] S = add_diag(load * load', square(noise));
  to_vector(load) ~ std_normal();
  noise ~ lognormal(-1, 0.5);
  target += -0.5 * N * log_determinant_spd(S) - 0.5 * trace(mdivide_left_spd(S, C));
}
