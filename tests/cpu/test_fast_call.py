"""The short way into compiled code: taken for arrays like those before, and left for the full checks otherwise."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import tir
from codegen.runtime import fast_call
from tir.script import tir as T


@T.prim_func
def add(a: T.handle, b: T.handle, c: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 3), "float32")
    B = T.match_buffer(b, (n, 3), "float32")
    C = T.match_buffer(c, (n, 3), "float32")
    for i, j in T.grid(n, 3):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] + B[vi, vj]


def arrays(n: int = 4) -> list[np.ndarray]:
    return [np.arange(3 * n, dtype=np.float32).reshape(n, 3), np.ones((n, 3), np.float32), np.zeros((n, 3), np.float32)]


@pytest.fixture
def warm():
    """A function whose short way is ready for (4, 3) arrays."""
    function = tir.build(add).entry
    for _ in range(3):
        function(*arrays())
    if not fast_call.supported():
        pytest.fail("array objects lie differently here: read the short way's layout again")
    assert function._fast is not None
    return function


def test_fresh_arrays_of_known_shape_take_the_short_way(warm):
    a, b, c = arrays()
    assert warm._fast(a, b, c) == 0
    np.testing.assert_array_equal(c, a + b)
    warm(a, c, b)
    np.testing.assert_array_equal(b, 2 * a + 1)


def test_another_number_of_arrays_is_left_to_the_checks(warm):
    for given in ((), arrays()[:2], [*arrays(), arrays()[0]]):
        assert warm._fast(*given) == fast_call.MISMATCH


def test_a_python_function_is_called_from_the_short_way():
    @T.prim_func
    def calls(A: T.Buffer((2,), "float32")):
        T.evaluate(T.call_packed("tests.fast_call.seen", A[0]))

    seen: list[float] = []
    tir.register_func("tests.fast_call.seen", lambda value: seen.append(value) or 0, override=True)
    function = tir.build(calls, "llvm").entry
    for n in range(5):
        function(np.full(2, n, np.float32))
    assert function._fast is not None and seen == [0, 1, 2, 3, 4]


def test_other_sizes_are_solved_again(warm):
    for n in (7, 4, 1, 4, 7, 7, 7, 4, 0):
        a, b, c = arrays(n)
        warm(a, b, c)
        np.testing.assert_array_equal(c, a + b)


@pytest.mark.parametrize(
    "spoil, message",
    [
        (lambda a, b, c: (a, b, c.astype(np.float64)), "float64"),
        (lambda a, b, c: (a, b, c[:, :2]), "shape"),
        (lambda a, b, c: (a, b), "takes 3 arguments"),
        (lambda a, b, c: (a, b, None), "must be an array"),
        (lambda a, b, c: (a, b, 5), "must be an array"),
        (lambda a, b, c: (a, b, a), "overlaps"),
        (lambda a, b, c: (a, b, np.frombuffer(c.tobytes(), np.float32).reshape(4, 3)), "read-only"),
        (lambda a, b, c: (a, b, np.asfortranarray(c)), "strides"),
        (lambda a, b, c: (a, b, np.frombuffer(bytearray(49), np.float32, 12, 1).reshape(4, 3)), "multiple of"),
        (lambda a, b, c: (a.astype(">f4"), b, c), "float32"),
    ],
)
def test_what_differs_is_refused_as_ever(warm, spoil, message: str):
    for _ in range(2):
        with pytest.raises(tir.RunError, match=message):
            warm(*spoil(*arrays()))


def test_run_time_errors_come_through():
    @T.prim_func
    def divide(A: T.Buffer((2,), "int32")):
        A[0] = A[0] // A[1]

    function = tir.build(divide).entry
    for _ in range(3):
        a = np.array([7, 2], np.int32)
        function(a)
        assert a[0] == 3
    assert function._fast is not None
    with pytest.raises(tir.RunError, match="division by zero"):
        function(np.array([7, 0], np.int32))


def test_other_array_types_keep_their_way(warm):
    class Mine(np.ndarray):
        pass

    a, b, c = (x.view(Mine) for x in arrays())
    for _ in range(3):
        warm(a, b, c)
    np.testing.assert_array_equal(c, a + b)


def test_negative_strides_and_views():
    function = tir.build(add).entry
    whole = np.zeros((8, 3), np.float32)
    for _ in range(4):
        function(*arrays()[:2], whole[:4])
        function(whole[:4], whole[:4], whole[4:])
    np.testing.assert_array_equal(whole[4:], 2 * whole[:4])


HELD = """
import gc
import numpy as np
import tir
from codegen.runtime import fast_call

kernel = tir.build(tir.library.elementwise.scale_add(64))
given, made = np.ones(64, "float32"), np.zeros(64, "float32")
for _ in range(4):
    kernel(given, made)
assert kernel["main"]._fast is not None
fast_call._compiled.cache_clear()  # as where another thread made the code at the same time, and the cache has that one
gc.collect()
for _ in range(4):
    kernel(given, made)
print(made[0])
"""


def test_a_fast_path_holds_its_code():
    done = subprocess.run([sys.executable, "-c", HELD], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "4.0\n"), done.stderr


def test_prepared_calls_do_not_get_ready_for_others():
    function = tir.build(add, "llvm -num-cores=1").entry
    for _ in range(3):
        given = arrays()
        function.prepared(*given)()
        assert np.array_equal(given[2], given[0] + given[1]) and function._fast is None
