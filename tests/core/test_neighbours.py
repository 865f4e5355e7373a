"""Names of other libraries: every message about one says what is written here."""

import math
from pathlib import Path

import numpy as np
import pytest

import tir
from tir import neighbours, te
from tir.neighbours import library_of, written_here
from tir.script import tir as T

HEAD = '@T.prim_func\ndef f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):\n    '


@pytest.mark.parametrize(
    "statement, here",
    [
        ("for i in prange(8):\n        A[i] = 1.0", "T.parallel"),
        ("for i in T.prange(8):\n        A[i] = 1.0", "T.parallel"),
        ("A[0] = np.exp(A[1])", "T.exp"),
        ("A[0] = math.sqrt(A[1])", "T.sqrt"),
        ("A[0] = np.where(A[1] > 0.0, A[1], 0.0)", "T.if_then_else"),
        ("A[0] = sqrt(A[1])", "T.sqrt"),
        ("A[0] = np.sum(A)", "tir.ops.sum"),
        ("A[0] = A.mean()", "tir.ops.mean"),
        ("A[0] = tl.load(A)", "from_triton"),
        ("cuda.syncthreads()", None),
        ("__syncthreads()", "T.tvm_storage_sync"),
        ("A[0] = np.convolve(A, B)", "loops, stores"),
    ],
)
def test_a_program_with_a_name_of_another_library_names_what_to_write(statement, here):
    with pytest.raises(tir.ParseError) as caught:
        tir.script.parse("import math\nimport numpy as np\n" + HEAD + statement)
    assert here is None or here in str(caught.value)


@pytest.mark.parametrize(
    "name, here", [("tune_tir", "tir.tune("), ("relax", "tir.graph"), ("meta_schedule", "tir.tune")]
)
def test_a_name_of_tvm_in_another_place_is_found(name, here):
    with pytest.raises(AttributeError, match=f"no attribute {name!r}; write") as caught:
        getattr(tir, name)
    assert here in str(caught.value)


@pytest.mark.parametrize(
    ("call", "here"),
    [
        (lambda sch, x: sch.vectorize("j", 8), r"sch.split\(loop, \[None, 8\]\)`, then `sch.vectorize\(inner\)"),
        (lambda sch, x: sch.tile("i", "j", 8, 8), r"write `sch.tile\(\"C\", \[8, 8\]\)"),
        (lambda sch, x: sch.vectorize(lop="j"), "`lop` is no parameter; did you mean loop"),
        (lambda sch, x: sch.gpu_tile("i", "j", 8, 8), "no 'gpu_tile'; write sch.tile"),
        (lambda sch, x: sch.vectorise("j"), "no 'vectorise'; did you mean vectorize"),
        (lambda sch, x: tir.build(sch, "gpu"), 'unknown target kind .*; write `target="cuda"`'),
        (lambda sch, x: tir.build(sch)[(8, 8)], r"called with its arrays, mod\(a, b\), not with a grid \(8, 8\)"),
        (lambda sch, x: x.mean(), "a tensor has no attribute `mean`; write .* `tir.ops.mean`"),
        (lambda sch, x: x.frobnicate, "a tensor has no attribute `frobnicate`$"),
    ],
)
def test_a_call_that_is_nearly_right_names_what_to_write(call, here):
    sch, x = tir.Schedule(tir.library.rows.softmax(8, 16)), te.placeholder((4,), name="x")
    with pytest.raises((tir.TirError, AttributeError, TypeError, ValueError), match=here):
        call(sch, x)


@pytest.mark.parametrize("origin", ["TVM", "Triton", "Halide", "numba", "NumPy"])
def test_six_typical_mistakes_from_each_origin_are_told_what_to_write(origin):
    page = (Path(__file__).parents[2] / "docs" / "typical_errors.md").read_text(encoding="utf-8")
    _, found, rest = page.partition(f"### Six from {origin}\n")
    shown = rest.partition("```text\n")[2].partition("```")[0]
    messages = [line for line in shown.splitlines() if line.startswith("    ")]
    assert found and len(messages) == 6
    assert all(any(word in m for word in ("; write ", "legal: ", "(…)", "mod(a, b)")) for m in messages), messages


def test_the_table_names_only_what_there_is():
    names = [row.split(": ", 1)[0] for row in neighbours._TABLE.splitlines()]
    assert len(names) == len(set(names))
    shown = [part for row in neighbours._TABLE.splitlines() for part in row.split("`")[1::2]]
    for text in shown:
        root, *path = text.split("(")[0].split(" ")[-1].split(".")
        if root in ("tir", "T", "te") and path and path[0].isidentifier():
            place = {"tir": tir, "T": T, "te": te}[root]
            for name in path:
                place = getattr(place, name)


def test_libraries_are_known_by_their_functions():
    found = [library_of(f) for f in (math.exp, np.exp, np.where, max, tir.simplify, written_here)]
    assert found == ["math", "numpy", "numpy", None, None, None]


def test_functions_of_other_libraries_take_numbers_that_are_known():
    func = tir.script.parse(
        "import math\nimport numpy as np\n" + HEAD + "A[0] = math.sqrt(4.0) + np.float32(np.maximum(1, 2))"
    )
    assert "A[0] = T.float32(4)" in func.script()


def test_topi_has_the_operators():
    import tir.topi.nn
    from tir.topi.nn import relu

    assert tir.topi.exp is tir.ops.exp and tir.topi.vision.reorg is tir.ops.vision.reorg
    assert tir.topi.nn.relu is tir.ops.nn.relu is relu and {"exp", "nn", "flip"} <= set(dir(tir.topi))
    with pytest.raises(AttributeError, match=r"there is no operator nn\.rleu; did you mean nn\.relu"):
        tir.topi.nn.rleu  # noqa: B018


def test_a_tensor_is_scheduled_and_built_as_its_function():
    a = te.placeholder((16,), name="a")
    out = te.compute((16,), lambda i: a[i] + 1.0, "out")
    assert tir.Schedule(out).get_loops("out")
    assert tir.build(out).new(np.ones(16, "float32")).tolist() == [2.0] * 16


@pytest.mark.parametrize("target", ["llvm", "interpreter"])
def test_print_prints_while_the_program_runs(target, capsys):
    @T.prim_func
    def shows(A: T.Buffer((3,), "float32"), H: T.Buffer((3,), "float16"), n: T.int64):
        for i in range(3):
            print("at", i, A[i], H[i], n, A[i] > 1.0)

    module = tir.build(shows, target)
    assert capsys.readouterr().out == ""
    module(np.array([0.1, 1, 2], "float32"), np.array([0.5, 1, 2], "float16"), 7)
    assert capsys.readouterr().out.splitlines() == [
        "at 0 0.1 0.5 7 False",
        "at 1 1.0 1.0 7 False",
        "at 2 2.0 2.0 7 True",
    ]


def test_print_of_what_is_no_value_prints_while_the_program_is_built(capsys):
    tir.script.parse(HEAD + "print(A.shape, sep='')\n    A[0] = 1.0")
    assert capsys.readouterr().out == "(8,)\n"
    with pytest.raises(tir.ParseError, match="not end="):
        tir.script.parse(HEAD + "print(A[0], end='')")
