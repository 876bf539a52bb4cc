// No parameters: nothing to sample, only quantities to generate.
generated quantities {
  real z = normal_rng(3, 2);
}
