"""set_scope, storage_align, unsafe_set_dtype, set_axis_separator."""

from __future__ import annotations

import numpy as np
import pytest
from prim_checks import refused, same, schedule

import tir
from tir.script import parse

TWO = """
@T.prim_func
def main(A: T.Buffer((16, 10), "float32"), C: T.Buffer((16, 10), "float32")):
    B = T.alloc_buffer((16, 10), "float32")
    for i, j in T.grid(16, 10):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(16, 10):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + T.float32(1)
"""


def test_set_scope() -> None:
    sch = schedule(TWO)
    sch.set_scope("B", 0, "shared")
    expected = TWO.replace('B = T.alloc_buffer((16, 10), "float32")', 'B = T.alloc_buffer((16, 10), scope="shared")')
    same(sch, expected)


@pytest.mark.parametrize("scope", ["local", "shared.dyn", "wmma.accumulator", "global"])
def test_scopes_by_name_of_the_buffer(scope: str) -> None:
    sch = schedule(TWO)
    sch.set_scope("B", "B", scope)
    same(sch)
    assert sch.get(sch.get_block("B")).writes[0].buffer.scope == scope


def test_scope_inside_a_nested_block() -> None:
    sch = schedule(TWO)
    sch.blockize(sch.get_loops("B")[1])
    sch.set_scope("B_o", 0, "shared")
    same(sch)


def test_scope_refusals() -> None:
    sch = schedule(TWO)
    refused(lambda: sch.set_scope("B", 0, "shard"), "no storage scope `shard`", "shared")
    refused(lambda: sch.set_scope("C", 0, "shared"), "a parameter of the function")
    refused(lambda: sch.set_scope("B", 1, "shared"), "no number 1")
    refused(lambda: sch.set_scope("B", "Q", "shared"), "does not write a buffer `Q`")


def test_storage_align() -> None:
    sch = schedule(TWO)
    sch.storage_align("B", 0, -2, 32, 1)
    same(
        sch,
        TWO.replace(
            "            B[vi, vj] = ",
            '            T.block_attr({"buffer_dim_align": [[0, 0, 32, 1]]})\n            B[vi, vj] = ',
        ),
    )


def test_storage_align_replaces_what_was_said_of_the_axis() -> None:
    sch = schedule(TWO)
    sch.storage_align("B", 0, 0, 32, 1)
    sch.storage_align("B", 0, 1, 8, 0)
    sch.storage_align("B", 0, 0, 16, 0)
    same(sch)
    notes = sch.get(sch.get_block("B")).annotations["buffer_dim_align"]
    assert sorted(tuple(int(x) for x in n) for n in notes) == [(0, 0, 16, 0), (0, 1, 8, 0)]


def test_storage_align_is_lowered_to_a_padded_row() -> None:
    sch = schedule(TWO)
    sch.storage_align("B", 0, 0, 32, 1)
    text = str(tir.lower(sch.mod, upto="flatten_buffer"))
    assert "* 33" in text or "33 +" in text, text


def test_storage_align_refusals() -> None:
    sch = schedule(TWO)
    refused(lambda: sch.storage_align("B", 0, 2, 32, 1), "has 2 axes, so there is no axis 2")
    refused(lambda: sch.storage_align("B", 0, -3, 32, 1), "no axis -3")
    refused(lambda: sch.storage_align("B", 0, 0, 0, 1), "must be positive, not 0")
    refused(lambda: sch.storage_align("B", 0, 0, 8, -1), "at least 0, not -1")
    refused(lambda: sch.storage_align("B", 1, 0, 8, 1), "no number 1")


def test_set_dtype() -> None:
    from tir.interp import run

    sch = schedule(TWO)
    sch.unsafe_set_dtype("B", 0, "float16")
    expected = (
        TWO.replace('T.alloc_buffer((16, 10), "float32")', 'T.alloc_buffer((16, 10), "float16")')
        .replace("A[vi, vj] * T.float32(2)", 'T.cast(A[vi, vj] * T.float32(2), "float16")')
        .replace("B[vi, vj] + T", 'T.cast(B[vi, vj], "float32") + T')
    )
    tir.assert_structural_equal(parse(expected), sch.mod["main"])
    tir.assert_structural_equal(sch.trace.replay(parse(TWO)).mod, sch.mod)
    a = np.random.default_rng(0).standard_normal((16, 10)).astype("float32")
    c = np.zeros((16, 10), "float32")
    run(sch.mod, a, c)
    np.testing.assert_allclose(c, (a * 2).astype("float16").astype("float32") + 1)


