"""``te.logaddexp``: an expression of others."""

import numpy as np
import pytest

import tir
from tir import te
from tir.interp import run


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_logaddexp_is_what_numpy_computes(dtype):
    ends = np.array([0.0, -0.0, 1.0, -3.5, 88.0, 1e3, -1e3, np.inf, -np.inf, np.nan], dtype)
    x, y = (a.ravel().copy() for a in np.meshgrid(ends, ends))
    a, b = (te.placeholder((len(x),), dtype, name=name) for name in "ab")
    func = te.create_prim_func([a, b, te.compute(a.shape, lambda i: te.logaddexp(a[i], b[i]))])
    with np.errstate(invalid="ignore"):
        expected = np.logaddexp(x, y)
    for call in (tir.build(func), lambda *args: run(func, *args)):
        found = np.zeros_like(x)
        call(x, y, found)
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_logaddexp_takes_floats():
    with pytest.raises(TypeError, match="T.logaddexp takes floats, not int32"):
        tir.logaddexp(tir.Var("i"), 2)
