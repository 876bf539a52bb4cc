// rates of absorption and elimination that may change places, if the volume changes too
data { int<lower=1> N; vector[N] t; vector<lower=0>[N] seen; real<lower=0> dose; }
parameters { real<lower=0> into; real<lower=0> out; real<lower=0> volume; real<lower=0> noise; }
model {
  vector[N] level = dose * into / (volume * (into - out)) * (exp(-out * t) - exp(-into * t));
  into ~ lognormal(-1, 1.5);
  out ~ lognormal(-1, 1.5);
  volume ~ lognormal(2, 1.5);
  noise ~ exponential(3);
  seen ~ lognormal(log(level), noise);
}