def test_set_dtype_of_an_accumulator() -> None:
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((4, 8), "int8"), C: T.Buffer((4,), "int32")):
    B = T.alloc_buffer((4,), "int32")
    for i, k in T.grid(4, 8):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + T.cast(A[vi, vk], "int32")
    for i in range(4):
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            C[vi] = B[vi]
""")
    sch.unsafe_set_dtype("B", 0, "int16")
    same(sch)


def test_set_dtype_refusals() -> None:
    sch = schedule(TWO)
    refused(lambda: sch.unsafe_set_dtype("C", 0, "float16"), "a parameter of the function")
    refused(lambda: sch.unsafe_set_dtype("B", 0, "float17"), "unknown data type 'float17'")
    refused(lambda: sch.unsafe_set_dtype("B", 0, "float32x4"), "one an element, not float32x4")


EXTERN = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((8,), "float32")
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = A[v]
    with T.block("E"):
        T.reads(B[0:8])
        T.writes(C[0:8])
        {}
"""
COPIES = ["C.data, B.data", 'C.access_ptr("w"), B.access_ptr("r")', "T.address_of(C[0]), T.address_of(B[0])"]


@pytest.mark.parametrize("pointers", COPIES)
def test_memory_that_a_call_has_the_address_of_keeps_its_type_and_layout(pointers) -> None:
    call = f'T.evaluate(T.call_extern("void", "memcpy", {pointers}, T.uint64(32)))'
    sch = schedule(EXTERN.format(call))
    refused(
        lambda: sch.unsafe_set_dtype("B", 0, "float16"), "has the address of memory of B, and expects float32 there"
    )
    refused(
        lambda: sch.transform_layout("B", "B", lambda i: 7 - i),
        "of B around" if "address" in pointers else "by its pointer",
    )


def test_addresses_of_single_elements_follow() -> None:
    lines = "T.evaluate(T.prefetch(T.address_of(B[1]), 0, 3, 1))\n        C[0] = T.atomic_add(T.address_of(B[1]), A[0], dtype='float32')"
    sch = schedule(EXTERN.format(lines).replace("T.reads(B[0:8])\n        T.writes(C[0:8])", "pass"))
    sch.transform_layout("B", "B", lambda i: 7 - i)
    assert "T.address_of(B[6])" in sch.script() and "T.address_of(B[1])" not in sch.script()
    sch = schedule(EXTERN.format(lines.split("\n")[0]))
    sch.unsafe_set_dtype("B", 0, "float16")
    assert "T.prefetch(B[1])" in sch.script() or "T.address_of(B[1])" in sch.script()


def test_axis_separator() -> None:
    sch = schedule(TWO)
    sch.set_axis_separator("B", ("write", 0), [1])
    same(sch, TWO.replace('(16, 10), "float32")\n    for', '(16, 10), "float32", axis_separators=[1])\n    for'))


def test_axis_separator_of_a_parameter() -> None:
    sch = schedule(TWO)
    sch.set_axis_separator("B", ("read", 0), [1])
    same(sch)
    assert sch.func.buffers()[0].axis_separators == (1,)


def test_axis_separator_refusals() -> None:
    sch = schedule(TWO)
    refused(lambda: sch.set_axis_separator("B", "B", [2, 1]), "do not increase")
    refused(lambda: sch.set_axis_separator("B", "B", [3]), "do not increase")
    refused(lambda: sch.set_axis_separator("B", ("both", 0), [1]), 'legal: "read" or "write"')


