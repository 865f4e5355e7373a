"""Fourier transforms of lengths with large prime factors."""

import numpy as np
import pytest

from tir import ops, te
from tir.interp import run
from tir.ops import spectrum


@pytest.mark.parametrize(("length", "inverse"), [(251, False), (2 * 251, True)])
def test_large_primes_are_convolved(length, inverse):
    real, imaginary = (te.placeholder((1, length), "float32", name=n) for n in ("re", "im"))
    func = te.create_prim_func([real, imaginary, *ops.dft(real, imaginary, inverse)])
    rng = np.random.default_rng(length)
    given = rng.standard_normal((2, 1, length)).astype("float32")
    made = np.zeros_like(given)
    run(func, *given, *made)
    expected = (np.fft.ifft if inverse else np.fft.fft)(given[0] + 1j * given[1])
    np.testing.assert_allclose(made[0] + 1j * made[1], expected, atol=1e-6 * np.abs(expected).max())


def test_the_steps_of_a_prime_grow_as_a_logarithm():
    assert [spectrum._least(n) < 600 for n in (1021, 65537, 2 * 65537, 1048573)] == [True] * 4


def test_short_transforms_of_real_numbers_have_conjugates_above_half():
    for length in (6, 7):
        x, w = te.placeholder((1, 20), "float64", name="x"), te.placeholder((length,), "float64", name="w")
        func = te.create_prim_func([x, w, ops.stft(x, length, 3, length, w, False, False)])
        data, window = np.random.default_rng(0).random((1, 20)), np.ones(length)
        frames = (20 - length) // 3 + 1
        made = np.zeros((1, length, frames, 2))
        run(func, data, window, made)
        expected = np.stack([np.fft.fft(data[0, 3 * n : 3 * n + length]) for n in range(frames)], -1)
        np.testing.assert_allclose(made[0, ..., 0] + 1j * made[0, ..., 1], expected, atol=1e-12)
