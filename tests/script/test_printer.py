"""Printing: what text rarely makes, forms of names, excerpts, and golden texts."""

import math
import struct
from pathlib import Path

import pytest

import tir
import tir.expr as e
import tir.stmt as s
from tir.buffer import Buffer, Range, decl_buffer
from tir.dtype import DType
from tir.equal import assert_structural_equal
from tir.function import PrimFunc
from tir.node import Node, frozendict
from tir.op import OPS, call
from tir.script import parse
from tir.script.highlight import show, to_ansi, to_html
from tir.script.print_expr import EXPRESSIONS, PARTS
from tir.script.print_stmt import STATEMENTS
from tir.script.printer import short_text, to_lines
from tir.stmt import root_block
from tir.testing import assert_roundtrip
from tir.visit import walk

GOLDEN = Path(__file__).parents[1] / "golden" / "printer"
F32 = DType("float32")
I64 = DType("int64")


def func(body, *buffers, scalars=(), name="main", attrs=()):
    handles = {e.Var(f"{b.name}_handle", "handle"): b for b in buffers}
    return PrimFunc(
        (*handles, *scalars),
        body,
        buffer_map=frozendict(handles),
        attrs=frozendict({"global_symbol": name, **dict(attrs)}),
    )


def check(program):
    text = program.script()
    again = parse(text)
    assert_structural_equal(program, again)
    assert again.script() == text
    return text


def of_value(value, *scalars, dtype=None):
    """A function that stores ``value``."""
    out = decl_buffer((4,), dtype or value.dtype.element, name="out")
    index = e.IntImm(0) if value.dtype.lanes == 1 else e.Ramp(e.IntImm(0), e.IntImm(1), value.dtype.lanes)
    return func(s.BufferStore(out, value, (index,)), out, scalars=scalars)


def test_every_node_class_has_a_printing_rule():
    def subclasses(cls):
        for sub in cls.__subclasses__():
            yield sub
            yield from subclasses(sub)

    def concrete(cls):
        if hasattr(cls, "as_script"):  # says its text itself
            return False
        return cls.fields and cls.__module__.startswith("tir.") and "__dataclass_fields__" in cls.__dict__

    assert {c for c in subclasses(e.Expr) if concrete(c)} == set(EXPRESSIONS)
    assert {c for c in subclasses(s.Stmt) if concrete(c)} == set(STATEMENTS)
    core = {c for c in subclasses(Node) if concrete(c) and c.__module__ in ("tir.buffer", "tir.expr_nodes")}
    assert core - set(EXPRESSIONS) == set(PARTS)


# ---------------------------------------------------------------- trees exactly as they are

N, M = e.Var("n"), e.Var("m")
ZERO, ONE, TWO = e.IntImm(0), e.IntImm(1), e.IntImm(2)


@pytest.mark.parametrize(
    "kind", [e.Add, e.Sub, e.Mul, e.Div, e.Mod, e.FloorDiv, e.FloorMod, e.Min, e.Max], ids=lambda k: k.__name__
)
def test_unsimplified_integer_trees(kind):
    operands = [ONE, TWO, ZERO, e.IntImm(-1), N, e.Add(N, M), e.Mul(N, TWO), e.IntImm(-(2**31))]
    for a in operands:
        for b in operands:
            check(of_value(kind(a, b), N, M))
            check(of_value(kind(kind(N, a), kind(b, M)), N, M))


@pytest.mark.parametrize("kind", [e.EQ, e.NE, e.LT, e.LE, e.GT, e.GE], ids=lambda k: k.__name__)
def test_unsimplified_comparisons(kind):
    for a in (ONE, N, e.Add(N, ZERO)):
        for b in (ONE, M):
            check(of_value(kind(a, b), N, M))
            check(of_value(e.EQ(kind(a, b), kind(b, a)), N, M))
    check(of_value(kind(e.FloatImm(1.0, F32), e.FloatImm(2.0, F32))))


def test_unsimplified_logic():
    t, c, d = e.TRUE, e.LT(N, M), e.GT(N, M)
    for a in (t, c, e.Not(c), e.Or(c, d), e.And(c, d)):
        for b in (t, d, e.Not(t), e.Or(d, c), e.And(d, c)):
            for kind in (e.And, e.Or):
                check(of_value(e.Not(kind(a, b)), N, M))
                check(of_value(kind(kind(a, b), kind(b, a)), N, M))