VIEWED = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((8,), "float32")
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            T.reads(A[v])
            T.writes(B[v])
            W = T.match_buffer(B[v], (1,), offset_factor=1)
            W[0] = A[v] * T.float32(2)
    for o in range(2):
        with T.block("rows"):
            vo = T.axis.spatial(2, o)
            T.reads(B[vo * 4:vo * 4 + 4])
            T.writes(C[vo * 4:vo * 4 + 4])
            R = T.match_buffer(B[vo * 4:vo * 4 + 4], (4,), offset_factor=1)
            for i in range(4):
                with T.block("C"):
                    v = T.axis.spatial(4, i)
                    T.reads(R[v])
                    T.writes(C[vo * 4 + v])
                    Q = T.match_buffer(R[v], (1,), offset_factor=1)
                    C[vo * 4 + v] = Q[0] + T.float32(1)
"""


def _buffers(func: tir.PrimFunc) -> dict[str, tir.Buffer]:
    from tir.visit import accesses

    return {a.buffer.name: a.buffer for a in accesses(func.body)}


def test_views_follow_a_new_data_type() -> None:
    sch = schedule(VIEWED)
    sch.unsafe_set_dtype("B", 0, "float64")
    same(sch)
    assert {n: str(b.dtype) for n, b in _buffers(sch.mod["main"]).items() if n in "WQ"} == dict.fromkeys(
        "WQ", "float64"
    )


def test_views_follow_a_new_scope() -> None:
    sch = schedule(VIEWED)
    sch.set_scope("B", 0, "local")
    same(sch)
    assert {b.scope for n, b in _buffers(sch.mod["main"]).items() if n in "WQ"} == {"local"}


@pytest.mark.parametrize("steps", ["unsafe_set_dtype", "set_scope"])
def test_a_view_itself_has_neither_data_type_nor_scope(steps: str) -> None:
    sch = schedule(VIEWED.replace("T.writes(C[vo * 4 + v])", "T.writes(C[vo * 4 + v], R[v])"))
    word = "float64" if steps == "unsafe_set_dtype" else "local"
    refused(lambda: getattr(sch, steps)("C", "R", word), "R is a view of a region of B")


@pytest.mark.parametrize("index_map", [lambda i: 3 - i, lambda i: i + 1, lambda i: i * 2, lambda i: i])
def test_the_layout_of_a_view_is_that_of_its_source(index_map) -> None:
    sch = schedule(VIEWED)
    refused(lambda: sch.transform_layout("C", "R", index_map), "R is a view of a region of B")


@pytest.mark.parametrize("change", [{"dtype": "float16"}, {"scope": "shared"}])
def test_a_view_unlike_its_source_is_not_well_formed(change: dict[str, str]) -> None:
    from tir.analysis import wellformed
    from tir.visit import rewrite

    def other(node):
        if isinstance(node, tir.Buffer) and node.name == "W":
            return node.with_dtype(tir.DType("float16")) if "dtype" in change else node.replace(scope="shared")
        return None

    func = parse(VIEWED)
    problems = wellformed.check(func.replace(body=rewrite(func.body, other)))
    assert any("view `W`" in str(p) for p in problems)


@pytest.mark.parametrize(
    ("layout", "axis", "fits"),
    [
        ("strides=[s0, 1]", 0, True),
        ("strides=[8, 1]", 0, False),
        ("strides=[s0, 1]", 1, False),
        ("strides=[s0, s1]", 1, True),
        ("offset_factor=8", 0, False),
        ("strides=[m, 1]", 0, False),
    ],
)
def test_storage_align_keeps_what_a_view_declares(layout: str, axis: int, fits: bool) -> None:
    names = "".join(f"    {s} = T.int32()\n" for s in ("s0", "s1") if s in layout)
    func = tir.script.parse(f"""
@T.prim_func
def main(A: T.Buffer((4, 8), "int32"), O: T.Buffer((4, 8), "int32"), m: T.int32):
{names}    H = T.alloc_buffer((4, 8), "int32")
    for i, j in T.grid(4, 8):
        with T.block("H"):
            vi, vj = T.axis.remap("SS", [i, j])
            H[vi, vj] = A[vi, vj] * 2
    for i in range(4):
        with T.block("O"):
            vi = T.axis.spatial(4, i)
            V = T.match_buffer(H[vi, 0:8], (1, 8), "int32", {layout})
            for j in range(8):
                O[vi, j] = V[0, j]
