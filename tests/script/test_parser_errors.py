"""Faults in programs: what the message says and where it points."""

from __future__ import annotations

import linecache
import textwrap

import pytest

import tir
from tir import ParseError
from tir.script import ir as I
from tir.script import parse
from tir.script import tir as T

HEAD = (
    '@T.prim_func\ndef f(A: T.Buffer((16, 16), "float32"), H: T.Buffer((16,), "float16"), n: T.int32, x: T.float32):\n'
)


def faults(text: str) -> list[tuple[str, str, list[str]]]:
    """(message, underlined text, notes) of each fault of a body."""
    with pytest.raises(ParseError) as caught:
        parse(HEAD + textwrap.indent(textwrap.dedent(text).strip("\n"), "    "))
    out = []
    for d in caught.value.diagnostics:
        line = d.source.line(d.span.line)
        end = d.span.end_col if d.span.end_line == d.span.line else len(line)
        out.append((d.message, line[d.span.col : end], d.notes))
    return out


CASES = [
    ("A[0, 0] = nn + 1.0", "undefined name `nn`", "nn", "did you mean `n`?"),
    ("A[0, 0] = T.exq(x)", "the dialect has no T.exq", "T.exq", "did you mean `exp`"),
    ("A[0] = 1.0", "buffer `A` has 2 dimensions (16, 16), but is indexed with 1", "A[0]", ""),
    ("A[0, 0] = H[0, n]", "buffer `H` has 1 dimension (16), but is indexed with 2", "H[0, n]", ""),
    ("A[0, x] = 1.0", "index 1 of `A` is a float32, not an integer", "A[0, x]", ""),
    ("H[0] = x", "buffer `H` holds float16, but the value stored is float32", "H[0]", 'T.Cast("float16", ...)'),
    (
        "A[0, 0:4] = T.Broadcast(x, 8)",
        "buffer `A` holds float32x4, but the value stored is float32x8",
        "A[0, 0:4]",
        "4 lanes",
    ),
    (
        "A[0, 0] = T.Broadcast(n, 2) + T.Broadcast(n, 4)",
        "operands of `+` have 2 and 4 lanes",
        "T.Broadcast(n, 2) + T.Broadcast(n, 4)",
        "",
    ),
    (
        'T.call_extern("int32", "f", A[n, 0:4])',
        "`A[n, 0:4]` is no value: a call takes the address of its first element, T.address_of(A[n, 0])",
        'T.call_extern("int32", "f", A[n, 0:4])',
        "",
    ),
    ("n[0] = 1", "`n` (int32 expression) is no buffer; only buffer elements can be stored to", "n[0]", ""),
    ("A.data = 1", "an attribute cannot be assigned", "A.data", ""),
    ("T.evaluate(A.shpe)", "a buffer has no attribute `shpe`", "A.shpe", "shape"),
    ("for i in [1, 2]:\n    T.evaluate(i)", "a `for` loop runs over T.serial", "[1, 2]", "T.macro"),
    ("for i in range(4, 0, -1):\n    T.evaluate(i)", "a positive constant", "range(4, 0, -1)", "upwards"),
    ("for i, j in T.grid(4):\n    pass", "1 loop cannot be unpacked into 2 names", "i, j", "one name"),
    ("with A:\n    pass", "`with` cannot open a buffer `A`", "A", "T.block"),
    ("try:\n    pass\nfinally:\n    pass", "`try` is not part of the dialect", "try:", ""),
    ("class K:\n    pass", "a class is not part of the dialect", "class K:", ""),
    ("def g():\n    pass", "a nested function is not part of the dialect", "def g():", "T.macro"),
    ("import os", "`import` is not part of the dialect", "import os", "outside"),
    ("T.evaluate((y := n))", "the walrus `:=` is not part of the dialect", "y := n", ""),
    ("a = b = n", "one target at a time", "a = b = n", ""),
    ("T.reads(A[0, 0])", "T.reads belongs directly inside a block", "T.reads(A[0, 0])", "T.block"),
    ("vi = T.axis.spatial(4, n)", "T.axis belongs directly inside a block", "vi = T.axis.spatial(4, n)", ""),
    (
        "with T.block('b'):\n    vi, vj = T.axis.remap('SS', [n, n])",
        "T.axis.remap takes loop variables",
        "vi, vj",
        "T.axis.spatial",
    ),
    ("T.block('b')", "T.block needs `with`", "T.block('b')", ""),
    ("T.grid(4)", "T.grid needs `for`", "T.grid(4)", ""),
    ("5", "a Python int is not a statement", "5", ""),
    ("q: T.int8 = n", "`q` is declared int8, but its value is int32", "n", "T.Cast"),
    ("q: str = n", "`str` is not a type of the dialect", "str", "T.int32"),
    ("x(1)", "`x` is a float32 expression and cannot be called", "x(1)", ""),
    ("T.evaluate(T.exp(x, x))", "exp takes 1 argument", "T.exp(x, x)", ""),
    ("T.evaluate(n / 2)", "`/` of two integers (int32) is ambiguous", "n / 2", ""),
    ("T.evaluate(n // 0)", "division", "n // 0", ""),
    ("T.evaluate(A + 1)", "buffer `A` is not a value; index it", "A + 1", ""),
    (
        "T.match_buffer(n, (4,))",
        "parameter `n` is int32; T.match_buffer takes a T.handle",
        "T.match_buffer(n, (4,))",
        "",
    ),
    ("T.evaluate(1 if x else 2)", "a condition must be bool or integer", "1 if x else 2", ""),
    ("H[0] = 1.5 + n", "`+` mixes int32 with the float 1.5", "1.5 + n", ""),
]


