"""The verbs of ``tir``: what they answer, what they read from each other, and how they refuse."""

from __future__ import annotations

import io
import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from small_models import small_model

import tir
from tir.cli.command_line import main
from tir.cli.verbs import VERBS

PAGE = (Path(__file__).parents[2] / "docs/command.md").read_text(encoding="utf-8")
FILE = re.search(r"```python\n(.*?)```", PAGE, re.S)[1]
HEAD = 'from tir.script import tir as T\n@T.prim_func\ndef f(A: T.Buffer((8,), "int32"), n: T.int32):\n'


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch, kept):
    monkeypatch.chdir(tmp_path)
    Path("kernels.py").write_text(FILE)
    return tmp_path


@pytest.fixture
def tir_(capsys, monkeypatch):
    """Run a line of commands in a pipe; the status of the last, its output and errors."""

    def run(line: str) -> tuple[int, str, str]:
        line, _, file = line.partition(" > ")
        status, printed = 0, capsys.readouterr()
        for command in line.split(" | "):
            monkeypatch.setattr("sys.stdin", io.StringIO(printed.out))
            program, *arguments = shlex.split(command)
            assert program == "tir"
            status = main(arguments)
            printed = capsys.readouterr()
        if file:
            Path(file).write_text(printed.out)
        return status, printed.out, printed.err

    return run


# ---------------------------------------------------------------- what is right


def save_model() -> None:
    """What lines of the page call model.onnx."""
    Path("model.onnx").write_bytes(small_model().SerializeToString())


def test_the_examples_of_the_page(tir_):
    save_model()
    commands = 0
    for block in re.findall(r"```console\n(.*?)```", PAGE, re.S):
        for part in block.split("$ ")[1:]:
            line, *shown = part.splitlines()
            status, out, err = tir_(line)
            assert (status, err) == (0, ""), (line, err)
            assert set(shown) <= {text.rstrip() for text in out.splitlines()}, line
            commands += 1
    assert commands >= 10


@pytest.mark.parametrize("name", VERBS)
def test_the_example_of_each_verb(name, tir_, capsys):
    if "model.onnx" in VERBS[name].example:
        save_model()
    status, out, err = tir_(VERBS[name].example)
    address = re.sub(
        r"the explorer is at http://127.0.0.1:\d+/\?token=\S+\n", "", err
    )  # where it can be opened meanwhile
    assert (status, address) == (0, "") and out
    status, out, err = tir_(f"{VERBS[name].example} --json")
    assert status == 0 and json.loads(out)["right"] is True
    with pytest.raises(SystemExit) as left:
        main([name, "--help"])
    told = capsys.readouterr().out
    assert left.value.code == 0 and len(told.splitlines()) <= 40
    assert " ".join(VERBS[name].example.split()) in " ".join(told.split())


def test_the_version(capsys):
    with pytest.raises(SystemExit) as left:
        main(["--version"])
    assert left.value.code == 0 and capsys.readouterr().out == f"tir {tir.__version__}\n"


