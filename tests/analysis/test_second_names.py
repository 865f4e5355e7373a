"""Views of a block around that give memory a second name: what is written by one is read by the other."""

import pytest

from tests.prim_checks import refused, same, schedule

VIEWS = """
@T.prim_func
def main(B: T.Buffer((12,), "float32"), C: T.Buffer((12,), "float32")):
    for u in range(2):
        with T.block("outer"):
            z = T.axis.spatial(2, u)
            T.reads(B[0:12])
            T.writes(B[0:12])
            V = T.match_buffer({written}, (8,), offset_factor=1)
            W = T.match_buffer({read}, (8,), offset_factor=1)
            for i, j in T.grid(4, 2):
                with T.block("in"):
                    v, w = T.axis.remap("SS", [i, j])
                    V[v * 2 + w] = W[v * 2 + w] * 2.0
"""


@pytest.mark.parametrize(
    "written, read", [("B[0:8]", "B[1:9]"), ("B[1:9]", "B[0:8]"), ("B[z : z + 8]", "B[z + 1 : z + 9]")]
)
def test_iterations_that_meet_by_two_views(written, read):
    text = VIEWS.format(written=written, read=read)
    refused(lambda: schedule(text).parallel("i"), "two of its iterations touch the same element")
    refused(lambda: schedule(text).vectorize("j"), "two of its iterations touch the same element")
    refused(lambda: schedule(text).reorder("j", "i"), "element")


def test_a_view_and_its_source():
    text = VIEWS.format(written="B[0:8]", read="C[0:8]").replace("W[v * 2 + w] *", "B[v * 2 + w + 1] *")
    refused(lambda: schedule(text).parallel("i"), "two of its iterations touch the same element")


@pytest.mark.parametrize(
    "written, read", [("B[0:8]", "B[0:8]"), ("B[z : z + 8]", "B[z : z + 8]"), ("B[0:8]", "C[1:9]")]
)
def test_views_of_the_same_elements_or_of_other_memory(written, read):
    sch = schedule(VIEWS.format(written=written, read=read))
    sch.reorder("j", "i")
    sch.parallel("i")
    same(sch)


STAGED = """
@T.prim_func
def main(A: T.Buffer((12,), "float32"), B: T.Buffer((12,), "float32"), C: T.Buffer((12,), "float32")):
    for u in range(2):
        with T.block("outer"):
            z = T.axis.spatial(2, u)
            T.reads(A[0:12], B[0:12])
            T.writes(B[0:12], C[0:12])
            V = T.match_buffer(B[0:8], (8,), offset_factor=1)
            W = T.match_buffer(B[1:9], (8,), offset_factor=1)
            D = T.alloc_buffer((8,), "float32")
            for i in range(8):
                with T.block("D"):
                    v = T.axis.spatial(8, i)
                    D[v] = W[v] * 2.0
            for j in range(8):
                with T.block("C"):
                    v = T.axis.spatial(8, j)
                    C[v] = D[v]
                with T.block("V"):
                    v = T.axis.spatial(8, j)
                    V[v] = A[v] + 3.0
"""


def test_moves_over_a_write_by_another_view():
    """D reads B[v + 1], which is written one iteration later; by the other view B[v], which is written already."""
    sch = schedule(STAGED)
    sch.compute_at("D", "j")
    same(sch)
    late = STAGED.replace("W[v] * 2.0", "V[v] * 2.0").replace("V[v] = A", "W[v] = A")
    refused(lambda: schedule(late).compute_at("D", "j"), "overwritten before it is read")
    refused(lambda: schedule(late).compute_inline("D"), "overwritten before it is read")
    refused(lambda: schedule(late).merge("i", "j"), "overwritten before it is read")


def test_a_copy_of_what_another_view_writes():
    text = VIEWS.format(written="B[0:8]", read="B[0:8]")
    for step in ("cache_read", "cache_write"):
        refused(lambda: getattr(schedule(text), step)("in", 0, "global"), "as V" if step == "cache_read" else "as W")
    sch = schedule(VIEWS.format(written="B[0:8]", read="C[0:8]"))
    sch.cache_read("in", 0, "global")
    sch.cache_write("in", 0, "global")
    same(sch)


