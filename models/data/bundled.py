"""Data sets that come inside installed packages: Auto MPG, Boston Housing, diabetes, digits.

The packages are imported by the loaders, so that importing this module costs nothing.
"""

import numpy as np

from .dataset import Dataset

BOSTON_FEATURES = (
    "CRIM", "ZN", "INDUS", "CHAS", "NOX", "RM", "AGE", "DIS", "RAD", "TAX", "PTRATIO", "B", "LSTAT",
)  # fmt: skip


CARS = (
    "cylinders", "displacement", "horsepower", "weight", "acceleration", "model_year", "european", "japanese",
)  # fmt: skip


def auto_mpg() -> Dataset:
    """Load Auto MPG (Quinlan 1993, UCI): how far 392 cars of 1970 to 1982 go with a gallon.

    Inputs: cylinders; displacement (cubic inches); horsepower; weight (pounds); seconds from 0 to 60 miles an hour;
    year less 1900; and, in place of the file's number for the origin, whether a car is European and whether it is
    Japanese (else it is American). The six cars whose horsepower is missing are left out.
    """
    from mlxtend.data import autompg_data

    x, y = autompg_data()
    origin = x[:, 6]  # the eighth column stands for the car's name, which is no number
    return Dataset(
        name="auto-mpg",
        x=np.column_stack([x[:, :6], origin == 2, origin == 3]).astype(np.float64),
        y=np.asarray(y, dtype=np.float64)[:, None],
        feature_names=CARS,
        target_names=("mpg",),
        task="regression",
        source="Auto MPG (Quinlan 1993, UCI) from mlxtend; miles per gallon",
    )


def boston() -> Dataset:
    """Load Boston Housing: the median value of owner-occupied homes in 506 census tracts.

    Source: Harrison and Rubinfeld 1978, "Hedonic prices and the demand for clean air".

    CRIM crime rate per head; ZN share of land zoned for large lots; INDUS share of industrial
    land; CHAS whether the tract bounds the river; NOX nitric oxides (parts per 10 million); RM
    rooms per dwelling; AGE share of units built before 1940; DIS distance to employment centres;
    RAD access to radial highways; TAX property tax per $10,000; PTRATIO pupils per teacher; B a
    transform of the share of Black residents, which makes the set unfit for anything but a
    comparison with old papers; LSTAT share of lower-status population. The target MEDV is in
    $1,000 and cut off at 50.
    """
    from mlxtend.data import boston_housing_data

    x, y = boston_housing_data()
    return Dataset(
        name="boston",
        x=np.asarray(x, dtype=np.float64),
        y=np.asarray(y, dtype=np.float64)[:, None],
        feature_names=BOSTON_FEATURES,
        target_names=("MEDV",),
        task="regression",
        source="Boston Housing (Harrison and Rubinfeld 1978) from mlxtend; MEDV in $1,000",
    )


def diabetes() -> Dataset:
    """Load the diabetes data of Efron et al. 2004, "Least angle regression": 442 patients, progression after one year.

    Inputs are the measured values (age in years, body mass index, mean blood pressure, six serum measurements), not
    scikit-learn's default columns, which are centred and scaled over all rows and so would leak the test rows into the
    training part.
    """
    from sklearn.datasets import load_diabetes

    bunch = load_diabetes(scaled=False)
    return Dataset(
        name="diabetes",
        x=np.asarray(bunch.data, dtype=np.float64),
        y=np.asarray(bunch.target, dtype=np.float64)[:, None],
        feature_names=tuple(bunch.feature_names),
        target_names=("progression",),
        task="regression",
        source="Diabetes (Efron et al. 2004) from scikit-learn, as measured",
    )


def digits() -> Dataset:
    """Load 1,797 handwritten digits (Alpaydin and Kaynak 1998) of 8 x 8 pixels, each a count from 0 to 16."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    return Dataset(
        name="digits",
        x=np.asarray(bunch.data, dtype=np.float64),
        y=np.asarray(bunch.target, dtype=np.int64),
        feature_names=tuple(bunch.feature_names),
        target_names=tuple(str(digit) for digit in bunch.target_names),
        task="classification",
        source="Handwritten digits (Alpaydin and Kaynak 1998) from scikit-learn, pixels 0 to 16",
    )