@pytest.mark.parametrize("text, message, place, note", CASES, ids=lambda v: str(v)[:30])
def test_one_fault(text, message, place, note):
    found = faults(text)
    assert len(found) == 1, found
    said, where, notes = found[0]
    assert message in said
    assert where.startswith(place)
    assert note in "\n".join(notes)


def test_every_fault_is_reported_once():
    found = faults("""
        for i in T.gird(16):
            A[i, 0] = yy
        bad = undefined_thing + 1
        A[0, 0] = bad * 2.0
        with T.block("b"):
            vi = T.axis.spatial(16, iz)
            A[vi, 0] = A[vi, 0]
            A[0, 0] = H[0, 1]
        if qq > 1:
            A[0] = 1.0
    """)
    assert [m for m, *_ in found] == [
        "the dialect has no T.gird",
        "undefined name `yy`",
        "undefined name `undefined_thing`",
        "undefined name `iz`",
        "buffer `H` has 1 dimension (16), but is indexed with 2",
        "undefined name `qq`",
        "buffer `A` has 2 dimensions (16, 16), but is indexed with 1",
    ]


def test_golden_message():
    with pytest.raises(ParseError) as caught:
        parse(
            """
            @T.prim_func
            def scale(A: T.Buffer((8,), "float32"), H: T.Buffer((8,), "float16")):
                for i in range(8):
                    H[i] = A[i] * factor
                    H[i] = A[i] * 2.0
            """
        )
    assert str(caught.value) == textwrap.dedent(
        """\
        2 errors in the text
        error: undefined name `factor`
         --> <text>:5:23
        5 |         H[i] = A[i] * factor
          |                       ^^^^^^
        error: buffer `H` holds float16, but the value stored is float32
         --> <text>:6:9
        6 |         H[i] = A[i] * 2.0
          |         ^^^^
          = convert it: T.Cast("float16", ...)"""
    )


