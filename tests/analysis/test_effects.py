"""The effects of a statement: whatever memory steers or places it is read, wherever that stands."""

from __future__ import annotations

import pytest

from tests.gpu_examples import load
from tir.analysis.effects import PREFETCH, READ, WRITE, Effect, Surroundings, effects, outline
from tir.analysis.index import index_of
from tir.arith.linear import key
from tir.expr import Ramp, Var
from tir.script import parse
from tir.stmt import Block, For
from tir.visit import walk

PROGRAM = """
@T.prim_func
def main(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32"), P: T.Buffer((64,), "int32")):
    for i in range(8):
        {statement}
"""
POINTER = "T.tvm_access_ptr(T.type_annotation('int32'), {}.data, {}, {}, {})"
READS_P = {
    "the place of a store": "A[P[i]] = 1",
    "the place of a load": "A[0] = B[P[i]]",
    "the place of a place": "A[0] = B[B[P[i]]]",
    "lanes": "A[T.Ramp(P[i], 1, 4)] = T.Broadcast(1, 4)",
    "a condition": "if P[i] > 0:\n            A[0] = 1",
    "a later condition": "if i > 2 and P[i] > 0:\n            A[0] = 1",
    "an alternative": "if i > 2 or P[i] > 0:\n            A[0] = 1",
    "an extent": "for k in range(P[i]):\n            A[k] = 1",
    "a start": "for k in range(P[i], 8):\n            A[k] = 1",
    "a while loop": "while P[i] > 0:\n            A[0] = 1",
    "a choice": "A[0] = T.if_then_else(P[i] > 0, B[0], 2)",
    "the other side of a choice": "A[0] = T.if_then_else(i > 0, 2, P[i])",
    "a selection": "A[0] = T.Select(P[i] > 0, 1, 2)",
    "a name": "v: T.int32 = P[i]\n        A[v] = 1",
    "an assertion": "assert P[i] > 0, 'positive'",
    "an attribute": "with T.attr(0, 'note', P[i]):\n            A[0] = 1",
    "the size of memory": "c = T.allocate([P[i]], 'int32', 'global')\n        A[0] = 1",
    "an argument": "T.evaluate(T.call_extern('int32', 'f', P[i]))",
    "an address": "T.evaluate(T.call_extern('int32', 'f', T.address_of(A[P[i]])))",
    "an offset": f"T.evaluate(T.call_extern('int32', 'f', {POINTER.format('A', 'P[i]', 1, 1)}))",
    "a computed pointer": "T.evaluate(T.call_extern('int32', 'f', "
    "T.tvm_access_ptr(T.type_annotation('int32'), T.address_of(A[P[i]]), 0, 1, 1)))",
    "a number of elements": f"T.evaluate(T.call_extern('int32', 'f', {POINTER.format('A', 0, 'P[i]', 1)}))",
    "a prefetched address": "T.evaluate(T.prefetch(T.address_of(A[P[i]]), 0, 3, 1))",
    "a prefetched offset": f"T.evaluate(T.prefetch({POINTER.format('A', 'P[i]', 1, 1)}, 0, 3, 1))",
    "a predicate": "with T.block('b'):\n            vi = T.axis.spatial(8, i)\n            T.where(P[i] > 0)\n            A[vi] = 1",
    "a binding": "with T.block('b'):\n            vi = T.axis.spatial(64, P[i])\n            A[vi] = 1",
    "an inner block": "with T.block('b'):\n            vi = T.axis.spatial(8, i)\n            A[vi] = P[vi]",
}


def body_of(statement: str, around: str = PROGRAM) -> tuple[Var, object]:
    """The loop variable, and the statement in the loop."""
    loop = next(n for n in walk(parse(around.format(statement=statement)).body) if isinstance(n, For))
    return loop.loop_var, loop.body


@pytest.mark.parametrize("where", READS_P)
def test_what_is_read(where):
    i, body = body_of(READS_P[where])
    found = [e for e in effects(body) if e.buffer.name == "P"]
    assert found and all(e.kind == READ and e.indices is not None and e.indices[0] is i for e in found)


