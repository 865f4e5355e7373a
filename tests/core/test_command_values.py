"""What the verbs make of values: options, names, limits, arguments, and how each is refused, word for word."""

from __future__ import annotations

import argparse
import io
import json
import os
import tarfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from small_models import small_model

import tir
from tir.cli import (
    command_line,
    execution,
    file_verbs,
    models,
    program_files,
    program_texts,
    subjects,
    tuning_verb,
    tvmc,
    verbs,
)
from tir.dtype import DType
from tir.library import rows
from tir.script import programs_in
from tir.script import tir as T
from tir.testing import oracle

HEAD = 'from tir.script import tir as T\n@T.prim_func\ndef f(A: T.Buffer((8,), "int32"), n: T.int32):\n'
PROGRAM = HEAD + "    A[0] = n\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch, kept):
    monkeypatch.chdir(tmp_path)
    Path("f.tir").write_text(PROGRAM)
    return tmp_path


@pytest.fixture
def tir_(capsys):
    def run(line: str) -> tuple[int, str, str]:
        status = command_line.main(line.split())
        return (status, *capsys.readouterr())

    return run


def refused(work, *args, **named) -> str:
    with pytest.raises((ValueError, OSError, AssertionError, tir.BuildError)) as caught:
        work(*args, **named)
    return str(caught.value)


# ---------------------------------------------------------------- options and errors


@pytest.mark.parametrize(
    ("option", "line", "found"),
    [
        (subjects.SEED, "", {"seed": 0}),
        (subjects.SEED, "--seed 7", {"seed": 7}),
        (subjects.INPUT, "--input A=1 --input B=2", {"input": ["A=1", "B=2"]}),
        (subjects.INPUTS, "", {"inputs": None}),
        (subjects.ENGINE, "", {"target": None}),
        (verbs.TARGET, "", {"target": "llvm"}),
        (verbs.SHAPE, "", {"shape": []}),
        (program_texts.UPTO, "", {"upto": None}),
        (program_texts.STEPS, "--trace -", {"trace": "-"}),
    ],
)
def test_options_that_verbs_share(option, line, found):
    parser = argparse.ArgumentParser()
    option(parser)
    assert vars(parser.parse_args(line.split())) == found


def test_errors_are_one_line_each():
    def parsed(text: str) -> tir.ParseError:
        with pytest.raises(tir.ParseError) as caught:
            programs_in(text, "x.tir")
        return caught.value

    one = parsed(HEAD + "    A[0] = m\n")
    assert command_line.in_one_line(one).startswith("x.tir:4:12: ")
    for count, end in ((1, "`m`"), (2, "`m` (and 1 more)"), (3, "`m` (and 2 more)")):
        several = tir.ParseError("several")
        several.diagnostics = [*one.diagnostics] * count
        assert command_line.in_one_line(several).endswith(end)
    rows = [("Cut", "1", 2, "n", "it is unknown")]
    for error, line in (
        (ValueError("first\nsecond"), "first (--verbose shows more)"),
        (ValueError("only"), "only"),
        (ValueError(), "ValueError"),
        (tir.ModelError("a\nb"), "a (--verbose shows more)"),
        (tir.ModelError("no", rows), str(tir.ModelError("no", rows))),
    ):
        assert command_line.in_one_line(error) == line
    assert command_line._verbose(ValueError("first\nsecond")) == "first\nsecond"
    assert command_line._verbose(ValueError()) == "ValueError"


@pytest.mark.parametrize(
    ("spec", "parts"),
    [("a.py:f", ("a.py", "f")), ("a.py", ("a.py", "")), ("a.py:", ("a.py:", "")), (":f", (":f", "")), ("a:b:c", ("a:b", "c"))],
)  # fmt: skip
def test_the_file_and_the_name_in_it(spec, parts):
    assert program_files._split(spec) == (parts if spec != "a.py:" else ("a.py", ""))


