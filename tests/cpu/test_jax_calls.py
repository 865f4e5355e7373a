"""Functions of modules in programs of JAX: under jit, vmap and grad."""

from __future__ import annotations

import numpy as np
import pytest
from polar_programs import BACK, POLAR

import tir
from tir.errors import BuildError, RunError
from tir.script import parse

jax = pytest.importorskip("jax", reason="jax is not installed: programs of another library")
jnp = jax.numpy

SCALE = """
@T.prim_func
def scale(x: T.handle, y: T.handle, k: T.float32, times: T.int32):
    n, m = T.int32(), T.int32()
    X = T.match_buffer(x, (n, m), "float32")
    Y = T.match_buffer(y, (m, n * times), "{dtype}")
    for i, j in T.grid(m, n * times):
        Y[i, j] = T.Cast("{dtype}", X[j // times, i] * k)
"""


def built(text: str):
    return tir.build(parse(text))


def scaled(x, k, times):
    return jnp.repeat(x.T, times, 1) * k


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "bool", "float8_e4m3fn"])
def test_a_function_is_called_eagerly_and_under_jit_and_vmap(dtype):
    f = tir.jax.call(built(SCALE.format(dtype=dtype)))
    x = jnp.arange(6.0).reshape(2, 3)
    many = jnp.stack([x, x + 1])
    for run in (f, jax.jit(f, static_argnums=2)):
        made = run(x, 2.0, 2)
        assert made.dtype == dtype and jnp.array_equal(made, scaled(x, 2.0, 2).astype(dtype))
    found = jax.vmap(lambda a, k: f(a, k, 1), (0, 0))(many, jnp.array([2.0, 3.0]))
    assert jnp.array_equal(found, jnp.stack([scaled(a, k, 1).astype(dtype) for a, k in zip(many, (2.0, 3.0))]))


def test_gradients_are_those_of_the_function_that_is_given():
    f = tir.jax.call(built(POLAR), backward=built(BACK))
    x, y = jnp.linspace(0, 1, 5), jnp.linspace(1, 2, 5)

    def loss(x, y, polar):
        s, p = polar(x, y, 3)
        return (s * s + jnp.exp(p)).sum()

    expected = jax.grad(lambda x, y: loss(x, y, lambda x, y, k: (x * x + y, x * y * k)), (0, 1))(x, y)
    mine = jax.grad(lambda x, y: loss(x, y, f), (0, 1))
    for run in (mine, jax.jit(mine)):
        for found, want in zip(run(x, y), expected):
            np.testing.assert_allclose(found, want, rtol=1e-5)


def test_what_does_not_fit_is_refused():
    f = tir.jax.call(built(SCALE.format(dtype="float32")))
    x = jnp.ones((2, 3))
    cases = [
        ((x.astype("int32"), 1.0, 1), "scale: `X` is float32 of 2 dimensions, got int32 of 2"),
        ((x[0], 1.0, 1), "got float32 of 1"),
        ((x,), "scale takes X, k, times, got 1 arguments"),
    ]
    for arguments, says in cases:
        with pytest.raises(RunError, match=says):
            f(*arguments)
    with pytest.raises(RunError, match="depends on a number that JAX traces; pass a number of Python"):
        jax.jit(f)(x, 1.0, 2)
    with pytest.raises(RunError, match="scale makes float64 .*jax_enable_x64"):
        tir.jax.call(built(SCALE.format(dtype="float64")))(x, 1.0, 1)
    with pytest.raises(BuildError, match="back takes `dP`; the gradient of polar takes X, Y, k"):
        tir.jax.call(built(POLAR), backward=built(BACK.replace("grad_P", "dP")))