def test_the_list_of_verbs_has_the_first_sentence_of_each(tir_, capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    listed = " ".join(capsys.readouterr().out.split())
    for name, verb in VERBS.items():
        first = " ".join(verb.about.split()).split(". ")[0].rstrip(".")
        assert f" {name} {first[0].lower()}{first[1:]}" in listed


def test_clear_alone_deletes_what_is_kept(tir_, folder, monkeypatch):
    monkeypatch.setenv("TIR_CACHE_DIR", str(folder / "cache"))
    assert tir_("tir run kernels.py:fast")[0] == 0
    kept = [path for path in (folder / "cache").rglob("*") if path.is_file()]
    sizes = {"files": len(kept), "bytes": sum(path.stat().st_size for path in kept)}
    assert kept
    for _ in range(2):
        found = json.loads(tir_("tir cache --json")[1])
        assert found["cleared"] is False and sizes.items() <= found.items()
    assert "deleted" not in tir_("tir cache")[1]
    assert tir_("tir cache --clear")[1].startswith(f"{folder / 'cache'}: deleted {len(kept)} files, ")
    assert json.loads(tir_("tir cache --json")[1])["files"] == 0 and not any(path.exists() for path in kept)


def test_a_file_of_several_programs_and_of_a_module(tir_):
    text = HEAD + "    A[0] = n\n" + HEAD.replace("f(", "g(") + "    A[1] = n\n"
    Path("two.tir").write_text(text)
    assert "A[1] = n" in tir_("tir show two.tir:g")[1]
    Path("module.tir").write_text(tir_("tir lower kernels.py:double")[1])
    assert "* 2.0" in tir_("tir show module.tir:main")[1]
    status, _, err = tir_("tir show two.tir")
    assert status == 1 and "give one of two.tir:f, two.tir:g" in err


def test_the_function_of_a_module_that_runs(tir_):
    head = "@I.ir_module\nclass Module:\n"
    one, other = (
        f'    @T.prim_func\n    def {name}(A: T.Buffer((3,), "int32")):\n        for i in range(3):\n            A[i] = {value}\n\n'
        for name, value in (("scale", 7), ("main", 8))
    )
    for text, runs in ((one, 7), (one + other, 8), (one + one.replace("scale", "fill"), None)):
        Path("module.tir").write_text(f"from tir.script import ir as I, tir as T\n\n{head}{text}")
        status, _, err = tir_("tir run module.tir --output A=a.npy")
        assert (status, err.partition(":")[0]) == ((0, "") if runs else (1, "the module has the functions scale, fill"))
        assert runs is None or np.load("a.npy").tolist() == [runs] * 3


def test_arguments_determine_sizes_and_results_are_written(tir_):
    Path("scale.tir").write_text(
        "@T.prim_func\ndef scale(a: T.handle, b: T.handle, k: T.float32):\n    n = T.int32()\n"
        '    A = T.match_buffer(a, (n,), "float32")\n    B = T.match_buffer(b, (n,), "float32")\n'
        "    for i in range(n):\n        B[i] = A[i] * k\n"
    )
    np.save("a.npy", np.arange(5, dtype="float32"))
    assert tir_("tir run scale.tir --input A=a.npy --input k=3 --output B=b.npy --check")[0] == 0
    assert np.load("b.npy").tolist() == [0, 3, 6, 9, 12]
    found = json.loads(tir_("tir run scale.tir --input n=4 --target interpreter --json")[1])
    assert found["arguments"]["A"]["shape"] == [4]


def test_what_is_wrong_with_a_program_is_status_1(tir_):
    Path("race.tir").write_text(HEAD + "    for i in T.parallel(8):\n        A[0] = i\n")
    status, out, err = tir_("tir check race.tir")
    assert status == 1 and err == "" and re.search(r"^ok +well formed\nwrong +executor\n", out)
    found = json.loads(tir_("tir check race.tir --json")[1])
    assert found["right"] is False and found["findings"]["well formed"] is None
    Path("bounds.tir").write_text(HEAD + "    for i in range(9):\n        A[i] = n\n")
    assert tir_("tir check bounds.tir")[0] == tir_("tir run bounds.tir --check")[0] == 1


def test_a_kernel_is_checked_on_the_simulator(tir_):
    Path("kernel.tir").write_text(
        HEAD + '    for i in T.thread_binding(8, thread="threadIdx.x"):\n        A[i] = n + i\n'
    )
    status, out, _ = tir_("tir check kernel.tir")
    assert status == 0 and "ok     cuda-sim" in out


def test_programs_that_differ_are_status_1_with_the_difference(tir_):
    status, out, err = tir_("tir diff kernels.py:double kernels.py:fast")
    assert status == 1 and err == "" and "+++ kernels.py:fast" in out and "first difference: " in out


def test_a_search_writes_its_schedule_and_goes_on_from_its_records(tir_):
    line = "tir tune kernels.py:double --trials 2 --db records.db --output best.tir --json"
    status, out, err = tir_(line)
    found = json.loads(out)
    assert (
        (status, err) == (0, "")
        and found["measured"]
        and found["seconds"] < 1
        and "def schedule(sch" in found["python"]
    )
    assert tir_("tir run best.tir --check")[0] == 0
    assert Path("records.db").exists() and json.loads(tir_(line)[1])["trials"] >= found["trials"]


def test_steps_that_a_trace_printed_are_taken(tir_):
    namespace = {}
    exec(FILE, namespace)
    Path("steps.py").write_text(str(namespace["fast"].trace))
    expected = tir_("tir show kernels.py:fast")[1]
    assert tir_("tir opt kernels.py:double --trace steps.py") == (0, expected, "")
    lowered = tir_("tir lower kernels.py:fast")[1]
    assert tir_("tir lower kernels.py:double --trace steps.py")[1] == lowered
    Path("steps.py").write_text("open('made', 'w')")
    status, _, err = tir_("tir opt kernels.py:double --trace steps.py")
    assert status == 1 and err.startswith("steps.py:1: ") and not Path("made").exists()


def test_no_line_of_a_text_is_run(tir_):
    for line in (
        "import os\n",
        "open('made', 'w')\n",
        "x = open('made', 'w')\n",
        "class M:\n    x = open('made', 'w')\n",
    ):
        Path("hostile.tir").write_text(line + HEAD + "    A[0] = 1\n")
        assert tir_("tir run hostile.tir")[0] == 1 and not Path("made").exists()


def test_what_a_python_file_raised_is_told_by_its_own_lines(tir_):
    Path("bad.py").write_text("def f():\n    return 1 / 0\nf()\n")
    assert tir_("tir show bad.py")[2] == "bad.py:2: ZeroDivisionError: division by zero\n"
    assert tir_("tir show bad.py --verbose")[2] == (
        "bad.py:3: f()\nbad.py:2: return 1 / 0\nbad.py:2: ZeroDivisionError: division by zero\n"
    )


@pytest.mark.parametrize(("suffix", "part"), [(".ll", "define"), (".s", ".globl"), (".o", "ELF"), (".a", "!<arch>")])
def test_what_is_built_is_what_its_suffix_names(suffix, part, tir_):
    assert tir_(f"tir build kernels.py:fast -o k{suffix}")[0] == 0
    assert part in Path(f"k{suffix}").read_text(encoding="latin-1")


def test_an_archive_links_into_a_program_of_c(tir_):
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    assert tir_("tir build kernels.py:fast -o k.a --header k.h")[0] == 0
    Path("p.c").write_text(
        '#include "k.h"\n#include <stdio.h>\nint main(void) {\n    float a[64] = {0}, b[64];\n    a[63] = 21;\n'
        '    if (k_double(a, b)) return 1;\n    printf("%g\\n", b[63]);\n    return 0;\n}\n'
    )
    subprocess.run(["cc", "p.c", "k.a", "-lm", "-o", "p"], check=True)
    assert subprocess.run(["./p"], check=True, capture_output=True, text=True).stdout == "42\n"


def test_the_source_of_a_kernel_is_written_for_cuda_by_its_suffix(tir_):
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC, of the extra cuda, is not installed")
    Path("kernel.tir").write_text(
        HEAD + '    for i in T.thread_binding(8, thread="threadIdx.x"):\n        A[i] = n + i\n'
    )
    for suffix, part in ((".cu", "__global__"), (".ptx", ".visible .entry")):
        assert tir_(f"tir build kernel.tir -o k{suffix}")[0] == 0
        assert part in Path(f"k{suffix}").read_text()


# ---------------------------------------------------------------- what is refused

TEXTS = {
    "empty.tir": "", "constant.tir": "x = 1\n", "import.tir": "import os\n", "syntax.tir": "def f(:\n", "nul.tir": "x\0",
    "plain.tir": "def f(): pass\n", "parens.tir": "(" * 9999, "signs.tir": "-" * 99999 + "1\n", "words.tir": "not a program\n",
    "sum.tir": HEAD + "    A[0] = sum(range(10**10))\n", "power.tir": HEAD + "    A[0] = 10**10**10\n",
    "string.tir": HEAD + '    A[0] = "a" * 10**9\n', "code.tir": HEAD + "    A[0] = __import__('os').getpid()\n",
    "undefined.tir": HEAD + "    A[0] = m\n", "rank.tir": HEAD + "    A[0, 0] = 1\n", "loop.tir": HEAD + "    for i in A:\n        pass\n",
    "dtype.tir": HEAD.replace("int32", "int33") + "    A[0] = 1\n", "while.tir": HEAD + "    while:\n",
    "default.tir": HEAD.replace("T.int32)", "T.int32 = 4)") + "    A[0] = 1\n", "bytes.tir": "\xff\xfe",
    "macro.tir": "from tir.script import tir as T\n@T.macro\ndef f():\n    pass\n", "lambda.tir": "(lambda: 1)()\n",
    "shape.tir": HEAD.replace("(8,)", "(-8,)") + "    A[0] = 1\n", "two.tir": HEAD + "    A[0] = 1\n" + HEAD.replace("f(", "g(") + "    A[0] = 1\n",
    "none.py": "x = 1\n", "zero.py": "1 / 0\n", "exit.py": "import sys\nsys.exit(0)\n", "syntax.py": "def f(:\n",
    "missing.py": "import no_such_module\n", "text.py": "raise ValueError('two\\nlines')\n", "deep.py": "def f(): f()\nf()\n",
    "step.py": FILE + "fast.split('nothing', [2, 4])\n", "parse.py": HEAD + "    A[0] = m\n",
    "broken.onnx": "no model", "empty.onnx": "", "broken.o": "no object", "broken.so": "no library", "broken.zip": "PK", "empty.so": "",
}  # fmt: skip
NO_FILES = [
    "",
    ".",
    "/",
    "nowhere",
    "nowhere.tir",
    "nowhere.so",
    "x" * 5000 + ".zip",
    "\0.o",
    "nowhere.py:f",
    ":",
    "::",
    "x" * 5000,
    "/dev/null/x",
]
BAD_OPTIONS = [["--nope"], ["kernels.py:double", "--nope"], ["kernels.py:double", "one", "more"], ["kernels.py:triple"]]
OPTIONS = {
    "opt": ["--passes simplify"],
    "build": ["-o k.o"],
    "diff": ["kernels.py:double"],
}
OWN = {
    "show": ["kernels.py:double --trace"],
    "lower": ["kernels.py:double --trace nowhere.json", "- --trace -", "kernels.py:double --target cdua", "kernels.py:double --upto flaten", "kernels.py:double --target"],
    "opt": ["kernels.py:double", "kernels.py:double --passes simplfy", "kernels.py:double --passes ''", "kernels.py:double --upto x",
            "kernels.py:double --passes simplify --upto simplify", "kernels.py:double --trace nowhere.json",
            "kernels.py:double --trace kernels.py", "kernels.py:double --trace bytes.tir", "kernels.py:double --trace steps.json"],
    "run": ["kernels.py:double --input", "kernels.py:double --input A", "kernels.py:double --input =3", "kernels.py:double --input Z=3",
            "kernels.py:double --input A=3", "kernels.py:double --input A=nowhere.npy", "kernels.py:double --input A=kernels.py",
            "kernels.py:double --input A=short.npy", "kernels.py:double --input A=objects.npy", "kernels.py:double --input A=huge.npy",
            "kernels.py:double --input A=a.npz", "kernels.py:double --input A=short.npy --input A=short.npy", "kernels.py:double --seed x",
            "kernels.py:double --seed -1", "kernels.py:double --target cdua", "kernels.py:double --output Z=z.npy",
            "kernels.py:double --output A=/no/such/folder/a.npy", "kernels.py:double --output A"],
    "check": ["kernels.py:double --input A=3", "kernels.py:double --seed -1", "big.tir", "big.tir --input n=-1"],
    "bench": ["kernels.py:double --repeat 0", "kernels.py:double --number 0", "kernels.py:double --number x", "big.tir"],
    "source": ["kernels.py:double --kind nope", "kernels.py:double --target cdua"],
    "build": ["kernels.py:double", "kernels.py:double -o .", "kernels.py:double -o /no/such/folder/k.o", "kernels.py:double -o k.xyz",
              "kernels.py:double -o k.o --target cdua", "kernels.py:double -o k.o --header .", "kernels.py:double -o k.s --header k.h",
              "kernels.py:double -o k.ll --checks", "kernels.py:double -o k.zip --threads pool", "kernels.py:double -o k.o --threads many",
              "kernels.py:double -o k.o --levels x86-64-v9", "kernels.py:double -o k.o --levels x86-64-v3,x86-64-v2",
              "kernels.py:double -o k.o --cmake no/such/k.cmake",
              "kernels.py:double -o k.cu --target llvm", "kernels.py:double -o k.ll --target cuda-sim"],
    "diff": ["kernels.py:double", "- -", "kernels.py:double nowhere.tir"],
    "tune": ["kernels.py:double --trials 0", "kernels.py:double --seconds 0", "kernels.py:double --trials x", "kernels.py:double --size n=4",
             "kernels.py:double --size n=x", "kernels.py:double --size n", "kernels.py:double --db kernels.py", "kernels.py:double --output .",
             "kernels.py:double --trace /no/such/folder/t.json", "kernels.py:double --target cdua", "kernels.py:double --seed 1e99", "model.onnx"],
}  # fmt: skip


def refusals(name: str) -> list[list[str]]:
    rest = shlex.split(" ".join(OPTIONS.get(name, [])))
    files = [[file, *rest] for file in (*TEXTS, *NO_FILES)]
    return files + [[*line, *rest] for line in BAD_OPTIONS] + [shlex.split(line) for line in OWN.get(name, [])]


@pytest.mark.parametrize("name", [n for n in VERBS if n not in ("cache", "doctor", "completion")])
def test_bad_input_is_one_line_and_status_1_or_2(name, capsys, monkeypatch):
    for file, text in TEXTS.items():
        Path(file).write_bytes(text.encode("latin-1"))
    Path("big.tir").write_text(HEAD.replace("(8,)", "(n, 1000000000)") + "    A[0, 0] = 1\n")
    Path("steps.json").write_text('[{"name": "no_such_step", "args": {}, "result": null}]')
    np.save("short.npy", np.zeros(3, "float32"))
    np.save("objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.savez("a.npz", x=np.zeros(3))
    Path("huge.npy").write_bytes(Path("short.npy").read_bytes().replace(b"(3,), }", b"(3000000000000,), }"))
    cases = refusals(name)
    assert len(cases) >= 40
    for case in cases:
        monkeypatch.setattr("sys.stdin", io.StringIO("no program"))
        status = main([name, *case])
        out, err = capsys.readouterr()
        assert status in (1, 2) and out == "" and len(err.splitlines()) == 1, (case, status, out, err)


def test_warnings_of_python_about_a_text_are_no_second_line(tir_):
    import warnings

    Path("digits.tir").write_text(HEAD + "    A[0] = 1if n else (\n")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert tir_("tir show digits.tir")[0] == 1
    assert seen == []


def test_standard_input_that_is_closed_is_an_error(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    assert main(["show", "-"]) == 1
    assert capsys.readouterr().err == "standard input is closed\n"


@pytest.mark.parametrize(
    "line", [[], ["shw"], ["--nope"], ["cache", "x"], ["doctor", "x"], ["completion"], ["completion", "csh"]]
)
def test_a_command_line_that_there_is_not_is_status_2(line, capsys):
    assert main(line) == 2
    out, err = capsys.readouterr()
    assert out == "" and len(err.splitlines()) == 1