def test_the_length_of_a_text_is_limited(monkeypatch):
    monkeypatch.setattr(program_files, "LONGEST", 10)
    for length, is_read in ((9, True), (10, True), (11, False)):
        text = "x" * length
        Path("text").write_text(text)
        for place in ("text", "-"):
            monkeypatch.setattr("sys.stdin", io.StringIO(text))
            if is_read:
                assert program_files.read_text(place) == text
            else:
                assert refused(program_files.read_text, place) == f"{place} is longer than 0 million characters"


MAKERS = """
import tir
from tir.library import rows

def softmax(m, n=8, *, more=()) -> "tir.PrimFunc":
    return rows.softmax(m, n)

def small() -> tuple[tir.PrimFunc, tir.Schedule]:
    program = softmax(2)
    sch = tir.Schedule(program)
    sch.parallel("out.i")
    return program, sch

def fails() -> tir.PrimFunc:
    raise OSError("no")

def other():
    return 3
"""


def test_a_program_that_a_function_of_a_file_makes(tmp_path):
    path = tmp_path / "makers.py"
    path.write_text(MAKERS)

    def said(call: str) -> str:
        return refused(program_files.named, f"{path}:{call}" if call else str(path)).replace(str(path), "F")

    assert tir.structural_equal(
        program_files.named(f"{path}:softmax(4, n=16, more=['a', (1, None)])"), rows.softmax(4, 16)
    )
    assert program_files.named(f"{path}:small()").history[-1].text == 'parallel("out.i")'
    assert said("") == "0 programs in F; give one of F:softmax(m, n, more), F:small(), F:fails()"
    for call in ("softmax(x)", "softmax(1)(2)", "softmax(__import__('os'))", "softmax(", "softmax(,)"):
        assert said(call).startswith(f"`{call}` is no call with numbers" if call[-1] == ")" else "no program"), call
    assert said("nobody(1)") == "no function `nobody` in F"
    assert said("other()") == "other() of F makes no program, but a value of type int"
    with pytest.raises(program_files.FileError, match=r"makers.py:15: OSError: no$"):
        program_files.named(f"{path}:fails()")


def test_what_the_files_of_a_program_are():
    for name in ("a.so", "a.o", "a.zip"):
        assert program_files.is_saved(name) and not program_files.is_model(name)
    assert (
        program_files.is_model("a.onnx") and not program_files.is_saved("a.onnx") and not program_files.is_saved("a.py")
    )
    Path("s.py").write_text("import tir\nfrom tir.script import tir as T\n" + PROGRAM.partition("\n")[2] + "n = 3\n")
    assert [*program_files._read("s.py")] == ["f"]


def test_a_place_in_a_file_is_that_of_its_own_last_line():
    Path("other.py").write_text("def fail():\n    return 1 / 0\n")
    Path("a.py").write_text(f"import sys\nsys.path.insert(0, {os.getcwd()!r})\nimport other\n\n\nother.fail()\n")
    with pytest.raises(program_files.FileError) as caught:
        program_files.named("a.py")
    assert str(caught.value) == "a.py:6: ZeroDivisionError: division by zero"
    assert caught.value.frames == ["a.py:6: other.fail()"]
    Path("b.py").write_text("x = 1\nexec(compile('def f(:', 'c.py', 'exec'))\n")
    with pytest.raises(program_files.FileError, match=r"^b\.py:2: SyntaxError: "):
        program_files.named("b.py")


# ---------------------------------------------------------------- arguments


def test_values_by_name_are_refused_word_for_word():
    names = ["A", "n"]
    assert subjects.pairs(["A=x=y", "n=3"], "--input", names) == {"A": "x=y", "n": "3"}
    for items, said in (
        (["A"], "--input takes NAME=VALUE, not 'A'"),
        (["A="], "--input takes NAME=VALUE, not 'A='"),
        (["B=1"], "--input B=1: there is no `B`; there is A, n"),
        (["A=1", "A=2"], "--input: `A` is given twice"),
    ):
        assert refused(subjects.pairs, items, "--input", names) == said
    assert refused(subjects.pairs, ["B=1"], "--size", []) == "--size B=1: there is no `B`; there is none"
    assert models.shapes_of(["a=b=1, 2"]) == {"a=b": [1, 2]}
    for item in ("x", "=1", "x=", "x=1,", "x=-1", "x=1.5"):
        assert refused(models.shapes_of, [item]) == f"--shape takes NAME=SIZE,SIZE,…, not {item!r}"
    assert refused(models.shapes_of, ["x=1", "x=2"]) == "--shape: `x` is given twice"