@pytest.mark.parametrize("op", ["bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right"])
def test_bit_trees(op):
    for a in (ONE, N, e.Add(N, M), call("bitwise_or", N, M)):
        for b in (TWO, M, call("shift_left", N, M), e.LT(N, M).a):
            check(of_value(call(op, a, b), N, M))


def test_int64_constants_beside_variables():
    x = e.Var("x", I64)
    for value in (
        e.Add(x, e.IntImm(2**40, I64)),
        e.Mul(e.IntImm(-3, I64), x),
        e.Add(e.IntImm(1, I64), e.IntImm(2, I64)),
    ):
        check(of_value(value, x))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16"])
def test_extreme_float_constants(dtype):
    kind = DType(dtype)
    check(of_value(e.FloatImm(kind.min_value, kind)))
    check(of_value(e.FloatImm(kind.max_value, kind)))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32", "int64", "uint64"])
def test_extreme_constants(dtype):
    kind = DType(dtype)
    check(of_value(e.IntImm(kind.min_value, kind)))
    check(of_value(e.IntImm(kind.max_value, kind)))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16"])
def test_float_constants(dtype):
    payload = struct.unpack("<d", struct.pack("<Q", 0x7FF8000000001234))[0]
    for value in (0.0, -0.0, 0.1, 1e-7, math.inf, -math.inf, math.nan, payload, 1 / 3, 5e-324, 65504.0, 1e22, -2.5):
        check(of_value(e.FloatImm(value, DType(dtype))))
        x = e.Var("x", DType(dtype))
        check(of_value(e.Mul(x, e.FloatImm(value, DType(dtype))), x))
        check(of_value(e.Sub(e.FloatImm(value, DType(dtype)), x), x))


def test_casts_that_would_fold():
    check(of_value(e.Cast(F32, ONE)))
    check(of_value(e.Cast(DType("int32"), N), N))
    check(of_value(e.Cast(DType("float32x4"), e.Broadcast(ONE, 4))))


@pytest.mark.parametrize("name", sorted(OPS))
def test_every_operator(name):
    op = OPS[name]
    count = next(n for n in range(20) if not op.refused_count(n))
    x, i, b, v, p = (e.Var(n, DType(t)) for n, t in zip("xibvp", ("float32", "int32", "bool", "float32x4", "handle")))
    typed = {
        "floats": x,
        "integers": i,
        "numbers": x,
        "values": i,
        "vectors": v,
        "pointers": p,
        "constants": e.IntImm(8),
    }
    results = ["float32", "handle", "void", "int32x4"] if op.result == "given" else [None]
    for first in (x, i, e.StringImm("float32")):
        args = [typed.get(op.kinds(count).get(at), i if at else first) for at in range(count)]
        if name == "if_then_else":
            args = [b, x, x]
        elif name == "assume":
            args = [b]
        elif name == "tensor_map":  # T reads a whole description only
            args = [args[0], e.StringImm("float32"), *[e.IntImm(8)] * 4]
        elif name == "tvm_access_ptr":
            args = [call("type_annotation", dtype="float32"), p, i, i, i]
        for dtype in results:
            made = call(name, *args, dtype="float32" if name == "if_then_else" else dtype)
            check(func(s.Evaluate(made), scalars=(x, i, b, v, p)))


@pytest.mark.parametrize("name", sorted(n for n, op in OPS.items() if op.kinds(1)))
def test_every_operator_refuses_operands_of_other_kinds(name):
    count = next(n for n in range(20) if not OPS[name].refused_count(n))
    for at in OPS[name].kinds(count):
        args = [N] * count
        args[at] = e.StringImm("text")
        with pytest.raises(TypeError, match=f"{name} takes "):
            call(name, *args)


# ---------------------------------------------------------------- names and strings

ODD = ["lambda", "T", "a.b", "", "1st", "x y", "I", "range", "naïve", "A", "A_1", "None", "float"]


def test_odd_names():
    buffers = [decl_buffer((4,), name=name) for name in ODD]
    i = e.Var("for")
    stores = [s.BufferStore(b, e.FloatImm(1.0, F32), (i,)) for b in buffers]
    text = check(func(s.For(i, ZERO, e.IntImm(4), "serial", s.SeqStmt(tuple(stores))), *buffers, name="class"))
    assert "for_" in text


