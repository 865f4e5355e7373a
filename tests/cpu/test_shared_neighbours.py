"""Loads of vectors that overlap: whole ones are loaded once, those between are picked from registers."""

from __future__ import annotations

import random

import pytest

import tir
from codegen.llvm.neighbour_loads import share_neighbours
from tir.expr import BufferLoad, Shuffle
from tir.script import parse
from tir.stmt import BufferStore
from tir.testing import assert_same_result
from tir.testing.oracle import random_inputs
from tir.visit import walk

FOUR = "for j in T.unroll(4):\n    for i in T.vectorized(16):\n        "


PROGRAM = """
@T.prim_func
def main(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32"), C: T.Buffer((256,), "float32"), n: T.int32):
    {body}
"""


def program(body: str) -> tir.PrimFunc:
    return tir.lower(parse(PROGRAM.format(body=body.replace("\n", "\n    "))))["main"]


def shared(body: str, n: int = 3) -> tuple[int, int]:
    """How many vectors a function loads after the pass, and how many it picks; the executor compares it with the one before."""
    func = program(body)
    made = share_neighbours(func)
    assert_same_result(func, made, [*random_inputs(func)[:3], n], engines=["interpreter", "llvm"])
    nodes = [n for n in walk(made.body) if isinstance(n, (BufferLoad, Shuffle)) and n.dtype.lanes > 1]
    return sum(isinstance(n, BufferLoad) for n in nodes), sum(isinstance(n, Shuffle) for n in nodes)


@pytest.mark.parametrize(
    ("body", "made"),
    [
        ("B[j * 16 + i] = A[j * 16 + i] + A[j * 16 + i + 1] + A[j * 16 + i + 2]", (5, 7)),
        ("B[j * 16 + i] = A[n + j * 16 + i] + A[n + j * 16 + i + 1]", (5, 3)),  # n is any number
        ("B[j * 16 + i] = A[j * 16 + i + 1] + A[j * 16 + i + 3]", (5, 6)),  # at multiples of a vector, and at both ends
        ("B[j * 16 + i] = A[j * 16 + i] + A[j * 16 + i + 32]", (8, 0)),
        ("B[j * 16 + i] = A[j * 16 + i] * 2.0", (4, 0)),
        (
            "B[j * 16 + i] = A[j * 8 + i // 2] + A[j * 8 + (i + 1) // 2]",
            (3, 8),
        ),  # steps that vary, as in a resized image
        (
            "B[j * 16 + i] = A[j * 32 + i * 2] + A[j * 32 + i * 2 + 1]",
            (8, 0),
        ),  # of a steady step: see test_vector_loads.py
    ],
)
def test_whole_vectors_are_loaded_once(body: str, made: tuple[int, int]):
    assert shared(FOUR + body) == made


def test_vectors_are_picked_only_where_loads_are_what_takes_time():
    terms = " + ".join(f"A[j * 16 + i + {k % 2}] * {k}.5" for k in range(2))
    assert shared(FOUR + f"B[j * 16 + i] = {terms}") == (5, 3)
    powers = " * ".join(f"(A[j * 16 + i + {k % 2}] + {k}.5)" for k in range(12))
    assert shared(FOUR + f"B[j * 16 + i] = {powers}")[1] == 0


def test_what_a_run_has_stored_is_picked_from_its_values():
    body = "for i in T.vectorized(16):\n    B[i] = A[i] + 1.0\nfor i in T.vectorized(16):\n    B[i + 16] = A[i] * 2.0\n"
    assert shared(body + "for i in T.vectorized(16):\n    C[i] = B[i + 3]") == (2, 1)
    assert shared(body + "for i in T.vectorized(16):\n    C[i] = B[i + 30]") == (
        3,
        0,
    )  # the run has not stored all of it


def test_shorter_vectors_are_picked_from_stored_ones_alone():
    halves = (
        "for j in T.unroll(2):\n    for i in T.vectorized(8):\n        B[j * 8 + i] = A[j * 8 + i] + A[j * 8 + i + 1]\n"
    )
    assert shared(halves + "for i in T.vectorized(8):\n    C[i] = B[i + 3]") == (4, 1)