def test_a_value_is_a_number_or_an_array_of_a_file():
    np.save("a.npy", np.arange(3))
    np.savez("a.npz", x=np.arange(3))
    for text, value in (("3", 3), ("-3", -3), ("3.0", 3.0), ("1e3", 1000.0), ("inf", float("inf"))):
        found = subjects._value("A", text)
        assert (found, type(found)) == (value, type(value))
    assert subjects._value("A", "a.npy").tolist() == [0, 1, 2]
    assert refused(subjects._value, "A", "a.npz") == "--input A: 'a.npz' holds several arrays: give it as --inputs"
    assert refused(subjects._value, "A", "f.tir").startswith("--input A: 'f.tir' is no .npy file: ")
    given = SimpleNamespace(seed=0, input=["A=1"], inputs="a.npz")
    assert refused(subjects.given_arguments, given, ["A"]) == "--inputs a.npz: there is no `x`; there is A"
    np.savez("a.npz", A=np.arange(3))
    assert refused(subjects.given_arguments, given, ["A"]) == "`A` is given twice, by --input and in a.npz"
    given.input = []
    assert subjects.given_arguments(given, ["A"])["A"].tolist() == [0, 1, 2]
    given.seed = -1
    assert refused(subjects.given_arguments, given, ["A"]) == "--seed must be at least 0, got -1"


def test_the_memory_of_all_arguments_together_is_limited(monkeypatch):
    assert subjects.LARGEST == 1 << 32
    n, m = tir.Var("n", "int32"), tir.Var("m", "int32")
    buffers = [tir.decl_buffer((n, 2), "float32", "A"), tir.decl_buffer((m,), "int8x4", "B")]
    for largest, sizes, is_right in ((76, {"n": 5}, True), (75, {"n": 5}, False), (48, {"n": 1, "m": 10}, True), (47, {"n": 1, "m": 10}, False)):  # fmt: skip
        monkeypatch.setattr(subjects, "LARGEST", largest)
        if is_right:
            subjects._require_memory(buffers, sizes)
        else:
            assert f"{largest + 1} bytes, more than {largest}: give smaller" in refused(
                subjects._require_memory, buffers, sizes
            )
    monkeypatch.setattr(subjects, "LARGEST", 10)
    subjects._require_memory(buffers, {"n": 0, "m": 0})
    assert refused(subjects._require_memory, buffers, {"n": -1}) == "`A` would have a negative size: (-1, 2)"
    np.savez("a.npz", x=np.zeros(3))
    size = sum(member.file_size for member in __import__("zipfile").ZipFile("a.npz").infolist())
    monkeypatch.setattr(subjects, "LARGEST", size)
    assert subjects.archive("a.npz", ["x"])["x"].shape == (3,)
    monkeypatch.setattr(subjects, "LARGEST", size - 1)
    said = f"--inputs: 'a.npz' is no .npz file: it has {size} bytes, more than {size - 1}"
    assert refused(subjects.archive, "a.npz", ["x"]) == said


@T.prim_func
def scaled(a: T.handle, k: T.float32, b: T.handle):
    n, m = T.int32(), T.int32()
    A = T.match_buffer(a, (n, m), "float32")
    B = T.match_buffer(b, (m,), "float32")
    for i in range(m):
        B[i] = A[0, i] * k


