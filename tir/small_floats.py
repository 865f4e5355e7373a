"""The floating types that NumPy lacks (bfloat16, and those of 8, 6 and 4 bits): ml_dtypes has them, and says what they are."""

from __future__ import annotations

from typing import Any, NamedTuple

import ml_dtypes
import numpy as np


class SmallFloat(NamedTuple):
    """A floating type held in memory as bits: a sign where it is ``signed``, an exponent, and ``fraction`` bits.

    ``numpy`` is the type of ml_dtypes, ``storage`` the unsigned type of its bits: types of fewer than 8 bits take a byte
    each. The rest are bit patterns: ``one`` of 1.0, ``top`` of the greatest value, ``above`` of what is greater, ``nan`` of
    what nan becomes. ``has_infinity``, ``has_nan`` and ``has_negative_zero`` tell which of these are values of the type.

    >>> hex(SMALL_FLOATS["bfloat16"].one), SMALL_FLOATS["float4_e2m1fn"].has_nan, SMALL_FLOATS["float8_e5m2"].bias
    ('0x3f80', False, 15)
    """

    numpy: np.dtype[Any]
    storage: np.dtype[Any]
    bits: int
    fraction: int
    signed: bool
    one: int
    top: int
    above: int
    nan: int
    has_infinity: bool
    has_nan: bool
    has_negative_zero: bool

    @property
    def bias(self) -> int:
        """What is added to the exponent of a value for the bits of its exponent."""
        return self.one >> self.fraction


def _described(numpy: np.dtype[Any]) -> SmallFloat:
    about = ml_dtypes.finfo(numpy)
    storage = np.dtype(f"uint{8 * numpy.itemsize}")
    with np.errstate(all="ignore"):
        known = np.array([1.0, float(about.max), 1e39, np.nan, -0.0]).astype(numpy)
    one, top, above, nan, _ = known.view(storage).tolist()
    values = known.astype(np.float32)
    kinds = bool(np.isinf(values[2])), bool(np.isnan(values[3])), bool(values[4] == 0 and np.signbit(values[4]))
    return SmallFloat(numpy, storage, about.bits, about.nmant, float(about.min) < 0, one, top, above, nan, *kinds)


SMALL_FLOATS: dict[str, SmallFloat] = {
    name: _described(np.dtype(scalar))
    for name, scalar in sorted(vars(ml_dtypes).items())
    if name.startswith(("bfloat", "float"))
}