def test_one_name_for_many_things():
    buffers = [decl_buffer((4,), name="x") for _ in range(3)]
    i, j = e.Var("x"), e.Var("x")
    body = s.BufferStore(buffers[0], e.Add(buffers[1][j], buffers[2][i]), (i,))
    nest = s.For(i, ZERO, e.IntImm(4), "serial", s.For(j, ZERO, e.IntImm(4), "parallel", body))
    text = check(func(nest, *buffers))
    assert "x_4" in text


def test_siblings_share_names():
    a = decl_buffer((4,), name="A")
    loops = [
        s.For(v, ZERO, e.IntImm(4), "serial", s.BufferStore(a, a[v] + 1.0, (v,))) for v in (e.Var("i"), e.Var("i"))
    ]
    assert check(func(s.SeqStmt(tuple(loops)), a)).count("for i in range(4)") == 2


@pytest.mark.parametrize(
    "text", ["", "'", '"', "\\", "\n\t\r\0", "'\"\\'", "naïve \U0001f600 \u2028 \x7f", "{x}%s", 'end\\"']
)
def test_strings(text):
    a = decl_buffer((4,), name="A")
    body = s.SeqStmt(
        (s.AssertStmt(e.LT(N, M), e.StringImm(text)), s.Evaluate(call("call_packed", text, a.data, dtype="int32")))
    )
    check(func(body, a, scalars=(N, M), attrs={"note": text}))


def test_annotations():
    a = decl_buffer((4,), name="A")
    i = e.Var("i")
    notes = frozendict(
        {
            "a": (1, 2.5, "x", None, True, (1, (2,))),
            "b": frozendict({"c": math.inf, "d": ()}),
            "e": e.IntImm(3, I64),
            "f": N,
            "g": e.FloatImm(1.5, F32),
            "h": e.TRUE,
            "j": e.StringImm("s"),
            "k": e.Add(N, ONE),
        }
    )
    check(func(s.For(i, ZERO, e.IntImm(4), "serial", s.BufferStore(a, a[i], (i,)), "", notes), a, scalars=(N,)))


# ---------------------------------------------------------------- scopes


def test_scoped_statements_in_every_place():
    a = decl_buffer((4,), name="A")

    def store(x):
        return s.BufferStore(a, e.Cast(F32, x), (ZERO,))

    def let(body_of):
        v = e.Var("v")
        return s.LetStmt(v, e.Add(ONE, TWO), body_of(v))

    nested = let(lambda u: s.SeqStmt((store(u), let(lambda w: s.SeqStmt((store(w), let(store), store(u)))), store(u))))
    check(func(nested, a))
    check(func(s.SeqStmt((let(store), nested, let(store))), a))
    check(func(s.IfThenElse(e.LT(N, M), let(store), s.IfThenElse(e.TRUE, let(store), nested)), a, scalars=(N, M)))


def test_let_expressions_everywhere():
    def let():
        x = e.Var("x")
        return e.Let(x, e.Add(N, ONE), e.Mul(x, x))

    a = decl_buffer((64,), "int32", name="A")
    i, j = e.Var("i"), e.Var("j")
    inner = s.BufferStore(a, e.Add(let(), let()), (let(),))
    loops = s.For(i, ZERO, let(), "serial", s.For(j, let(), e.IntImm(4), "serial", inner))
    chain = s.IfThenElse(e.LT(let(), N), inner, s.IfThenElse(e.LT(let(), M), inner, inner))
    check(func(s.SeqStmt((loops, chain, s.While(e.LT(let(), N), inner))), a, scalars=(N, M)))


def test_a_buffer_declared_nowhere_is_declared_where_its_pointer_is():
    a = decl_buffer((16,), name="A")
    view = decl_buffer((4, 4), name="view", data=a.data)
    p = e.Var("p", "handle", F32, "local")
    local = Buffer("local", (e.IntImm(4),), F32, p, (), None, "local", 0, 0, (), "")
    body = s.Allocate(p, F32, (e.IntImm(4),), e.TRUE, s.BufferStore(local, view[1, 2], (ZERO,)))
    check(func(s.SeqStmt((body, s.BufferStore(a, view[0, 0], (ZERO,)))), a))


