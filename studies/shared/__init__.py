"""Tools that several papers need: held-out data, distances from NUTS."""
