"""Whether approximations are as good as they are called: against NUTS, and on targets with known moments."""
