// No parameters: nothing to sample, only quantities to generate, and a line that is printed.
model {
  print("nothing to weigh");
}
generated quantities {
  real z = normal_rng(3, 2);
}
