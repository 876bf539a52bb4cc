"""The numbers of the paper's Tables 1 and 2, split by split.

The text that we have drops some decimal points: it prints "008" for 0.08 and "012" for 0.12. The
paper calls Table 2 coverage; by its text it is the share of test points outside the 95 % interval.
"""

MSE = {
    "free": (
        0.37, 0.31, 0.30, 0.39, 0.34, 0.42, 0.43, 0.34, 0.46, 0.33, 0.38, 0.47, 0.42, 0.37, 0.36,
    ),
    "givens": (
        0.36, 0.28, 0.28, 0.31, 0.29, 0.31, 0.39, 0.31, 0.45, 0.29, 0.38, 0.31, 0.37, 0.27, 0.27,
    ),
}  # fmt: skip
OUTSIDE = {
    "free": (
        0.05, 0.08, 0.11, 0.09, 0.13, 0.13, 0.12, 0.09, 0.15, 0.06, 0.13, 0.11, 0.13, 0.10, 0.13,
    ),
    "givens": (
        0.08, 0.05, 0.05, 0.06, 0.08, 0.10, 0.04, 0.11, 0.07, 0.06, 0.09, 0.03, 0.12, 0.05, 0.09,
    ),
}  # fmt: skip
P_MSE, P_OUTSIDE = 0.009, 0.003