""")
    sch = tir.Schedule(func)
    if not fits:
        with pytest.raises(tir.ScheduleError, match="view V of buffer H declares its layout"):
            sch.storage_align("H", 0, axis, 4, 3)
        return
    sch.storage_align("H", 0, axis, 4, 3)
    a, got = np.arange(32, dtype="int32").reshape(4, 8), np.zeros((4, 8), "int32")
    tir.build(sch.mod, "llvm")(a, got, 8)
    np.testing.assert_array_equal(got, a * 2)


def test_strides_and_axis_separators_exclude_each_other() -> None:
    """The strides were ignored."""
    text = """
@T.prim_func
def main(a: T.handle, O: T.Buffer((3, 4), "int32")):
    s0 = T.int32()
    A = T.match_buffer(a, (3, 4), "int32", strides=[s0, 1]SEPARATORS)
    for i, j in T.grid(3, 4):
        with T.block("O"):
            vi, vj = T.axis.remap("SS", [i, j])
            O[vi, vj] = A[vi, vj]
"""
    sch = tir.Schedule(tir.script.parse(text.replace("SEPARATORS", "")))
    with pytest.raises(tir.ScheduleError, match="A declares its strides"):
        sch.set_axis_separator("O", "A", [1])
    with pytest.raises(tir.BuildError, match="`A` declares strides"):
        tir.build(tir.script.parse(text.replace("SEPARATORS", ", axis_separators=[1]")), "llvm")


STRIDES_OF_AN_ARGUMENT = """
@T.prim_func
def main(a: T.handle, C: T.Buffer((4, 8), "int32"), m: T.int32):
    s0 = T.int32()
    s1 = T.int32()
    t0 = T.int32()
    A = T.match_buffer(a, (4, m), "int32", strides=[s0, s1])
    for o in range(4):
        with T.block("tile"):
            vo = T.axis.spatial(4, o)
            T.reads(A[vo, 0:m])
            T.writes(C[vo, 0:m])
            V = T.match_buffer(A[vo, 0:m], (1, m), "int32", strides=[{0}, {1}], offset_factor=1)
            for j in range(m):
                with T.block("row"):
                    vj = T.axis.spatial(m, j)
                    C[vo, vj] = V[0, vj] + m + {0}
"""


@pytest.mark.parametrize("strides", [("s0", "s1"), ("t0", "s1")], ids=["given", "its own"])
def test_a_copied_view_keeps_the_strides_of_the_argument(strides):
    before = tir.script.parse(STRIDES_OF_AN_ARGUMENT.format(*strides))
    tir.testing.check_schedule(before, lambda sch: sch.loop_partition("o", [2, None]), sizes={"m": 8})


def test_a_stride_that_is_a_value_stays():
    text = """
@T.prim_func
def main(A: T.Buffer((4, 8), "int32"), C: T.Buffer((4, 8), "int32")):
    H = T.alloc_buffer((4, 8), "int32")
    for i, j in T.grid(4, 8):
        with T.block("H"):
            vi, vj = T.axis.remap("SS", [i, j])
            H[vi, vj] = A[vi, vj] * 2
    for i in range(4):
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            T.reads(H[vi, 0:8])
            T.writes(C[vi, 0:8])
            s0 = T.int32()
            s1 = T.int32()
            V = T.match_buffer(H[vi, 0:8], (1, 8), "int32", strides=[s0, s1], offset_factor=1)
            for j in range(8):
                C[vi, j] = V[0, j]{value}
"""
    refused(lambda: schedule(text.format(value=" + s0")).storage_align("H", 0, 0, 16, 4), "computes with strides")
    sch = schedule(text.format(value=" + 1"))
    sch.storage_align("H", 0, 0, 16, 4)
    same(sch)


def test_no_memory_is_read_ahead_to_know_what_to_prefetch():
    func = parse("""
@T.prim_func
def main(R: T.Buffer((6,), "int32"), A: T.Buffer((20,), "int32"), O: T.Buffer((5,), "int32")):
    for i in range(5):
        for k in range(R[i], R[i + 1]):
            with T.block("O"):
                vi = T.axis.spatial(5, i)
                vk = T.axis.reduce(20, k)
                T.reads(A[vk], R[0:6])
                T.writes(O[vi])
                O[vi] += A[vk]
""")
    refused(lambda: tir.Schedule(func).prefetch("i", "O", 0, 2), "may be out of bounds past the last iteration of loop")
