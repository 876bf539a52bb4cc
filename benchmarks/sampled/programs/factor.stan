data { int<lower=1> N; int<lower=1> P; matrix[N, P] y; }
parameters { vector[P] load; vector[N] score; vector<lower=0>[P] noise; }
model {
  load ~ std_normal();
  score ~ std_normal();
  noise ~ lognormal(-0.5, 0.5);
  for (p in 1 : P) y[ : , p] ~ normal(load[p] * score, noise[p]);
}
