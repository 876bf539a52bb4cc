// a distance that is known up to a wavelength: as many modes of equal mass as wavelengths
data { int<lower=1> M; vector[M] shift; vector[M] seen; real<lower=0> noise; real<lower=0> wave; }
parameters { real<lower=0> height; real<lower=0, upper=4> away; }
model {
  height ~ normal(0, 300);
  seen ~ normal(height * cos(2 * pi() * away / wave + shift), noise);
}
