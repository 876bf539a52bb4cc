"""Numbers of Xiao, Liu and Bamler 2023, Table 1 (784-512-10 ReLU, MNIST).

Their total variation is halved, which equation (2) is not: the row of q_i (0.8641 at 11 % accuracy) is out
of reach of neither form, but their code divides by two.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class PaperRow:
    """A column of the paper's table: agreement, total variation, accuracies in percent."""

    agreement: float
    total_variation: float
    accuracy: float
    mean_accuracy: float | None


TABLE_1: Mapping[str, PaperRow] = MappingProxyType(
    {
        "hmc": PaperRow(1.0, 0.0, 98.43, None),
        "hmc-qi": PaperRow(0.1212, 0.8641, 11.11, 28.06),
        "hmc-qr": PaperRow(0.8249, 0.6570, 82.34, 92.25),
        "ensemble": PaperRow(0.9931, 0.0229, 98.66, None),
        "ensemble-qi": PaperRow(0.5239, 0.7210, 52.25, 86.40),
        "ensemble-qr": PaperRow(0.9868, 0.0495, 97.72, 97.97),
        "vi": PaperRow(0.9885, 0.0235, 98.11, 98.04),
    }
)
