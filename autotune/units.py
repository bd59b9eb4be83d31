"""The units that people read: the one place where stored ns and pJ become ms and mJ."""

import numpy as np

MS_PER_NS = 1e-6
MJ_PER_PJ = 1e-9


def four_digits(value: float) -> str:
    """Return a value with four significant digits and no exponent."""
    return np.format_float_positional(value, precision=4, fractional=False, trim="-")