def test_arguments_that_are_given_determine_the_sizes_of_the_others():
    for given, shapes in (
        ({"A": np.ones((2, 5), "float32")}, [(2, 5), (5,)]),
        ({"B": np.ones(4, "float32"), "n": 3}, [(3, 4), (4,)]),
        ({"n": 7, "m": 6}, [(7, 6), (6,)]),
    ):
        a, k, b = subjects.arguments_of(scaled, {**given, "k": 1.5}, 0)
        assert [a.shape, b.shape] == shapes and k == 1.5
        assert all(array is given[name] for name, array in (("A", a), ("B", b)) if name in given)
    assert refused(subjects.arguments_of, scaled, {"n": 1.5}, 0) == "--input n: a size is an integer"
    again = [subjects.arguments_of(scaled, {"n": 4, "m": 4}, seed)[0].tolist() for seed in (1, 1, 2)]
    assert again[0] == again[1] != again[2]


def test_what_is_printed_of_an_argument():
    for value, data, line in (
        (3, 3, "3"),
        (np.arange(3, dtype="int8"), {"dtype": "int8", "shape": [3], "sum": "3.0"}, "int8 (3,) [0, 1, 2]"),
        (np.ones((2, 1), bool), {"dtype": "bool", "shape": [2, 1], "sum": "2.0"}, "bool (2, 1) [ True,  True]"),
        (np.full(2, 1j), {"dtype": "complex128", "shape": [2], "sum": None}, "complex128 (2,) [0.+1.j, 0.+1.j]"),
        (np.arange(8), {"dtype": "int64", "shape": [8], "sum": "28.0"}, "int64 (8,) [0, 1, 2, 3, 4, 5, 6, 7]"),
        (np.arange(9), {"dtype": "int64", "shape": [9], "sum": "36.0"}, "int64 (9,) [0, 1, 2, ..., 6, 7, 8]"),
    ):
        assert (subjects.summary(value), subjects.shown(value)) == (data, line)


@T.prim_func
def of_threads(A: T.Buffer((8,), "int32")):
    for i in T.thread_binding(8, thread="threadIdx.x"):
        A[i] = i


def test_what_runs_a_program_and_which_function(tir_):
    program = tir.IRModule({"f": scaled, "g": of_threads})
    assert oracle.usual_engine(tir.IRModule.of(scaled)) == "llvm" and oracle.usual_engine(program) == "cuda-sim"
    assert refused(subjects.entry, program) == "the module has the functions f, g: say FILE:NAME"
    assert refused(subjects.entry, tir.IRModule({})) == "the module has the functions none: say FILE:NAME"
    assert subjects.entry(tir.IRModule({"f": scaled, "main": of_threads})) == "main"
    for engine in ("llvm", "interpreter", "cuda-sim"):
        status, out, _ = tir_(f"bench f.tir --number 1 --repeat 2 --json --target {engine}")
        assert status == 0 and len(json.loads(out)["seconds"]) == 2 and json.loads(out)["target"] == engine
    assert tir_("bench f.tir --number 0")[2] == "--repeat and --number must be at least 1, got 5 and 0\n"
    assert tir_("bench f.tir --repeat 0")[2] == "--repeat and --number must be at least 1, got 0 and 10\n"
    assert tir_("bench f.tir --kernels")[2] == "--kernels is for models as they were made, and f.tir is none\n"
    assert tir_("check f.so")[2] == "a saved module has no program to check\n"
    assert subjects.finding(lambda: 1) is None
    assert [subjects.finding(lambda e=e: (_ for _ in ()).throw(e)) for e in (ValueError(), tir.BuildError("no"))] == [
        "ValueError",
        "no",
    ]
    assert execution._indented("a\nb") == "\n       a\n       b" and execution._indented(None) == ""


def test_a_saved_module_runs_and_is_compared_with_nothing(tir_):
    assert tir_("build f.tir -o k.so")[0] == 0
    status, out, _ = tir_("run k.so --input n=5 --json")
    assert status == 0 and json.loads(out)["target"] == "llvm" and json.loads(out)["arguments"]["n"] == 5
    said = "a saved file has no program to compare with: leave out --check, or run the program\n"
    assert tir_("run k.so --check") == (1, "", said)
    assert tir_("bench k.so --repeat 1 --number 1")[0] == 0


# ---------------------------------------------------------------- files that are written


