"""How far an allocation may shrink: every access counts, by whatever name the memory is accessed."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir import transform
from tir.script import parse
from tir.stmt import Allocate, Block
from tir.testing import assert_roundtrip, assert_same_result, random_program
from tir.visit import walk

PROGRAM = """
@T.prim_func
def f(A: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")):
    with T.block("root"):
        B = T.alloc_buffer((64,), "float32")
        {}
"""


def size_after(body: str) -> int:
    """The elements that the buffer B keeps when it is compacted."""
    func = parse(PROGRAM.format(body.strip().replace("\n", "\n        ")))
    made = transform.compact_buffer_allocation(func)
    root = next(n for n in walk(made.body) if isinstance(n, Block) and n.alloc_buffers)
    return int(root.alloc_buffers[0].shape[0])


@pytest.mark.parametrize(
    ("body", "size"),
    [
        pytest.param("for i in range(8):\n    B[i + 3] = A[i]\n    C[i] = B[i + 3]", 8, id="a_box"),
        pytest.param(
            "D = T.decl_buffer((64,), 'float32', data=B.data)\nB[0] = A[0]\nD[63] = A[1]\nC[0] = D[63]",
            64,
            id="another_name",
        ),
        pytest.param("B[0] = A[0]\nT.evaluate(T.call_extern('int32', 'g', T.address_of(B[0])))", 64, id="address"),
        pytest.param("B[0] = A[0]\nT.evaluate(T.call_extern('int32', 'g', B.data))", 64, id="pointer"),
        pytest.param(
            "for i in range(8):\n    B[i] = A[i]\n    T.evaluate(T.prefetch(T.address_of(B[i + 16]), 0, 3, 1))",
            8,
            id="a_prefetch_is_no_access",
        ),
        pytest.param("for i in range(8):\n    with T.LetStmt(i * 2) as k:\n        B[k] = A[i]", 15, id="a_let"),
        pytest.param(
            "with T.LetStmt(T.call_extern('int32', 'g')) as k:\n    B[k] = A[0]\n    C[0] = B[k]",
            64,
            id="a_let_of_a_call_with_effects",
        ),
    ],
)
def test_what_an_allocation_keeps(body, size):
    assert size_after(body) == size


def test_the_region_of_a_view_stays_inside_the_buffer():
    body = """
B[0] = A[0]
with T.block("v"):
    T.reads()
    T.writes(B[8:24])
    W = T.match_buffer(B[8:24], (16,), offset_factor=1)
    W[3] = A[1]
C[0] = B[11]
"""
    assert size_after(body) == 24


LOWERED = """
@T.prim_func
def f(A: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")):
    for t in {loop}:
        p = T.allocate([{shape}], "float32", "{scope}")
        B = T.decl_buffer(({shape},), "float32", data=p)
        {body}
"""


def lowered(body: str, loop: str = "range(8)", shape: str = "64, 8", scope: str = "global"):
    return parse(LOWERED.format(loop=loop, shape=shape, scope=scope, body=body.replace("\n", "\n        ")))


def extents_after(func) -> list[int]:
    made = transform.compact_buffer_allocation(func)
    (allocate,) = (n for n in walk(made.body) if isinstance(n, Allocate))
    return [int(e) for e in allocate.extents]


TILE = (
    "for i in range(8):\n    B[t * 8 + i, 3] = A[t * 8 + i]\nfor i in range(8):\n    C[t * 8 + i] = B[t * 8 + 7 - i, 3]"
)


def test_an_allocate_without_blocks_shrinks_as_the_buffer_of_a_block_does():
    func = lowered(TILE)
    assert extents_after(func) == [8, 1]
    made = transform.compact_buffer_allocation(func)
    assert_roundtrip(made)
    assert_same_result(func, made)
    a, c = np.random.rand(64).astype("float32"), np.zeros(64, "float32")
    tir.build(made)(a, c)
    np.testing.assert_array_equal(c, a.reshape(8, 8)[:, ::-1].reshape(-1))


def test_a_flat_allocate_with_vectors_shrinks():
    func = lowered(
        "B[T.Ramp(t * 8 + 16, 1, 8)] = A[T.Ramp(t * 8, 1, 8)]\nC[T.Ramp(t * 8, 1, 8)] = B[T.Ramp(t * 8 + 16, 1, 8)]",
        shape="512",
    )
    assert extents_after(func) == [8]
    assert_same_result(func, transform.compact_buffer_allocation(func))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(TILE + "\nT.evaluate(T.call_extern('int32', 'g', p))", id="a_pointer_is_passed"),
        pytest.param(TILE + "\nD = T.decl_buffer((512,), 'float32', data=p)\nD[511] = A[0]", id="another_view"),
        pytest.param("q = T.decl_buffer((512,), 'float32', data=p)\nq[0] = A[0]\nB[0, 0] = q[0]", id="a_view_inside"),
    ],
)
def test_an_allocate_keeps_its_size_while_its_pointer_has_other_uses(body):
    assert extents_after(lowered(body)) == [64, 8]


def test_shared_memory_of_launched_threads_contains_what_all_of_them_use():
    body = 'with T.launch_thread("threadIdx.x", 16) as x:\n    B[x + t, 2] = A[x]\n    C[x] = B[x + t, 2]'
    assert extents_after(lowered(body, scope="shared")) == [16, 1]
    inside = """
@T.prim_func
def f(A: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")):
    with T.launch_thread("threadIdx.x", 16) as x:
        p = T.allocate([64], "float32", "{scope}")
        B = T.decl_buffer((64,), "float32", data=p)
        B[x] = A[x]
        C[x] = B[x]
"""
    assert extents_after(parse(inside.format(scope="shared"))) == [16]
    assert extents_after(parse(inside.format(scope="local"))) == [1]


def test_random_programs_are_the_same_when_compacted_after_their_blocks_are_gone():
    smaller = 0
    for seed in range(60):
        program = tir.lower(random_program(seed), upto="plan_and_update_buffer_allocation_location")
        steps = ("lower_init_block", "convert_blocks_to_opaque", "lower_match_buffer", "lower_opaque_block")
        flat = transform.Sequential([transform.find(name) for name in steps])(program)
        made = transform.compact_buffer_allocation(flat)
        smaller += made is not flat and not tir.structural_equal(made, flat)
        assert_same_result(flat, made, engines=["interpreter"])
    assert smaller > 5
