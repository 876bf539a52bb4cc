"""HMC and NUTS on either engine."""
