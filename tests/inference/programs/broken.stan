// Its gradient is never finite away from the start, so that variational inference cannot succeed.
data {
  int<lower=0, upper=1> always;
}
parameters {
  vector[2] x;
}
model {
  x ~ std_normal();
  if (always) {
    target += sqrt(-1 - dot_self(x));
  }
}
