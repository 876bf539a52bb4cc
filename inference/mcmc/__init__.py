"""HMC and NUTS on every engine."""