def test_the_users_own_line_in_a_file():
    with pytest.raises(ParseError) as caught:

        @T.prim_func
        def f(A: T.Buffer((8,), "float32")):
            for i in T.serial(8):
                A[i] = A[j]  # noqa: F821  # the fault

    (fault,) = caught.value.diagnostics
    assert fault.span.filename == __file__ and "# the fault" in linecache.getline(__file__, fault.span.line)
    assert f"{fault.span.line} |                 A[i] = A[j]  # noqa" in str(caught.value)


def test_a_changing_name_of_another_definition_is_refused():
    ((said, _, notes),) = faults("""
        for i in range(4):
            n = n + i
    """)
    assert "cannot be changed from inside" in said and "another name" in notes[0]
    ((said, where, _),) = faults("""
        if x > 0.0:
            n = 1
        T.evaluate(n)
    """)
    assert "assigned again in an inner scope" in said and where == "n"


def test_faults_in_a_macro_name_both_places():
    @T.macro
    def put(A, i):
        A[i, i, i] = 0.0

    with pytest.raises(ParseError) as caught:

        @T.prim_func
        def f(A: T.Buffer((8,), "float32")):
            put(A, 0)

    (fault,) = caught.value.diagnostics
    assert "indexed with 3" in fault.message and "in macro `put`, called at" in fault.notes[-1]


def test_faults_of_all_functions_of_a_module():
    with pytest.raises(ParseError, match="2 errors in module `M`"):

        @I.ir_module
        class M:
            @T.prim_func
            def f(A: T.Buffer((8,), "float32")):
                A[0] = a1  # noqa: F821

            @T.prim_func
            def g(A: T.Buffer((8,), "float32")):
                A[0] = a2  # noqa: F821


def test_python_syntax_errors_are_shown():
    with pytest.raises(ParseError, match="not Python syntax") as caught:
        parse("@T.prim_func\ndef f(:\n    pass\n")
    assert "2 | def f(:" in str(caught.value)


def test_a_text_without_a_program():
    with pytest.raises(ParseError, match="defines no program"):
        parse("N = 4")


def test_parameters_need_types():
    with pytest.raises(ParseError, match="parameter `a` has no type"):
        parse("@T.prim_func\ndef f(a, b: T.int32):\n    T.evaluate(b)")


def test_deep_nesting_is_a_clear_error():
    with pytest.raises(ParseError, match="nested"):
        parse(HEAD + "    A[0, 0] = " + "(" * 5000 + "x" + ")" * 5000)
    deep = "    T.evaluate(" + "~" * 4900 + "n)"
    with pytest.raises(ParseError, match="nested too deeply") as caught:
        parse(HEAD + deep)
    assert max(map(len, str(caught.value).splitlines())) < 200


def test_a_size_that_no_shape_has_by_itself():
    with pytest.raises(
        tir.WellFormedError, match=r"`n` is not defined here: a shape has it in `n \+ 1` only; make it a param"
    ):
        tir.script.parse(
            "@T.prim_func\ndef f(a: T.handle):\n    n = T.int32()\n    A = T.match_buffer(a, (n + 1, n * 2))\n    A[0, 0] = 1.0\n"
        )


@pytest.mark.parametrize(
    "line, says",
    [
        (
            'with T.block([8, 8], "u") as [vi, vj]:',
            "got [8, 8]; its iterators are made in it: vi = T.axis.spatial(8, i)",
        ),
        ('with T.block([8, T.reduce_axis(0, 8)], "u") as [vi, vk]:', "write `vk = T.axis.reduce(n, k)` in a block"),
        ("T.preflattened_buffer(A, [8])", "write `T.match_buffer(a, shape)` with the shape of the array"),
    ],
)
def test_forms_of_tvm_0_8_say_what_is_written_now(line, says):
    body = f"    {line}\n" + "        A[0] = 1.0\n" * line.endswith(":")
    with pytest.raises(tir.ParseError) as caught:
        tir.script.parse(f'@T.prim_func\ndef f(A: T.Buffer((8,), "float32")):\n{body}')
    assert says in str(caught.value)
