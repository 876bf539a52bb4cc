// two modes of unequal mass that are no symmetry
data { int<lower=1> P; real<lower=0, upper=1> mass; vector[2] place; vector<lower=0>[2] width; }
parameters { vector[P] x; real other; }
model {
  other ~ normal(1, 2);
  target += log_mix(mass, normal_lpdf(x | place[1], width[1]), normal_lpdf(x | place[2], width[2]));
}