HEAD = """
@T.prim_func
def main(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), C: T.Buffer((16,), "int32")):
    with T.block("outer"):
        T.reads(A[0:16], B[0:16], C[0:16])
        T.writes(A[0:16], B[0:16], C[0:16])
        V = T.match_buffer(B[0:16], (16,), "int32")
"""
UNSWITCHED = """
        for i in range(8):
            if B[0] > 0:
                V[0] = V[0] - 1
                C[i] = 1
"""
INIT_READS = """
        for i, k in T.grid(4, 4):
            with T.block("M"):
                vi = T.axis.spatial(4, i)
                V[vi + 1] = A[vi]
            with T.block("R"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = B[vi + 1]
                C[vi] = C[vi] + A[vi + vk]
"""
RESULT_READ = """
        for i, k in T.grid(4, 4):
            with T.block("R"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = 0
                B[vi] = B[vi] + A[vi + vk]
            with T.block("M"):
                vi, vk = T.axis.remap("SS", [i, k])
                C[vi * 4 + vk] = V[3 - vi]
"""
PADDED = """
        for i in range(16):
            with T.block("P"):
                vi = T.axis.spatial(16, i)
                B[vi] = T.if_then_else(vi > 2 and vi < 12, {value}, 0)
            with T.block("M"):
                vi = T.axis.spatial(16, i)
                C[vi] = {read}
"""
WRITTEN_THEN_READ = """
        for i in range(16):
            with T.block("V"):
                vi = T.axis.spatial(16, i)
                V[15 - vi] = A[vi] + 1
            with T.block("C"):
                vi = T.axis.spatial(16, i)
                C[vi] = B[vi]
"""
READ_AND_WRITTEN = """
        for i in range(16):
            with T.block("C"):
                vi = T.axis.spatial(16, i)
                B[vi] = A[vi] + V[15 - vi]
"""
GUARDED = """
        for i, k in T.grid(4, 4):
            with T.block("R"):
                vi, vk = T.axis.remap("SR", [i, k])
                T.where({read} > -3)
                with T.init():
                    V[vi] = 0
                V[vi] = V[vi] + A[vi + vk] - 3
"""
PIPELINED = """
        for i in range(14):
            with T.block("p"):
                V[i] = A[i] + 1
            with T.block("q"):
                C[i] = B[i]
"""
STEPS = {
    "a condition": (UNSWITCHED, lambda s: s.unswitch("i"), "which the loop writes"),
    "what an init reads": (INIT_READS, lambda s: s.decompose_reduction("R", s.get_loops("R")[1]), "the init of"),
    "a result": (RESULT_READ, lambda s: s.decompose_reduction("R", s.get_loops("R")[0]), "uses the result of"),
    "a predicate": (
        GUARDED.format(read="B[0]"),
        lambda s: s.decompose_reduction("R", s.get_loops("R")[0]),
        "depends on `B[0]`, which it writes",
    ),
    "a predicate by the same name": (
        GUARDED.format(read="V[0]"),
        lambda s: s.decompose_reduction("R", s.get_loops("R")[1]),
        "depends on `V[0]`, which it writes",
    ),
    "what is filled": (
        PADDED.format(value="A[vi]", read="V[15 - vi]"),
        lambda s: s.decompose_padding("P", "i"),
        "would come between",
    ),
    "what fills itself": (
        PADDED.format(value="V[15 - vi]", read="A[vi]"),
        lambda s: s.decompose_padding("P", "i"),
        "which the fill would overwrite",
    ),
    "what is copied": (WRITTEN_THEN_READ, lambda s: s.reindex("C", ("read", 0)), "the memory of B as V"),
    "what is copied back": (READ_AND_WRITTEN, lambda s: s.reindex("C", ("write", 0)), "the memory of B as V"),
    "stages of a pipeline": (
        PIPELINED,
        lambda s: s.annotate("i", "software_pipeline_stage", [1, 0]),
        "would run before `p`",
    ),
}


@pytest.mark.parametrize(("body", "step", "why"), STEPS.values(), ids=STEPS)
def test_what_a_step_asks_of_memory_that_a_view_names_too(body, step, why):
    refused(lambda: step(schedule(HEAD + body)), why)


@pytest.mark.parametrize(("body", "step"), [(b, s) for b, s, _ in list(STEPS.values())[:3]], ids=list(STEPS)[:3])
def test_a_view_of_other_memory_forbids_nothing(body, step):
    text = (
        (HEAD + body)
        .replace("T.match_buffer(B[0:16]", "T.match_buffer(D[0:16]")
        .replace("C[0:16])", "C[0:16], D[0:16])")
    )
    sch = schedule(text.replace('"int32")):', '"int32"), D: T.Buffer((16,), "int32")):'))
    step(sch)
    same(sch)