def test_a_file_that_cannot_be_written_is_named(monkeypatch, folder):
    file_verbs.require_writable(Path("new"))
    file_verbs.require_writable(Path("f.tir"))
    assert refused(file_verbs.require_writable, folder) == f"cannot write {str(folder)!r}: it is a folder"
    assert refused(file_verbs.require_writable, Path("no/k.o")) == "cannot write 'no/k.o': there is no folder 'no'"
    monkeypatch.setattr(os, "access", lambda place, mode: str(place) != "f.tir")
    assert refused(file_verbs.require_writable, Path("f.tir")) == "cannot write 'f.tir': permission denied"
    file_verbs.require_writable(Path("new"))
    assert subjects.require_outputs(["A=x.npy"], ["A"], "y.npz") == {"A": "x.npy"}
    assert subjects.require_outputs([], ["A"], None) == {}
    assert "there is no folder 'no'" in refused(subjects.require_outputs, [], ["A"], "no/y.npz")
    assert "there is no folder 'no'" in refused(subjects.require_outputs, ["A=no/a.npy"], ["A"], None)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("-o k.s --header k.h", "--header is for what C links, a .so, .o or .a, not for a .s"),
        ("-o k.ll --checks", "--checks is for what C links, a .so, .o or .a, not for a .ll"),
        ("-o k.zip --threads pool", "only modules for llvm have --threads, not those for cuda"),
        ("-o k.c --cmake k.txt", "only modules for llvm have --cmake, not those for cuda"),
        ("-o k.o --weights w", "f.tir is no model: it has no weights and no shapes"),
        ("-o k.o --shape x=1", "f.tir is no model: it has no weights and no shapes"),
    ],
)
def test_what_a_build_cannot_write(line, said, tir_, monkeypatch):
    made = SimpleNamespace(
        target=SimpleNamespace(kind="cuda" if "k.zip" in line or "k.c " in line else "llvm"), save=None
    )
    monkeypatch.setattr("codegen.build.build", lambda program, target: made)
    assert tir_(f"build f.tir {line}") == (1, "", said + "\n")


@pytest.mark.parametrize(("output", "target"), [("k.cu", "cuda"), ("k.ptx", "cuda"), ("k.zip", "cuda"), ("k.c", "cuda"), ("k.o", "llvm"), ("k.s", "llvm")])  # fmt: skip
def test_the_target_of_a_build_is_that_of_its_output(output, target, tir_, monkeypatch):
    asked = []

    def build(program, target):
        asked.append(str(target))
        raise ValueError("enough")

    monkeypatch.setattr("codegen.build.build", build)
    assert tir_(f"build f.tir -o {output}")[0] == tir_(f"build f.tir -o {output} --target opencl")[0] == 1
    assert asked == [target, "opencl"]


def test_what_a_build_wrote_is_listed(tir_):
    found = json.loads(tir_("build f.tir -o k.o --header k.h --cmake k.cmake --levels x86-64-v2,x86-64-v3 --json")[1])
    assert found == {"right": True, "written": ["k.o", "k.h", "k.cmake"]}
    assert all(Path(file).stat().st_size for file in found["written"])
    assert tir_("build f.tir -o k.ll")[1] == "wrote k.ll\n" and "define" in Path("k.ll").read_text()


def test_the_lines_that_make_a_shell_complete(tir_):
    bash, zsh = tir_("completion bash")[1], tir_("completion zsh")[1]
    assert bash == f"complete -o default -W '{' '.join(verbs.VERBS)}' tir\n"
    assert zsh == "autoload -Uz bashcompinit && bashcompinit\n" + bash


def test_the_cache_of_no_folder(tir_, monkeypatch):
    monkeypatch.setattr("tir.config.cache_folder", lambda: None)
    assert tir_("cache --json") == (0, '{"right": true, "folder": null}\n', "")


# ---------------------------------------------------------------- texts


