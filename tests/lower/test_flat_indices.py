"""Indices of reshapes and layouts, lowered to flat memory: no division where elements are read in order."""

from __future__ import annotations

import math

import pytest

import tir
from tir import te


def reshaped(a, shape, name):
    def element(*at):
        flat = sum(v * math.prod(shape[k + 1 :]) for k, v in enumerate(at))
        return a(*(flat // math.prod(a.shape[k + 1 :]) % a.shape[k] for k in range(len(a.shape))))

    return te.compute(shape, element, name=name)


@pytest.mark.parametrize(
    "shapes", [[(6, 4), (8, 3), (24,), (2, 12)], [(24,), (3, 8), (4, 6)], [(5, 8), (4, 10), (5, 8)]]
)
def test_a_chain_of_reshapes_reads_in_order(shapes):
    """The whole chain inlined: one contiguous copy, without a division."""
    first = A = te.placeholder(shapes[0], name="A")
    for n, shape in enumerate(shapes[1:]):
        A = reshaped(A, shape, f"B{n}")
    sch = tir.Schedule(te.create_prim_func([first, A]))
    for n in range(len(shapes) - 2):
        sch.compute_inline(f"B{n}")
    text = tir.lower(sch.mod).script()
    assert "//" not in text and "%" not in text, text


def test_a_reshape_of_symbolic_sizes_reads_in_order():
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), name="A")
    B = te.compute((m, n), lambda i, j: A[(i * n + j) // m, (i * n + j) % m], name="B")
    text = tir.lower(te.create_prim_func([A, B])).script()
    assert "//" not in text and "%" not in text, text


def test_a_layout_there_and_back_is_the_layout():
    A = te.placeholder((24,), name="A")
    C = te.compute((24,), lambda i: A[i] + 1.0, name="C")
    sch = tir.Schedule(te.create_prim_func([A, C]))
    sch.transform_layout("C", ("write", 0), lambda i: (i // 12, i % 12 // 4, i % 4))
    sch.transform_layout("C", ("write", 0), lambda a, b, c: a * 12 + b * 4 + c)
    text = tir.lower(sch.mod).script()
    assert "//" not in text and "%" not in text, text