def test_range_ends_read_back_exactly():
    a = decl_buffer((64,), name="A")
    for low in (ZERO, TWO, N, e.Add(N, ONE), e.Add(N, ZERO)):
        for extent in (
            ZERO,
            ONE,
            e.IntImm(4),
            N,
            e.Add(ZERO, N),
            e.Add(N, M),
            e.Sub(M, N),
            e.Sub(M, low),
            e.Mul(N, TWO),
        ):
            i = e.Var("i")
            block = s.Block((), (a.full_region().replace(region=(Range(low, extent),)),), (), "b", s.NOP)
            loop = s.For(i, low, extent, "serial", s.BlockRealize((), e.TRUE, block))
            check(func(root_block(loop), a, scalars=(N, M)))


# ---------------------------------------------------------------- excerpts, short text, colour

MATMUL = """
@T.prim_func
def matmul(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32"), C: T.Buffer((64, 64), "float32")):
    for i in range(64):
        for j in T.parallel(64):
            for k in range(64):
                with T.block("C"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    with T.init():
                        C[vi, vj] = 0.0
                    C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""


def nodes(program, kind):
    return [n for n in walk(program) if isinstance(n, kind)]


def golden(request, name, text):
    path = GOLDEN / f"{name}.txt"
    if request.config.getoption("--update-golden"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert path.exists(), f"no golden file {path.name}: run pytest --update-golden, and review it"
    assert text == path.read_text()


def test_golden_matmul(request):
    golden(request, "matmul", parse(MATMUL).script())


def test_golden_without_sugar(request):
    golden(request, "matmul_plain", parse(MATMUL).script(syntax_sugar=False, indent=2, name="kernel", header=False))


def test_golden_excerpts(request):
    program = parse(MATMUL)
    loops = nodes(program, s.For)
    parts = [
        to_lines(program, (loops[1],)),
        to_lines(program, (nodes(program, s.BlockRealize)[1],), note="this block"),
        to_lines(program, tuple(n for n in nodes(program, e.Mul))),
        to_lines(program, (loops[0], nodes(program, s.BufferStore)[-1]), context=1),
        to_lines(program, (program.body,)),
    ]
    golden(request, "excerpts", "\n\n".join(parts) + "\n")


def test_excerpt_numbers_are_those_of_the_script():
    program = parse(MATMUL)
    lines = program.script().splitlines()
    for line in to_lines(program, (nodes(program, s.For)[1],)).splitlines():
        number, _, text = line.partition("|")
        if number.strip().isdigit():
            assert lines[int(number) - 1] == text[1:]


def test_excerpt_of_a_stranger_is_empty():
    assert to_lines(parse(MATMUL), (s.NOP,)) == ""


def test_short_text():
    program = parse(MATMUL)
    assert repr(nodes(program, e.Mul)[0]) == "A[vi, vk] * B[vk, vj]"
    assert repr(program.buffers()[0]) == 'A: T.Buffer((64, 64), "float32")'
    assert repr(Range(ZERO, e.IntImm(4))) == "T.Range(0, 4)"
    assert short_text(nodes(program, s.For)[0]).startswith("for i in range(64):\n    for j in T.parallel(64):")
    assert repr(e.Let(N, ONE, N + 1)) == "T.Let(n + 1, where={n: 1})"
    assert "T.axis.spatial(64, ...)" in repr(nodes(program, s.Block)[1])
    assert repr(program.buffers()[0].full_region()) == "A[0:64, 0:64]"


def test_colours_keep_the_text(capsys):
    import re

    text = parse(MATMUL).script()
    assert re.sub(r"\033\[[0-9;]*m", "", to_ansi(text)) == text
    page = to_html(text)
    assert "T" in page and "<script" not in page and "&quot;" in page
    show(text)
    assert capsys.readouterr().out == text + "\n"
    for broken in ("x = (", "'", "def f(:\n  'a", "\\\n", "π = ^^^"):
        assert re.sub(r"\033\[[0-9;]*m", "", to_ansi(broken)) == broken


def test_names_print_as_the_parser_reads_them():
    func = parse("""
@T.prim_func
def main(A: T.Buffer((4,), "int32")):
    for i in range(4):
        with T.block("A"):
            vi = T.axis.spatial(4, i)
            A[vi] = vi
""")
    sch = tir.Schedule(func)
    sch.split("i", [2, 2], names=["ﬁ", "fi"])
    sch.split("ﬁ", [1, 2], names=["x১", "x"])
    assert_roundtrip(sch.mod)