def test_texts_that_exclude_each_other(tir_):
    Path("p.py").write_text(PROGRAM + "import tir\ns = tir.Schedule(f)\n")
    for line, said in (
        ("show f.tir --graph --fused", "--graph, --fused and --trace are three texts: give one"),
        ("show f.tir --trace --graph", "--graph, --fused and --trace are three texts: give one"),
        ("show f.tir --graph", "f.tir is no model: it has no graph and no shapes"),
        ("show f.tir --shape x=1", "f.tir is no model: it has no graph and no shapes"),
        ("show f.tir --trace", "f.tir is a program, not a schedule: it has no steps"),
        ("opt f.tir", "nothing to do: give --passes, --upto or --trace"),
        ("opt f.tir --passes simplify --upto simplify", "--passes are run instead of a pipeline: give them or --upto"),
        ("lower - --trace -", "standard input is one text: give a file for the program or for the steps"),
        ("diff - -", "standard input is one program: give a file for the other"),
    ):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.stdin", io.StringIO(PROGRAM))
            assert tir_(line) == (1, "", said + "\n")
    assert json.loads(tir_("show p.py:s --trace")[1]) == []
    assert tir_("opt f.tir --upto lower_init_block")[0] == tir_("opt f.tir --passes simplify")[0] == 0
    assert json.loads(tir_("show f.tir --json")[1])["functions"] == ["main"]
    assert json.loads(tir_("diff f.tir f.tir --json")[1]) == {"right": True, "same": True}
    assert tir_("tree p.py:s")[1] == tir_("tree p.py:f")[1] != ""


# ---------------------------------------------------------------- models


def test_random_inputs_of_a_model():
    kinds = [("float32", (40,)), ("int64", (40,)), ("bool", (40,)), ("float16", (40,))]
    inputs = [SimpleNamespace(shape=shape, dtype=DType(kind)) for kind, shape in kinds]
    made = models.random_inputs(inputs, 0)
    assert [(str(a.dtype), a.shape) for a in made] == kinds
    assert all(set(a.tolist()) == {0, 1} for a in made[1:3]) and len({*made[0].tolist()}) == 40
    assert (made[0] < 0).any() and (models.random_inputs(inputs, 0)[0] == made[0]).all()
    assert (models.random_inputs(inputs, 1)[0] != made[0]).any()


def test_results_are_compared_with_those_of_onnx(monkeypatch):
    model = small_model()
    Path("m.onnx").write_bytes(model.SerializeToString())
    x = np.random.default_rng(0).standard_normal((1, 3, 16, 16)).astype("float32")
    from onnx.reference import ReferenceEvaluator

    (right,) = ReferenceEvaluator(model).run(None, {"data": x})
    largest = float(np.abs(right).max())
    assert (models.RTOL, models.ATOL) == (1e-3, 1e-4)

    def judge(made: np.ndarray) -> None:
        models.assert_as_reference("m.onnx", ["data"], [x], {"out": made})

    judge(right)
    monkeypatch.setattr(models, "RTOL", 0.0)
    judge(right + np.float32(0.9e-4 * largest))
    assert "out[0, 0] is" in refused(judge, right + np.float32(1.2e-4 * largest))
    assert refused(judge, right.astype("float64")) == "out is float64[1, 10], expected float32[1, 10]"
    assert refused(judge, right[0]) == "out is float32[10], expected float32[1, 10]"


def test_what_a_model_moves(tir_):
    Path("m.onnx").write_bytes(small_model().SerializeToString())
    found = json.loads(tir_("show m.onnx --fused --json")[1])
    image, planes = 4 * 3 * 256, 4 * 4 * 256
    assert [(k["reads"], k["writes"]) for k in found["kernels"]] == [
        (image + 4 * 4 * 27, planes), (planes, 16), (16 + 160, 40), (40, 40),
    ]  # fmt: skip
    assert [k["makes"].split(":")[0] for k in found["kernels"]][-1] != ""
    assert all(k["nodes"] for k in found["kernels"]) and found["workspace_bytes"] >= planes
    lines = tir_("show m.onnx --fused")[1].splitlines()
    assert lines[0].split() == ["kernel", "makes", "reads", "writes"]
    assert (
        lines[-1]
        == f"4 kernels, {found['weights_bytes']:,} bytes of weights, {found['workspace_bytes']:,} bytes of workspace"
    )


