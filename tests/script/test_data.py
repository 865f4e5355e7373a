"""Texts that are data: everything that the printer prints is read, and nothing else, and none of it runs."""

from __future__ import annotations

import contextlib
import re
import sys

import pytest
from golden_cases import CASES
from te_programs import PROGRAMS
from test_corpus import ALL

import tir
from tir import te
from tir.script import parse, parse_data, programs_in
from tir.testing.programs import random_program

HEAD = '@T.prim_func\ndef f(A: T.Buffer((8,), "int32"), n: T.int32):\n'


def read_back(program, spellings=(True, False)) -> None:
    for sugar in spellings:
        text = program.script(syntax_sugar=sugar)
        read = parse_data(text)
        tir.assert_structural_equal(program, read)
        assert read.script(syntax_sugar=sugar) == text


def lowered(program, *targets: str):
    for target in targets:
        try:
            yield tir.lower(program, target=target)
        except tir.TirError:
            continue


# ---------------------------------------------------------------- what is read


@pytest.mark.parametrize("text", ALL)
def test_every_program_of_the_corpus_and_what_it_is_lowered_to(text):
    program = parse(text)
    read_back(program)
    for low in lowered(program, "llvm", "cuda"):
        read_back(low)


@pytest.mark.parametrize("name", sorted({case.parent.name for case in CASES}))
def test_the_programs_of_the_golden_cases(name):
    """Each once: many cases begin with the same program."""
    cases = [case.read_text(encoding="utf-8") for case in CASES if case.parent.name == name]
    for text in dict.fromkeys(part for case in cases for part in re.split(r"^== .*\n", case, flags=re.M)):
        if re.match(r"(# from tir.*\n)*\n?@[TI]\.", text):
            read_back(parse(text), [True])


def test_the_programs_of_tensor_expressions():
    for make in PROGRAMS.values():
        program = te.create_prim_func(list(make(te, tir)))
        read_back(program, [True])


@pytest.mark.parametrize("seed", range(20))
def test_random_programs(seed):
    read_back(random_program(seed))


def test_deep_expressions_whose_parts_have_names():
    text = HEAD + "    A[0] = " + "T.max(n, 2 * " * 90 + "n" + ")" * 90 + "\n"
    program = parse(text)
    assert "T.meta_var" in program.script()
    read_back(program)


def test_a_text_without_a_program_is_refused():
    for text in (
        "",
        "pass",
        "x = 1",
        "def f(): pass",
        "import os",
        "from tir.script import tir as T",
        "@T.macro\ndef f(): pass",
    ):
        with pytest.raises(tir.ParseError):
            parse_data(text)
    for value in (5, None, b"text"):
        with pytest.raises(TypeError, match="a text of a program is a string"):
            parse_data(value)


def test_only_the_first_error_is_looked_for():
    text = HEAD + "".join(f"    A[{k}] = unknown_{k}\n" for k in range(5))
    with pytest.raises(tir.ParseError) as caught:
        parse_data(text)
    assert len(caught.value.diagnostics) == 1
    with pytest.raises(tir.ParseError) as caught:
        parse(text)
    assert len(caught.value.diagnostics) == 5


# ---------------------------------------------------------------- what is not


class Audit:
    """What Python is asked to do while ``on``: events that no reading of a text has."""

    events = frozenset({"exec", "open", "import", "os.system", "subprocess.Popen", "os.putenv", "socket.connect"})

    def __init__(self):
        self.on, self.seen = False, []
        sys.addaudithook(self)

    def __call__(self, event, args):
        if self.on and event in self.events and args[0] != "<unknown>":  # Python looks for the file of a syntax error
            self.seen.append((event, args))


@pytest.fixture(scope="module")
def audit():
    made = Audit()
    with pytest.raises(tir.ParseError):
        parse_data(HEAD + "    A[0] = unknown_name + T.nothing\n")  # what an error imports is there
    with pytest.raises(tir.ParseError):
        parse_data(HEAD + "    A[0] = T.nothing\n")
    return made


