"""Each variable is defined at one place, and programs mean what they meant."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir.expr import IntImm, Let, Var
from tir.script import parse
from tir.stmt import Allocate, AttrStmt, Block, BufferStore, DeclBuffer, For, LetStmt, SeqStmt
from tir.testing import assert_same_result, random_inputs, random_program
from tir.testing.decisions import SeededChoice
from tir.testing.oracle import assert_roundtrip
from tir.visit import walk

LOOPS = parse("""
@T.prim_func
def main(A: T.Buffer((10,), "int32"), B: T.Buffer((10,), "int32"), n: T.int32):
    y = T.int32()
    for i in range(10):
        x: T.int32 = i * 2 + n
        if x > 3:
            for j in range(i, 10):
                B[j] = B[j] + T.Let(y * y, where={y: x + A[i]})
""")
BLOCKS = parse("""
@T.prim_func
def main(A: T.Buffer((10,), "int32"), B: T.Buffer((10,), "int32")):
    D = T.alloc_buffer((10,), "int32")
    for i in range(10):
        with T.block("D"):
            vi = T.axis.spatial(10, i)
            V = T.match_buffer(A[vi], (), "int32", offset_factor=1)
            D[vi] = V[()] + B[vi]
    for i in range(10):
        with T.block("B"):
            vi = T.axis.spatial(10, i)
            B[vi] = D[9 - vi]
""")


def definitions(func):
    found = []
    for n in walk(func.body):
        if isinstance(n, For):
            found.append(n.loop_var)
        elif isinstance(n, (LetStmt, Let)):
            found.append(n.var)
        elif isinstance(n, Allocate):
            found.append(n.buffer_var)
        elif isinstance(n, DeclBuffer):
            found.append(n.buffer)
        elif isinstance(n, Block):
            found += [*(v.var for v in n.iter_vars), *n.alloc_buffers, *(b.data for b in n.alloc_buffers)]
            found += [m.buffer.data for m in n.match_buffers]
    return found


def check(func, inputs=None):
    made = tir.transform.convert_ssa(func)
    found = definitions(made)
    assert len(set(map(id, found))) == len(found)
    assert_same_result(func, made, inputs, engines=["interpreter"])
    assert tir.transform.convert_ssa(made).body is made.body
    return made


@pytest.mark.parametrize("func", [LOOPS, BLOCKS], ids=["loops", "blocks"])
def test_a_statement_used_twice(func):
    assert tir.transform.convert_ssa(func).body is func.body
    made = check(func.with_body(SeqStmt((func.body, func.body))))
    first, second = made.body.stmts
    assert first is func.body and second is not first
    if func is LOOPS:
        assert_roundtrip(made)
        inner = For(Var("k"), IntImm(0), IntImm(3), "serial", SeqStmt((func.body, func.body, func.body)))
        assert_roundtrip(check(func.with_body(SeqStmt((inner, inner)))))


@pytest.mark.parametrize("stage", ["lower_opaque_block", "flatten_buffer", "vectorize_loop", "storage_rewrite", None])
def test_allocations_of_lowered_programs(stage):
    for target in [None] if stage else [None, "cuda"]:
        for func in tir.lower(BLOCKS, upto=stage, target=target).functions.values():
            twice = func.with_body(SeqStmt((func.body, func.body)))
            if target is None:
                assert_roundtrip(check(twice))
            else:
                made = tir.transform.convert_ssa(twice)
                found = definitions(made)
                assert len(set(map(id, found))) == len(found)


def test_what_is_evaluated_outside_stays_outside():
    """A loop over its own variable, as the outer loop's: what its ends name is the outer one."""
    a = LOOPS.buffer_map[LOOPS.params[0]]
    i = Var("i")
    inner = For(i, i, i + 1, "serial", BufferStore(a, i * 10, (i,)))
    outer = LOOPS.with_body(For(i, IntImm(0), IntImm(3), "serial", inner))
    made = tir.transform.convert_ssa(outer)
    loop = made.body.body
    assert loop.loop_var is not i and loop.min is i and loop.body.indices == (loop.loop_var,)
    args = random_inputs(made)
    tir.interp.run(made, *args)
    np.testing.assert_array_equal(args[0][:3], [0, 10, 20])


def test_thread_axes_launched_again_stay_and_others_do_not():
    text = """
@T.prim_func
def main(A: T.Buffer((8,), "float32")):
    for i in T.thread_binding(8, thread="threadIdx.x"):
        A[i] = A[i] + T.float32(1)
"""
    func = tir.lower(parse(text), target="cuda", upto="lower_opaque_block")["main"]
    launches = [n for n in walk(func.body) if isinstance(n, (AttrStmt, For))]
    assert launches
    made = tir.transform.convert_ssa(func.with_body(SeqStmt((func.body, func.body))))
    variables = [
        n.node.var if isinstance(n, AttrStmt) else n.loop_var for n in walk(made.body) if type(n) in (AttrStmt, For)
    ]
    assert len(set(map(id, variables))) == len(variables) == 2 * len(launches)
    nested = [n for n in walk(func.body) if isinstance(n, AttrStmt)]
    if nested:
        again = func.with_body(nested[0].replace(body=nested[0]))
        assert tir.transform.convert_ssa(again).body is again.body


@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed):
    func = random_program(SeededChoice(seed))
    (lowered,) = tir.lower(func, upto="flatten_buffer").functions.values()
    check(lowered.with_body(SeqStmt((lowered.body, lowered.body))))
