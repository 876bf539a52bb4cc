"""ADVI and symmetrised variational inference."""
