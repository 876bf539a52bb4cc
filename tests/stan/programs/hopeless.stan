// No initial value is accepted.
parameters {
  real x;
}
model {
  reject("never");
}