def test_operators_that_are_missing_are_counted(tir_):
    Path("m.onnx").write_bytes(small_model(last="Frobnicate").SerializeToString())
    assert tir_("ops m.onnx")[1].endswith("\n1 node cannot be imported\n")
    model = small_model(last="Frobnicate")
    model.graph.node[1].op_type = "Frobnicate"
    Path("m.onnx").write_bytes(model.SerializeToString())
    assert tir_("ops m.onnx")[1].endswith("\n2 nodes cannot be imported\n")
    Path("m.onnx").write_bytes(small_model().SerializeToString())
    assert tir_("ops m.onnx")[1].endswith("\nall nodes can be imported\n")
    assert tir_("ops f.tir")[2] == "'f.tir' is no model: its name must end in .onnx\n"
    assert tir_("ops no.onnx")[2] == "no file 'no.onnx'\n"
    Path("m.onnx").write_bytes(small_model(None).SerializeToString())
    said = "input 'data' has shape [?, 3, 16, 16]: give its sizes, as --shape data=1,3,16,16\n"
    assert tir_("show m.onnx --graph")[2] == said


# ---------------------------------------------------------------- tvmc


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        (None, {}),
        ("x:[1]", {"x": [1]}),
        (" x:[ 1, 2 ], y:[] ", {"x": [1, 2], "y": []}),
        ("", None),
        ("x", None),
        ("x:[a]", None),
        ("x:1", None),
    ],
)
def test_shapes_as_tvm_writes_them(text, shapes):
    if shapes is not None:
        assert tvmc._shapes(text) == shapes
    else:
        assert refused(tvmc._shapes, text) == f"--input-shapes takes NAME:[SIZE,SIZE,…] NAME:[…], not {text!r}"


def test_the_largest_values_with_their_places():
    array = np.array([[3.0, 1.0], [2.0, 4.0]], "float32")
    assert tvmc._largest(array, 2) == "[3, 0]\n[4.0, 3.0]"
    assert tvmc._largest(array, 9) == "[3, 0, 2, 1]\n[4.0, 3.0, 2.0, 1.0]"
    assert tvmc._largest(array, 0) == tvmc._largest(array, -1) == "[]\n[]"


def test_a_graph_as_plain_data():
    b = tir.graph.Builder()
    x = b.input("x", (2, 3))
    w = b.constant(np.ones((3,), "float32"), "w")
    y = b.call("sum", b.call("concatenate", (x, b.call("add", x, w))), axis=(1,), keepdims=True)
    found = tvmc._described(b.graph({"y": y}))
    assert json.loads(json.dumps(found)) == found

    def value(name: str, *shape: int) -> dict:
        return {"name": name, "shape": [*shape], "dtype": "float32"}

    assert (found["inputs"], found["params"], found["heads"]) == ([value("x", 2, 3)], [value("w", 3)], {"y": "sum"})
    add, joined, total = found["nodes"]
    assert add["outputs"] == [value("add", 2, 3)] and add["arguments"] == {"x": {"value": "x"}, "y": {"value": "w"}}
    assert joined["arguments"] == {"arrays": [{"value": "x"}, {"value": "add"}]} and joined["operator"] == "concatenate"
    assert total["arguments"] == {"x": {"value": "concatenate"}, "axis": [1], "keepdims": True}


def test_an_archive_without_its_parts_is_refused():
    def made(**members: bytes) -> str:
        with tarfile.open("m.tar", "w") as archive:
            for name, content in members.items():
                about = tarfile.TarInfo(name.replace("_", "."))
                about.size = len(content)
                archive.addfile(about, io.BytesIO(content))
        return "m.tar"

    for members in ({}, {"mod_so": b""}, {"mod_params": b""}):
        said = refused(tvmc.loaded, made(**members))
        assert said == "m.tar is no archive of a model as tvmc compile writes it"
    tir.build(scaled).save("mod.so")
    said = refused(tvmc.loaded, made(mod_so=Path("mod.so").read_bytes(), mod_params=b""))
    assert said == "m.tar: mod.so is no model"