@pytest.mark.parametrize(
    ("statement", "kinds"),
    [
        (f"T.evaluate(T.call_extern('int32', 'f', {POINTER.format('A', 0, 1, 1)}))", {READ}),
        (f"T.evaluate(T.call_extern('int32', 'f', {POINTER.format('A', 0, 1, 2)}))", {WRITE}),
        (f"T.evaluate(T.call_extern('int32', 'f', {POINTER.format('A', 0, 1, 3)}))", {READ, WRITE}),
        ("T.evaluate(T.call_extern('int32', 'f', A.data))", {READ, WRITE}),
        ("T.evaluate(T.call_extern('int32', 'f', T.address_of(A[i])))", {READ, WRITE}),
        ("T.evaluate(T.prefetch(T.address_of(A[i]), 0, 3, 1))", {PREFETCH}),
        (f"T.evaluate(T.prefetch({POINTER.format('A', 'i', 1, 1)}, 0, 3, 1))", set()),
        ("T.evaluate(T.call_pure_extern('int32', 'f', A[i]))", {READ}),
    ],
)
def test_what_a_call_does_behind_its_pointers(statement, kinds):
    _, body = body_of(statement)
    found = effects(body)
    assert {e.kind for e in found if e.buffer.name == "A"} == kinds
    assert found.opaque == ("call_extern" in statement)
    passed = [e for e in found if "call_extern" in statement and e.buffer.name == "A"]
    assert all(e.indices is None for e in passed)  # any element


def test_conditions_around_an_access():
    """Each access has the conditions under which it happens, and no other."""
    i, body = body_of("""if i < 4:
            A[i] = B[i]
        else:
            A[i + 1] = T.if_then_else(i < 6, P[i], 0)
        A[0] = 2""")
    found = {(e.buffer.name, e.kind, repr(e.indices)): [repr(g) for g in e.guards] for e in effects(body)}
    assert found == {
        ("B", READ, "(i,)"): ["i < 4"],
        ("A", WRITE, "(i,)"): ["i < 4"],
        ("P", READ, "(i,)"): ["not i < 4", "i < 6"],
        ("A", WRITE, "(i + 1,)"): ["not i < 4"],
        ("A", WRITE, "(0,)"): [],
    }


VIEWS = """
@T.prim_func
def main(A: T.Buffer((4, 6, 16), "int32"), C: T.Buffer((64,), "int32")):
    for i, j in T.grid(4, 6):
        with T.block("b"):
            vi, vj = T.axis.remap("SS", [i, j])
            V = T.match_buffer(A[{region}], ({shape}), "int32")
            {statement}
"""


@pytest.mark.parametrize(
    ("region", "shape", "statement", "elements"),
    [
        ("vi, vj, 0:16", "16,", "V[3] = 1", "(i, j, 3)"),
        ("vi, vj, 4:12", "8,", "V[3] = 1", "(i, j, 7)"),
        ("vi, vj, 0:16", "16,", "V[T.Ramp(0, 1, 4)] = T.Broadcast(1, 4)", "(i, j, T.Ramp(0, 1, 4))"),
        ("vi, vj, 8:12", "4,", "V[T.Ramp(0, 1, 4)] = T.Broadcast(1, 4)", "(i, j, T.Ramp(8, 1, 4))"),
        ("vi, 0:6, 0:16", "6, 16", "V[2, T.Ramp(0, 1, 32)] = T.Broadcast(1, 32)", "(i, (2, 2), (0, 16))"),
        ("vi, 0:6, 0:16", "96,", "V[3] = 1", "((i, 1), (0, 6), (0, 16))"),  # axes put together: any element
    ],
)
def test_elements_of_a_view(region, shape, statement, elements):
    func = parse(VIEWS.format(region=region, shape=shape, statement=statement))
    loops = [n for n in walk(func.body) if isinstance(n, For)]
    (write,) = [e for e in effects(loops[-1].body) if e.write]
    assert write.buffer.name == "A"
    assert repr(write.indices) == elements


LANES = PROGRAM.replace('A: T.Buffer((64,), "int32")', 'A: T.Buffer((64, 64), "int32")')


@pytest.mark.parametrize(
    ("indices", "elements"),
    [
        ("i, 3", "(i, 3)"),
        ("i, T.Ramp(4, 1, 2)", "(i, 4 + lane) for lane in 0..2"),
        ("i, T.Ramp(i, 3, 4)", "(i, i + lane * 3) for lane in 0..4"),
        ("i, T.Ramp(7, -1, 2)", "(i, 7 + lane * -1) for lane in 0..2"),
        ("i, T.Shuffle([T.Ramp(0, 1, 4)], [2, 0])", "None"),  # lanes of which no form is known: any element
        ("i, P[T.Ramp(0, 1, 2)]", "None"),
        ("i, T.Ramp(0, 1, 4) // 2", "None"),
    ],
)
def test_the_element_of_each_lane(indices, elements):
    """A vector of two lanes is a vector, too."""
    _, body = body_of(f"T.evaluate(A[{indices}])", LANES)
    (read,) = [e for e in effects(body) if e.buffer.name == "A"]
    found, loops = read.elements()
    lanes = "".join(f" for {v.name} in {low!r}..{extent!r}" for v, low, extent in loops)
    assert f"{found!r}{lanes}" == elements