HOSTILE = [
    '__import__("os").system("true")', 'open("/dev/null")', "T.macro.__globals__", 'T.grid.__globals__["builtins"]',
    "T.builtins", "T._e", "T.__dict__", "T.Callable", "I.Directive", "I.__builtins__", "A.__class__", "A.shape[0]",
    "A.dtype", "n.dtype", "().__class__", "(1).real", '"a".join(["b"])', "T.axis.mro()", "T.axis._make", "T.axis.__init__",
    "T.prim_func(lambda: 0)", "T.prim_func()(lambda: 0)", "T.macro(lambda a: a)", "T.macro(f)", "f(A, n)", "tir.load(\"x\")",
    "max(1, 2)", "sum(range(10**10))", "len([1])", "[x for x in range(3)]", "{x for x in A}", 'f"{n}"', "(lambda: 1)()",
    "(lambda g: g(g))(lambda g: g(g))", "(lambda x: x + x)((lambda x: x + x)(n))", '"%999999999d" % 1', '"a" * 10**9',
    "[0] * 10**9", "10**10**10", "1 << 10**12", "0x" + "f" * 5000, "9" * 5000, "n[0]", '{"a": 1}["a"]', "[1, 2][0]",
    'T.index_map(lambda i: __import__("os"))', "T.comm_reducer(lambda a, b: [a for _ in range(10**10)], [0])", "T.let[n]",
    "T.meta_var([1, 2])", "await n", "(y := 5)", "yield", "...", 'b"a"', "1j", "T.target.__globals__", "T.nothing", "range.__self__",
    "float.__base__", "float.fromhex('0x1')", "print(1)", "exec('1')", "eval('1')", "T.Buffer[(8,), 'int32']",
]  # fmt: skip
PLACES = {
    "value": HEAD + "    A[0] = {}\n",
    "index": HEAD + "    A[{}] = 1\n",
    "bound": HEAD + "    for i in range({}):\n        A[0] = 1\n",
    "statement": HEAD + "    {}\n",
    "name": HEAD + "    x = {}\n    A[0] = x\n",
    "annotation": "@T.prim_func\ndef f(A: T.Buffer(({},), 'int32')):\n    A[0] = 1\n",
    "annotation in a string": "@T.prim_func\ndef f(A: {!r}):\n    A[0] = 1\n",
    "decorator": "@{}\ndef f(A: T.Buffer((8,), 'int32')):\n    A[0] = 1\n",
    "second decorator": "@T.prim_func\n@{}\ndef f(A: T.Buffer((8,), 'int32'), n: T.int32):\n    A[0] = 1\n",
    "default": "@T.prim_func\ndef f(A: T.Buffer((8,), 'int32'), n: T.int32 = {}):\n    A[0] = 1\n",
    "result": "@T.prim_func\ndef f(A: T.Buffer((8,), 'int32'), n: T.int32) -> {}:\n    A[0] = 1\n",
    "attribute": HEAD + '    T.func_attr({{"a": {}}})\n    A[0] = 1\n',
    "attribute of a module": "@I.ir_module\nclass M:\n    I.module_attrs({{'a': {}}})\n",
    "constant of a module": "@I.ir_module\nclass M:\n    x = {}\n",
    "base class": "class M({}):\n    @T.prim_func\n    def f(A: T.Buffer((8,), 'int32')):\n        x: {} = 5\n        A[0] = x\n",
    "helper": "def g(a={}):\n    return a\n",
    "constant": "x = {}\n",
}


@pytest.mark.parametrize("place", PLACES)
def test_nothing_runs_wherever_it_stands(place, audit):
    for value in HOSTILE:
        text = PLACES[place].format(value, value)
        audit.on, audit.seen = True, []
        with contextlib.suppress(tir.ParseError, tir.WellFormedError):
            parse_data(text)
        audit.on = False
        assert audit.seen == [], text


