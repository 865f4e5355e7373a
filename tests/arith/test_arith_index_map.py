"""Index maps against enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tir import if_then_else
from tir.arith import Analyzer
from tir.arith.index_map import IndexMap
from tir.arith.pointwise import compile_expr
from tir.buffer import Range
from tir.expr import Expr, IntImm, Var, as_expr, is_const
from tir.visit import walk

BIJECTIVE = [
    ((8, 16), lambda i, j: [j, i]),
    ((8, 16), lambda i, j: [i // 4, j // 8, i % 4, j % 8]),
    ((8, 16), lambda i, j: [i * 16 + j]),
    ((128,), lambda i: [i // 32, i % 32 // 8, i % 8]),
    ((8, 16), lambda i, j: [(i * 16 + j) // 32, (i * 16 + j) % 32]),
    ((4, 6, 8), lambda i, j, k: [j, i * 8 + k]),
    ((4, 6, 8), lambda i, j, k: [k // 4, i, k % 4 * 6 + j]),
]
PADDED = [
    ((14,), lambda i: [i // 4, i % 4]),
    ((9, 7), lambda i, j: [i // 4, j, i % 4]),
    ((9, 7), lambda i, j: [i // 4, j // 4, i % 4, j % 4]),
    ((30,), lambda i: [i // 16, i // 4 % 4, i % 4]),
    ((14,), lambda i: [(i + 1) // 4, (i + 1) % 4]),
    ((9,), lambda i: [(i + 6) // 4, (i + 6) % 4]),
    ((6, 3), lambda i, j: [(i + 1) // 4, j, (i + 1) % 4]),
    ((5, 7), lambda i, j: [(j + 3) // 4, i // 2, (j + 3) % 4, i % 2]),
]


def points(shape):
    return itertools.product(*map(range, shape))


def evaluate(index_map, point):
    return tuple(compile_expr(e, index_map.initial_indices)(*point) for e in index_map.final_indices)


@pytest.mark.parametrize("shape,func", BIJECTIVE)
def test_inverse_undoes_the_map(shape, func):
    forward = IndexMap.from_func(func)
    back = forward.inverse(shape)
    images = {evaluate(forward, p): p for p in points(shape)}
    assert all(evaluate(back, image) == p for image, p in images.items())
    final = tuple(int(e) for e in forward.map_shape(shape))
    assert sorted(images) == sorted(points(final))


@pytest.mark.parametrize("shape,func", PADDED)
def test_padding_predicate_is_true_exactly_where_nothing_maps(shape, func):
    forward = IndexMap.from_func(func)
    with pytest.raises(ValueError):
        forward.inverse(shape)
    back, padding = forward.non_surjective_inverse(shape)
    images = {evaluate(forward, p): p for p in points(shape)}
    is_padding = compile_expr(padding, back.initial_indices)
    for image in points(tuple(int(e) for e in forward.map_shape(shape))):
        assert bool(is_padding(*image)) == (image not in images)
        if image in images:
            assert evaluate(back, image) == images[image]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_digits_are_whole_also_of_fewer_indices_than_one_digit_has(size):
    forward = IndexMap.from_func(lambda i, j: [i // 4, j, i % 4])
    shape = tuple(int(e) for e in forward.padded_shape((size, 2)))
    assert shape == ((size + 3) // 4, 2, 4)
    back, padding = forward.non_surjective_inverse((size, 2))
    is_padding = compile_expr(padding, back.initial_indices)
    elements = [p for p in points(shape) if not is_padding(*p)]
    assert sorted(evaluate(back, p) for p in elements) == list(points((size, 2)))


def test_an_iterator_of_one_value_stays_the_index_of_its_axis():
    made = IndexMap.from_func(lambda i, j: [j, i])
    i, j = (Var(name) for name in "ij")
    analyzer = Analyzer({v: Range(as_expr(0), as_expr(n)) for v, n in ((i, 1), (j, 4))})
    assert made.map_indices([i, j], analyzer) == (j, i)
    back = made.inverse([1, 4])
    assert back.final_indices[0] is back.initial_indices[1]
    digits = IndexMap.from_func(lambda i, j: [j // 4, i * 4 + j])
    assert digits.map_indices([i, j], analyzer)[1] is j and is_const(digits.map_indices([i, j], analyzer)[0], 0)


def test_map_ndarray_moves_every_element():
    array = np.arange(8 * 16).reshape(8, 16)
    blocked = IndexMap.from_func(lambda i, j: [i // 4, j // 8, i % 4, j % 8]).map_ndarray(array)
    assert np.array_equal(blocked, array.reshape(2, 4, 2, 8).transpose(0, 2, 1, 3))
    padded = IndexMap.from_func(lambda i: [i // 4, i % 4]).map_ndarray(np.arange(1, 7))
    assert padded.tolist() == [[1, 2, 3, 4], [5, 6, 0, 0]]


def test_from_func_separators_and_varargs():
    m = IndexMap.from_func(lambda *i, last: [*i, IndexMap.AXIS_SEPARATOR, last // 4, last % 4], ndim=3)
    assert [v.name for v in m.initial_indices] == ["i_0", "i_1", "last"]
    assert m.axis_separators == (2,)
    assert [int(e) for e in m.map_shape([2, 3, 8])] == [2, 3, 2, 4]
    with pytest.raises(ValueError, match="needs ndim"):
        IndexMap.from_func(lambda *i: i)
    with pytest.raises(ValueError, match="2 axes"):
        IndexMap.from_func(lambda i: i, ndim=2)


def test_equivalence():
    a = IndexMap.from_func(lambda i, j: [i * 4 + j])
    assert a.is_equivalent_to(IndexMap.from_func(lambda x, y: [y + 4 * x]))
    assert not a.is_equivalent_to(IndexMap.from_func(lambda x, y: [y * 4 + x]))


def test_int64_indices_stay_int64():
    m = IndexMap.from_func(lambda i: [i // 4, i % 4], index_dtype="int64")
    assert all(e.dtype == "int64" for e in m.map_indices([IntImm(9, m.initial_indices[0].dtype)]))
    assert all(e.dtype == "int64" for e in m.inverse([16]).final_indices)


@pytest.mark.parametrize(
    "index", [lambda j: j ^ j // 2 % 2, lambda j: j & 3, lambda j: if_then_else(j > 2, j, 0), lambda j: ~j + 8]
)
def test_operators_of_wider_indices_are_wider(index):
    (made,) = IndexMap.of(lambda j: [index(j)], 1, "int32").map_indices([Var("y", "int64")])
    assert {n.dtype for n in walk(made) if isinstance(n, Expr)} <= {"int64", "bool"}, made