def test_blocks_inside_count_by_their_regions():
    func = parse("""
@T.prim_func
def main(A: T.Buffer((8, 8), "int32"), B: T.Buffer((8, 8), "int32")):
    for i in range(8):
        with T.block("outer"):
            vi = T.axis.spatial(8, i)
            T.reads(A[vi, 0:8])
            T.writes(B[vi, 0:8])
            for j in range(8):
                with T.block("inner"):
                    vj = T.axis.spatial(8, j)
                    T.reads(A[vi, 0:8])
                    T.writes(B[vi, vj])
                    B[vi, vj] = A[vi, vj]
""")
    block = next(n for n in walk(func.body) if isinstance(n, Block) and n.name == "outer")
    declared = {e.buffer.name: e.indices for e in outline(block)}
    exact = {e.buffer.name: e.indices for e in effects(block)}
    assert repr(declared["A"][1]) == "(0, 8)" and not isinstance(exact["A"][1], (tuple, Ramp))


def _told(effect: Effect):
    """Everything about an effect, comparable."""

    def of(parts):
        return None if parts is None else tuple(tuple(map(key, p)) if isinstance(p, tuple) else key(p) for p in parts)

    through = None if effect.through is None else (key(effect.through[0]), effect.through[1])
    about = (effect.buffer.data, effect.kind, effect.node, effect.block, through)
    return (
        *about,
        of(effect.indices),
        of(effect.guards),
        of(effect.first),
        [(v, *of(ends)) for v, *ends in effect.loops],
    )


@pytest.mark.parametrize("name", ["sgemm", "mma_gemm"])
def test_effects_kept_with_blocks_are_those_of_the_whole_statement(name):
    _, sch = load(name).small()
    unused = Surroundings(lets={Var("unused"): Var("none")})  # what has surroundings is walked whole
    for state in sch.states[::5]:
        for stmt in (state.func.body, *index_of(state.func).nodes):
            found, whole = effects(stmt), effects(stmt, unused)
            assert list(map(_told, found)) == list(map(_told, whole))
            assert list(map(_told, found.views)) == list(map(_told, whole.views))
            assert (found.opaque, found.allocated) == (whole.opaque, whole.allocated)


def test_effects_are_kept_with_a_statement_unless_its_surroundings_matter():
    func = parse(PROGRAM.format(statement="A[i] = B[i]"))
    loop = next(n for n in walk(func) if isinstance(n, For))
    body = loop.body
    assert effects(loop) is effects(loop)
    other = Var("x")
    named = Surroundings(lets={other: Var("y")})
    assert effects(loop, named) is not effects(loop)
    (write,) = (e for e in effects(body) if e.kind == WRITE)
    (place,) = write.indices
    assert write.substituted({}) is write and write.substituted({other: place}) is write
    assert write.substituted({place: other}).indices == (other,)


def test_a_pointer_leads_to_the_buffer_that_is_known_around_its_block():
    func = parse("""
@T.prim_func
def main(A: T.Buffer((8, 8), "float32")):
    for i, j in T.grid(8, 8):
        with T.block("A"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = T.float32(0)
    with T.block("f"):
        T.reads()
        T.writes(A[0:8, 0:8])
        T.evaluate(T.call_extern("void", "f", A.data))
""")
    (buffer,) = func.buffer_map.values()
    assert {e.buffer for e in effects(func.body)} == {buffer}


def test_a_tensor_map_is_read_or_written_by_the_copy_that_takes_it():
    found = effects(
        parse("""
@T.prim_func
def f(A: T.Buffer((64, 64), "float16"), B: T.Buffer((64, 64), "float16"), S: T.Buffer((4096,), "float16", scope="shared")):
    T.ptx_cp_async_bulk_tensor(S.data, 0, T.tensor_map(A, (64, 64)), 0, 0, 0)
    T.ptx_cp_async_bulk_tensor_store(T.tensor_map(B, (64, 64)), S.data, 0, 0, 0)
""").body
    )
    assert [(e.kind, e.buffer.name) for e in found] == [(WRITE, "S"), (READ, "A"), (WRITE, "B"), (READ, "S")]