def test_a_store_between_is_seen():
    body = "for i in T.vectorized(16):\n    B[i] = A[i]\nfor i in T.vectorized(16):\n    B[i + 8] = A[i + 1]\n"
    assert shared(body + "for i in T.vectorized(16):\n    C[i] = B[i + 4]")[1] == 0
    shared(FOUR + "A[j * 16 + i + 1] = A[j * 16 + i] + A[j * 16 + i + 2]")


def test_what_a_later_store_has_written_over_is_not_picked():
    stores = "".join(f"for i in T.vectorized(16):\n    B[i + {at}] = A[i + {at * 4}]\n" for at in (0, 8, 16))
    shared(stores + "for i in T.vectorized(16):\n    C[i] = B[i + 4]")


def test_lanes_that_a_condition_leaves_out_are_not_loaded():
    body = "B[j * 16 + i] = T.if_then_else(i >= 4, A[j * 16 + i - 4], T.float32(0)) + A[j * 16 + i]"
    assert shared(FOUR + body) == (4, 4)
    shared("for i in T.vectorized(16):\n    B[i] = T.if_then_else(i >= 16, A[i + 250], T.float32(0))")
    outside = "T.if_then_else(i < n, A[i + 240], T.float32(0)) + T.if_then_else(i < n, A[i + 241], T.float32(0))"
    assert shared(f"for i in T.vectorized(16):\n    B[i] = {outside}")[1] == 0


def test_stores_under_one_condition_share():
    body = "if n < 5:\n            B[j * 16 + i] = A[j * 16 + i] + A[j * 16 + i + 1]"
    assert shared(FOUR + body) == (5, 3)
    assert shared(FOUR + body, 7) == (5, 3)


@pytest.mark.parametrize("seed", range(12))
def test_random_runs(seed: int):
    rng = random.Random(seed)

    def at(name: str) -> str:
        load = f"{name}[{rng.randrange(12) * 8 + rng.choice([0, 0, 1, 5])} + i]"
        return load if rng.random() < 0.7 else f"T.if_then_else(i > {rng.randrange(-1, 17)}, {load}, T.float32(2))"

    stores = [f"{rng.choice('BC')}[{rng.randrange(12) * 8} + i] = {' + '.join(at(rng.choice('ABC')) for _ in range(3))}"
              for _ in range(8)]  # fmt: skip
    shared("\n".join(f"for i in T.vectorized(16):\n    {s}" for s in stores))


@pytest.mark.parametrize(
    ("stores", "vectors"),
    [
        (["{i} * 2] = A[i]", "{i} * 2 + 1] = C[i]"], 2),
        (["{i} * 2 + 1] = A[i]", "{i} * 2] = C[i]"], 2),  # the second first
        (["{i} * 3 + n] = A[i]", "{i} * 3 + n + 1] = C[i]", "{i} * 3 + n + 2] = A[i + 16]"], 3),
        (["{i} * 2] = A[i]", "{i} * 2 + 1] = A[i] + A[i + 1]"], 2),  # what is loaded once
        ([f"{{i}} * 5 + {n}] = A[i + {n} * 16]" for n in (3, 1, 4, 0, 2)], 5),
        ([f"{{i}} * 8 + {n}] = A[i + {n} * 16] + C[i]" for n in range(8)], 8),
        (["{i} * 2] = A[i]", "{i} * 2 + 2] = C[i]"], 0),  # no neighbours
        (["{i} * 3] = A[i]", "{i} * 3 + 1] = C[i]"], 0),  # a third one is left out
        (["{i} * 2] = A[i]", "{i} * 2 + 1] = B[i * 2]"], 0),  # what is stored before
        ([f"{{i}} * 9 + {n}] = A[i + {n} * 16]" for n in range(9)], 0),  # more than there may be
    ],
)
def test_elements_that_are_stored_side_by_side_are_stored_as_whole_vectors(stores: list[str], vectors: int):
    """As the parts of complex numbers, coordinates, or pixels of several colours."""
    body = "\n".join(f"for i in T.vectorized(16):\n    B[{s.format(i='i')}" for s in stores)
    func = program(body)
    made = share_neighbours(func)
    assert_same_result(func, made, [*random_inputs(func)[:3], 3], engines=["interpreter", "llvm"])
    whole = [n for n in walk(made.body) if isinstance(n, BufferStore) and isinstance(n.value, Shuffle)]
    assert len(whole) == vectors