@pytest.mark.parametrize("value", HOSTILE)
def test_what_no_printed_program_has_is_refused(value):
    with pytest.raises(tir.ParseError):
        parse_data(PLACES["value"].format(value))


@pytest.mark.parametrize(
    "lines",
    [
        ["x0 = T.meta_var(n + n)"] + [f"x{k + 1} = T.meta_var(x{k} + x{k})" for k in range(200)] + ["A[0] = x200"],
        [f"{' ' * k}for i{k} in T.serial({'0' if not k else f'i{k - 1} + i{k - 1}'}, 1000, step=2):" for k in range(40)]
        + [" " * 40 + "A[0] = i39"],
        ["A[0] = " + "(" * 100_000 + "n" + ")" * 100_000],
        ["A[0] = " + "-" * 100_000 + "n"],
        ["A[0] = " + "not " * 100_000 + "n"],
        ["A[0] = " + "n if n else " * 3000 + "n"],
        ["A[0] = " + "T.max(n, " * 190 + "n" + ")" * 190],
        ["A[0] = " + "lambda: " * 10_000 + "n"],
        ["A" + "[A" * 5000 + "]" * 5000 + " = 1"],
        [f"A[0] = unknown_{k} + T.unknown_{k}" for k in range(2_000)],
        ['T.func_attr({"a": ' + "[" * 5000 + "]" * 5000 + "})"],
        ["if n > 0:\n    " + "A[0] = 1"] + ["elif n > 0:\n        A[0] = 1"] * 2000,
    ],
)
def test_reading_ends(lines):
    text = HEAD + "".join(f"    {line}\n" for line in lines)
    with contextlib.suppress(tir.TirError):
        parse_data(text).script()


@pytest.mark.parametrize("read", [parse, parse_data])
@pytest.mark.parametrize("annotation", ["((", "T.Buffer((8,)", "(" * 1000, "", "\0", "-" * 100_000 + "1"])
def test_annotations_in_strings_that_are_no_python(read, annotation):
    with pytest.raises(tir.ParseError):
        read(f"@T.prim_func\ndef f(A: {annotation!r}):\n    pass\n")


# ---------------------------------------------------------------- files

DOUBLE = HEAD.replace("f(", "double(") + "    A[0] = n * 2\n"


@pytest.mark.parametrize(
    "line",
    [
        "import tir",
        "from tir.script import tir as T",
        "from tir.script import ir as I, tir as T",
        "from tvm.script import tir as T",
        "from __future__ import annotations",
    ],
)
def test_lines_that_import_the_dialect_are_read_and_import_nothing(line, audit):
    text = f"{line}\n\n{DOUBLE}"
    audit.on, audit.seen = True, []
    program = parse_data(text)
    audit.on = False
    assert audit.seen == [] and program.name == "double"


@pytest.mark.parametrize(
    "line",
    [
        "import os",
        "import tir as T",
        "import tir.script",
        "import tir, os",
        "from tir.script import tir",
        "from tir.script import tir as I",
        "from tir.script import *",
        "from .script import tir as T",
        "from os import path as T",
        "from tir.script import parse as T",
    ],
)
def test_other_imports_are_refused_at_their_line(line):
    with pytest.raises(tir.ParseError, match="imports nothing but the dialect") as caught:
        parse_data(f"{line}\n{DOUBLE}")
    assert caught.value.diagnostics[0].span.line == 1


def test_all_programs_of_a_text_are_read_by_name():
    found = programs_in(DOUBLE + HEAD + "    A[0] = n\n" + DOUBLE.replace("n * 2", "n * 3"))
    assert list(found) == ["f", "double"] and "n * 3" in found["double"].script()
    assert programs_in("from tir.script import tir as T\n") == {}
    with pytest.raises(tir.ParseError, match="k.tir:3"):
        programs_in(HEAD + "    A[0] = m\n", "k.tir")
