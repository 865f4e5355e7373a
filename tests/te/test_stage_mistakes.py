"""Mistakes of users of the stage schedule: each is refused at its line, with the facts and with what is legal."""

from __future__ import annotations

import pytest

import tir
from tir import te


class Graph:
    """A product ``C`` of ``A`` and ``B``, ``D`` that reads it, ``E`` that reads ``D`` and is the output, and their schedule."""

    def __init__(self):
        self.A, self.B = te.placeholder((8, 8), name="A"), te.placeholder((8, 8), name="B")
        self.k = te.reduce_axis((0, 8), "k")
        A, B, k = self.A, self.B, self.k
        self.C = te.compute((8, 8), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
        self.D = te.compute((8, 8), lambda i, j: self.C[i, j] + 1.0, name="D")
        self.E = te.compute((8, 8), lambda x, y: self.D[x, y] * 2.0, name="E")
        self.i, self.j = self.C.op.axis
        self.x, self.y = self.E.op.axis
        self.s = te.create_schedule(self.E.op)

    def lower(self):
        return tir.lower(self.s, [self.A, self.B, self.E])


X, Y = te.thread_axis("threadIdx.x"), te.thread_axis("threadIdx.y")
Z = te.placeholder((2,), name="Z")
W = te.compute((2,), lambda i: Z[i] + 1.0, name="W")

# what is called, and what the answer says; of a list of calls the last one is wrong
AT_ONCE = {
    "an axis of another stage": (lambda g: g.s[g.E].split(g.k, factor=2), "`k` is an axis of `C`, not of `E`"),
    "a loop of the producer": (lambda g: g.s[g.C].compute_at(g.s[g.D], g.i), "`i` is an axis of `C`", "loops of `D`"),
    "an output elsewhere": (lambda g: g.s[g.E].compute_at(g.s[g.C], g.i), "`E` is an output"),
    "an output inlined": (lambda g: g.s[g.E].compute_inline(), "`E` is an output"),
    "a reduction inlined": (lambda g: g.s[g.C].compute_inline(), "`C` is a reduction"),
    "an input inlined": (lambda g: g.s[g.A].compute_inline(), "`A` is an input", "s.cache_read"),
    "an input split": (lambda g: g.s[g.A].split(g.i, factor=2), "`i` is an axis of `C`, not of `A`", "are none"),
    "itself": (lambda g: g.s[g.D].compute_at(g.s[g.D], g.D.op.axis[0]), "cannot run inside itself"),
    "no stage": (lambda g: g.s[g.C].compute_at(g.D, g.D.op.axis[0]), "is no stage", "s[B].compute_at(s[C], axis)"),
    "the name of an axis": (lambda g: g.s[g.D].compute_at(g.s[g.E], "x"), "'x' is no axis", "`x`, `y`"),
    "neither factor nor nparts": (lambda g: g.s[g.E].split(g.x), "one of factor and nparts"),
    "factor and nparts": (lambda g: g.s[g.E].split(g.x, factor=2, nparts=4), "one of factor and nparts"),
    "a factor of 0": (lambda g: g.s[g.E].split(g.x, factor=0), "at least 1, not 0"),
    "a tile of one axis": (lambda g: g.s[g.E].tile(g.x, g.x, 2, 2), "`x` is given twice", "`x`, `y`"),
    "a tile of a wrong factor": (lambda g: g.s[g.E].tile(g.x, g.y, 2, "2"), "a factor is an integer, not '2'"),
    "a tile without a factor": (lambda g: g.s[g.E].tile(g.x, g.y, 2, None), "a tile has two factors"),
    "a factor of text": (lambda g: g.s[g.E].split(g.x, factor="8"), "a factor is an integer, not '8'"),
    "a factor of a float": (lambda g: g.s[g.E].split(g.x, factor=2.0), "a factor is an integer, not 2.0"),
    "a factor of True": (lambda g: g.s[g.E].split(g.x, True), "a factor is an integer, not True"),
    "a scope that is a variable": (lambda g: g.s[g.D].set_scope(te.var("n")), "a storage scope is a string, not n"),
    "a list without tensors cached": (lambda g: g.s.cache_write([], "local"), "there is nothing to cache"),
    "an operation cached": (lambda g: g.s.cache_read(g.A.op, "local", [g.C]), "is no tensor", "op.output(0)"),
    "a group of an operation": (lambda g: g.s.create_group(g.D.op, g.C), "is no tensor", "op.output(0)"),
    "buffers in a list": (lambda g: g.s.to_schedule(binds=[g.A]), "`binds` has a buffer for each of its tensors"),
    "a function called 3": (lambda g: g.s.to_schedule(name=3), "the name of a function is a string, not 3"),
    "a scope that is a number": (lambda g: g.s.cache_write(g.C, 1), "a storage scope is a string, not 1"),
    "a cache that nothing reads": (lambda g: g.s.cache_read(g.A, "shared", []), "nothing is to read the copy", "[C]"),
    "an axis as a factor": (lambda g: g.s[g.E].split(g.x, factor=g.y), "a factor is an integer, not y"),
    "a tensor as a factor": (lambda g: g.s[g.E].split(g.x, factor=g.A), "tensor `A` of shape (8, 8) is used as a scalar"),
    "fused in the wrong order": (lambda g: g.s[g.E].fuse(g.y, g.x), "follow each other", "reorder(y, x)"),
    "fused with one between": (lambda g: g.s[g.C].fuse(g.i, g.k), "the loops are `i`, `j`, `k`"),
    "fused with another stage's": (lambda g: g.s[g.C].fuse(g.i, g.x), "`x` is an axis of `E`, not of `C`"),
    "nothing fused": (lambda g: g.s[g.C].fuse(), "nothing to fuse"),
    "reordered twice": (lambda g: g.s[g.E].reorder(g.x, g.x), "named twice"),
    "reordered with another stage's": (lambda g: g.s[g.E].reorder(g.x, g.j), "`j` is an axis of `C`"),
    "a list reordered": (lambda g: g.s[g.E].reorder([g.y, g.x]), "is no axis"),
    "a tile of another stage": (lambda g: g.s[g.E].tile(g.x, g.k, 2, 2), "`k` is an axis of `C`"),
    "a thread axis by name": (lambda g: g.s[g.E].bind(g.x, "threadIdx.x"), "no thread axis", "te.thread_axis"),
    "bound to an axis": (lambda g: g.s[g.E].bind(g.x, g.i), "i is no thread axis"),
    "vectorized by name": (lambda g: g.s[g.E].vectorize("x"), "'x' is no axis"),
    "a pragma that is no text": (lambda g: g.s[g.E].pragma(g.x, 16), "a string, not 16"),
    "prefetch of a buffer's name": (lambda g: g.s[g.E].prefetch("D", g.x, 1), "'D' is no tensor"),
    "a predicate that is none": (lambda g: g.s[g.E].set_store_predicate("x"), "'x' is no condition"),
    "threads around no scan": (lambda g: g.s[g.E].env_threads([X]), "`E` is no scan"),
    "a cache of what is not read": (lambda g: g.s.cache_read(g.A, "local", [g.D]), "does not read `A`; it reads C"),
    "a cache of a stage": (lambda g: g.s.cache_read(g.s[g.A], "local", [g.C]), "s[A] is no tensor"),
    "an input written": (lambda g: g.s.cache_write(g.A, "local"), "`A` is no te.compute"),
    "partial results of a dimension": (lambda g: g.s.rfactor(g.C, g.i), "`i` is no part of a reduction", "are `k`"),
    "partial results at 5": (lambda g: g.s.rfactor(g.C, g.k, 5), "0 to 2"),
    "memory of an output": (lambda g: g.s[g.E].set_scope("local"), "`E` is an output"),
    "rows of a reduction axis": (lambda g: g.s[g.C].storage_align(g.k, 8, 4), "`k` is no axis of the tensor `C`"),
    "a tensor of another graph": (lambda g: g.s[Z], "Z is not in this schedule", "its stages are A, B, C, D, E"),
    "a schedule of text": (lambda g: te.create_schedule("C"), "a schedule is of operations"),
    "an argument that is missing": (lambda g: tir.lower(g.s, [g.A, g.E]), "input `B`, which `C` reads"),
    "an argument of another graph": (lambda g: tir.lower(g.s, [g.A, g.B, W]), "W is not in this schedule"),
    "an operation as an argument": (lambda g: tir.lower(g.s, [g.A, g.B, g.E.op]), "a tensor or a te.var"),
}  # fmt: skip

AFTER = {
    "an axis after a split": (
        [lambda g: g.s[g.E].split(g.x, factor=2), lambda g: g.s[g.E].vectorize(g.x)],
        "`x` is `x_outer` and `x_inner` since s[E].split(x, factor=2)",
    ),
    "an axis after a fusion": (
        [lambda g: g.s[g.E].fuse(g.x, g.y), lambda g: g.s[g.E].unroll(g.y)],
        "`y` is `x_y_fused` since s[E].fuse(x, y)",
    ),
    "bound and parallel": (
        [lambda g: g.s[g.E].bind(g.x, X), lambda g: g.s[g.E].parallel(g.x)],
        "`x` is marked already: s[E].bind(x, threadIdx.x)",
    ),
    "split after it was vectorized": (
        [lambda g: g.s[g.E].vectorize(g.y), lambda g: g.s[g.E].split(g.y, factor=2)],
        "`y` is marked already",
    ),
    "a cache after a split": (
        [lambda g: g.s[g.C].split(g.k, factor=2), lambda g: g.s.cache_write(g.C, "local")],
        "`C` has been scheduled: s[C].split(k, factor=2)",
    ),
    "an axis from before cache_write": (
        [lambda g: g.s.cache_write(g.C, "local"), lambda g: g.s[g.C].vectorize(g.k)],
        "`k` is an axis of `C_local`, not of `C`",
    ),
    "a part of the reduction fused with results": (
        [
            lambda g: setattr(g, "parts", g.s[g.C].split(g.k, factor=2)),
            lambda g: g.s[g.C].fuse(g.j, g.parts[0]),
            lambda g: g.s.rfactor(g.C, g.parts[1]),
        ],
        "is fused of `j` and `k_outer`, of which some are reduced",
    ),
    "a reader from before cache_write": (
        [lambda g: g.s.cache_write(g.C, "local"), lambda g: g.s.cache_read(g.A, "local", [g.C])],
        "`C` does not read `A`; it reads C_local",
    ),
    "an axis from before rfactor": (
        [lambda g: setattr(g, "k", g.s[g.C].split(g.k, factor=2)[1]), lambda g: g.s.rfactor(g.C, g.k), lambda g: g.s[g.C].unroll(g.k)],
        "`k_inner` is no axis of `C`",
    ),
}  # fmt: skip

WHEN_LOWERED = {
    "a consumer that is none": (lambda g: g.s[g.C].compute_at(g.s[g.E], g.x), "its consumers are D"),
    "loops of an inlined stage": (
        lambda g: (g.s[g.D].split(g.D.op.axis[0], factor=2), g.s[g.D].compute_inline()),
        "s[D].split(i, factor=2): `D` has no loops: it is inlined by s[D].compute_inline()",
    ),
    "inside of an inlined stage": (
        lambda g: (g.s[g.D].compute_inline(), g.s[g.C].compute_at(g.s[g.D], g.D.op.axis[0])),
        "`D`, which it is to run in, is inlined: s[D].compute_inline()",
    ),
    "each in the other": (
        lambda g: (g.s[g.C].compute_at(g.s[g.D], g.D.op.axis[0]), g.s[g.D].compute_at(g.s[g.C], g.i)),
        "`C` does not come after `D`",
    ),
    "a vector of a reduction": (lambda g: g.s[g.C].vectorize(g.k), "k=0 and k=1 both write C[0, 0]"),
    "a reduction in parallel": (lambda g: g.s[g.C].parallel(g.k), "k=0 and k=1 both write C[0, 0]"),
    "one thread axis twice": (
        lambda g: (g.s[g.E].bind(g.x, X), g.s[g.E].bind(g.y, X)),
        "threadIdx.x is already bound to loop `x`",
    ),
    "threads of another number": (
        lambda g: g.s[g.E].bind(g.x, te.thread_axis((0, 16), "threadIdx.x")),
        "`threadIdx.x` is declared with 16 threads, and the loop has 8",
    ),
    "no thread axis of that name": (lambda g: g.s[g.E].bind(g.x, te.thread_axis("threadIdx.q")), "threadIdx.z, threadIdx.y, threadIdx.x"),
    "a factor of no value": (lambda g: g.s[g.E].split(g.x, factor=te.var("q")), "`q`, which has no value"),
    "no memory of that name": (lambda g: g.s.cache_read(g.A, "regs", [g.C]), "no storage scope `regs`", "shared"),
    "rows aligned to 0": (lambda g: g.s[g.C].storage_align(g.i, 0, 4), "must be positive, not 0"),
    "no intrinsic of that name": (lambda g: g.s[g.C].tensorize(g.k, "no_such"), "no tensor intrinsic 'no_such'"),
    "two buffers for one computation": (lambda g: g.s[g.C].double_buffer(), "`C` is computed once", "compute_at"),
    "a loop that rfactor has taken": (
        lambda g: (g.s[g.s.cache_read(g.A, "local", [g.C])].compute_at(g.s[g.C], g.k), g.s.rfactor(g.C, g.k)),
        "`k` is no loop of `C` any more, since rfactor",
    ),
    "a prefetch of this iteration": (lambda g: g.s[g.C].prefetch(g.A, g.i, 0), "0 iterations later is not ahead"),
}  # fmt: skip


def refused(call):
    """The message of a call, which names a line of this file."""
    with pytest.raises(tir.TirError) as caught:
        call()
    assert f"{__file__}:" in str(caught.value), str(caught.value)
    return str(caught.value)


def check(text, facts):
    for fact in facts:
        assert fact in text, text


@pytest.mark.parametrize("name", AT_ONCE)
def test_a_wrong_call_is_refused_at_once(name):
    call, *facts = AT_ONCE[name]
    g = Graph()
    before = records(g)
    check(refused(lambda: call(g)), facts)
    assert records(g) == before
    g.lower()


def records(g):
    """What was said of each stage."""
    return [(list(s.leaf_iter_vars), list(s.relations), dict(s.marks), s.attach) for s in g.s.stages]


@pytest.mark.parametrize("name", AFTER)
def test_a_call_that_comes_too_late_says_after_which(name):
    (*before, last), *facts = AFTER[name]
    g = Graph()
    for call in before:
        call(g)
    check(refused(lambda: last(g)), facts)


@pytest.mark.parametrize("name", WHEN_LOWERED)
def test_what_cannot_be_done_is_refused_when_it_is_lowered(name):
    call, *facts = WHEN_LOWERED[name]
    g = Graph()
    call(g)
    check(refused(g.lower), facts)


def test_a_read_out_of_bounds_names_the_line_of_the_computation():
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i + 1], name="B")
    text = refused(lambda: tir.build(te.create_schedule(B.op), [A, B], "llvm"))
    check(text, ["`A[v_i + 1]` is out of bounds: index 0 is 8 at (i=7), and `A` has 8 there"])


def test_an_input_that_nothing_reads_may_be_an_argument():
    g = Graph()
    args = [g.A, Z, g.B, g.E]
    assert len(tir.lower(g.s, args)["main"].params) == 4
    assert [b.name for b in tir.lower(g.s, args)["main"].buffer_map.values()] == ["A", "Z", "B", "E"]


def test_a_constant_without_dimensions_is_no_input():
    c = te.compute((), lambda: te.const(2.0, "float32"), name="c")
    D = te.compute((4,), lambda i: c[()] + 1.0, name="D")
    s = te.create_schedule(D.op)
    s[c].compute_inline()
    assert "c[" not in tir.lower(s, [D]).script()


def test_an_output_has_a_number_of_any_kind():
    import numpy as np

    made = te.compute((4,), lambda i: i * 2)
    assert made.op.output(np.int64(0)) is made