def test_what_tvmc_times_and_refuses(capsys):
    Path("m.onnx").write_bytes(small_model().SerializeToString())
    assert tvmc.main(["compile", "m.onnx", "-o", "m.tar"]) == 0
    for line in ("--number 0", "--repeat 0"):
        assert tvmc.main(["run", "m.tar", *line.split()]) == 1
        numbers = "1 and 0" if "number" in line else "0 and 1"
        assert capsys.readouterr().err == f"--repeat and --number must be at least 1, got {numbers}\n"
    model = tvmc.loaded("m.tar")
    args = models.random_inputs(model.inputs, 0)
    lines = tvmc._timed(model, args, argparse.Namespace(number=1, repeat=1)).splitlines()
    assert lines[0] == "Execution time summary:" and len(lines[2].split()) == 5
    assert lines[1].split(" (ms)")[:5] == [
        "mean",
        "  median",
        *(f"{' ' * (len(lines[1].split(' (ms)')[k]) - 3)}{kind}" for k, kind in ((2, "max"), (3, "min"), (4, "std"))),
    ]
    mean, median, most, least, spread = map(float, lines[2].split())
    assert mean == median == most == least > 0 and spread == 0


def test_the_explorer_prints_its_address_opens_it_and_waits(tir_, monkeypatch):
    opened, waited = [], []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr("tir.notebook.server.Server.wait", lambda self, seconds: waited.append(seconds))
    Path("p.py").write_text(
        PROGRAM.replace("A[0] = n", "for i in range(8):\n        A[i] = n")
        + "import tir\ns = tir.Schedule(f)\ns.split('i', [2, 4])\n"
    )
    status, out, err = tir_("explore p.py:s --seconds 3 --json")
    assert (status, waited) == (0, [3.0]) and json.loads(out)["steps"] == 1 and "split" in json.loads(out)["python"]
    assert err == f"the explorer is at {opened[0]}\n"
    assert json.loads(tir_("explore p.py:f --no-browser --json")[1])["steps"] == 0
    assert len(opened) == 1 and waited == [3.0, None]


def test_a_file_of_the_cache_that_another_deletes_is_no_error(tir_, monkeypatch, folder):
    monkeypatch.setenv("TIR_CACHE_DIR", str(folder / "cache"))
    kept = folder / "cache/v1/ab/file"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(bytes(2_000_000))
    unlink = Path.unlink

    def late(path, missing_ok=False):
        unlink(path)
        unlink(path, missing_ok)

    assert tir_("cache")[1] == f"{folder / 'cache'}: 1 files, 2.0 MB\n"
    monkeypatch.setattr(Path, "unlink", late)
    assert tir_("cache --clear") == (0, f"{folder / 'cache'}: deleted 1 files, 2.0 MB\n", "") and not kept.exists()


def test_sizes_and_options_that_are_taken_word_for_word(tir_, capsys):
    assert tuning_verb._sizes(["n=64", "m=0"]) == {"n": 64, "m": 0}
    for text in ("n=x", "n=-1", "n=1.5"):
        assert refused(tuning_verb._sizes, [text]) == f"--size {text}: a size is an integer"
    assert tir_("tune k.so")[2] == "k.so is no program: its kernels have schedules already\n"
    assert tir_("tune k.onnx")[2] == "k.onnx is no program: its kernels have schedules already\n"
    found = vars(tvmc._parser().parse_args(["compile", "m.onnx", "--model-format", "onnx", "-O", "3"]))
    assert (found["target"], found["output"], found["opt_level"]) == ("llvm", "module.tar", 3)
    found = vars(tvmc._parser().parse_args(["run", "m.tar", "--device", "cpu"]))
    assert (found["repeat"], found["number"], found["print_time"], found["print_top"]) == (1, 1, False, None)
    for line, said in (
        ("run m.tar --device cuda", "invalid choice: 'cuda'"),
        ("compile m --model-format tflite", "invalid choice"),
        ("", "the following arguments are required: COMMAND"),
    ):
        assert tvmc.main(line.split()) == 2 and said in capsys.readouterr().err
