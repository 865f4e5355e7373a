"""Text of expressions, exactly: an operator is printed only if parsing it builds the same node."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from .. import expr as e
from ..aliases import shares_memory
from ..arith import simplify
from ..arith.linear import is_index, linear
from ..buffer import Buffer, BufferRegion, IterVar, MatchBufferRegion, Range
from ..dtype import DType
from ..equal import structural_equal
from ..node import Memo, Node
from ..op import FLOAT_BINARY, FLOAT_UNARY, OPS
from ..visit import walk
from .print_names import Names

# Binding strength, as in Python.
OR, AND, NOT, COMPARE, BIT_OR, BIT_XOR, BIT_AND, SHIFT, SUM, PRODUCT, UNARY, ATOM = range(12)

_INFIX: dict[type, tuple[str, int]] = {
    e.Add: ("+", SUM),
    e.Sub: ("-", SUM),
    e.Mul: ("*", PRODUCT),
    e.Div: ("/", PRODUCT),
    e.FloorDiv: ("//", PRODUCT),
    e.FloorMod: ("%", PRODUCT),
    e.EQ: ("==", COMPARE),
    e.NE: ("!=", COMPARE),
    e.LT: ("<", COMPARE),
    e.LE: ("<=", COMPARE),
    e.GT: (">", COMPARE),
    e.GE: (">=", COMPARE),
    e.And: ("and", AND),
    e.Or: ("or", OR),
}
_FUNCTIONS = {e.Min: "T.min", e.Max: "T.max", e.Div: "T.truncdiv", e.Mod: "T.truncmod"}
_BITS = {
    "bitwise_and": ("&", BIT_AND),
    "bitwise_or": ("|", BIT_OR),
    "bitwise_xor": ("^", BIT_XOR),
    "shift_left": ("<<", SHIFT),
    "shift_right": (">>", SHIFT),
}
_FLOAT_OPS = {*FLOAT_UNARY, *FLOAT_BINARY}
_TYPE_FIRST = ("call_extern", "call_pure_extern", "call_llvm_intrin", "call_llvm_pure_intrin")
_ITER_KIND = {
    "spatial": "DataPar",
    "reduce": "CommReduce",
    "scan": "Ordered",
    "opaque": "DimInfo",
    "thread": "ThreadIndex",
}

# Around the text of a node to be underlined; taken out once the text is laid out.
MARK, UNMARK = "\ue000", "\ue001"


def quoted(text: str) -> str:
    """A double-quoted Python literal."""
    literal = repr(str(text))
    if literal[0] == '"':
        return literal
    return '"' + literal[1:-1].replace("\\'", "'").replace('"', '\\"') + '"'


def number(value: float) -> str:
    """A float as Python text that evaluates to it."""
    return repr(value) if math.isfinite(value) else f'float("{value}")'


MOST_BRACKETS = 60  # levels in one line; Python parses 200, and counts those of statements and regions too
_BRACKETS: Memo[int] = Memo()


def _brackets(x: Any) -> int:
    """How deep the text of ``x`` nests brackets, or more: an operand of another operator may be in parentheses."""
    if not isinstance(x, Node):
        return 0
    found = _BRACKETS.get(x)
    if found is None:
        for n in _inside_out(x, lambda n: _BRACKETS.get(n) is None):
            chained = n.a if type(n) in _INFIX and type(n.a) is type(n) else None
            _BRACKETS[n] = max((_brackets(c) + (c is not chained) for c in n.children()), default=0)
        found = _brackets(x)
    return found


def _inside_out(x: Node, enter: Callable[[Any], bool]) -> list[Any]:
    """The nodes of ``x``, those in others first: long before Python's stack ends, recursion would."""
    return list(walk(x, enter))[::-1]


def _has_own_line(x: Any) -> bool:
    """Whether ``x`` is a part that gets a name of its own: one at every so many levels of brackets."""
    depth = _brackets(x)
    return depth > 0 and depth % MOST_BRACKETS == 0 and all(_brackets(c) < depth for c in x.children())


class ExprPrinter:
    """Prints expressions, regions, buffers' declarations and attribute values under the names in ``names``."""

    def __init__(self, marks: Any = ()):
        self.names = Names()
        self.marks = set(marks)
        self.pending: list[str] = []  # declarations that must come before the statement being printed
        self.part_names: dict[Node, str] = {}  # of those among them that are parts of expressions
        self.naming = False  # inside of an expression whose deep parts have names
        self.fragment = False  # a part of a program: unknown names are shown, not declared
        self.known_data: dict[e.Var, Buffer] = {}

    def mark(self, item: Any, text: str) -> str:
        return f"{MARK}{text}{UNMARK}" if self.marks and item in self.marks else text

    # ------------------------------------------------------------ entry points

    def expr(self, x: Any, least: int = OR) -> str:
        """``x`` in parentheses if it binds weaker than ``least``."""
        text, strength = self.parts(x)
        if strength < least:
            text = f"({text})"
        return text

    def parts(self, x: Any) -> tuple[str, int]:
        rule = EXPRESSIONS.get(type(x))
        if rule is None:
            return self.other(x), ATOM
        if not self.fragment and not self.naming and _brackets(x) >= MOST_BRACKETS:
            self.naming = True
            self.name_parts(x)
            text, strength = self.parts(x)
            self.naming = False
            return text, strength
        text, strength = (self.part_names[x], ATOM) if x in self.part_names else rule(self, x)
        return (self.mark(x, text), strength) if self.marks else (text, strength)

    def taken(self) -> list[str]:
        """The declarations that must come before the statement being printed; they are printed, or dropped, now."""
        pending, self.pending, self.part_names = self.pending, [], {}
        return pending

    def name_parts(self, x: Node) -> None:
        """Name the parts of a deep expression before the current statement, inner ones first; the parser puts them back."""
        for n in _inside_out(x, lambda n: n not in self.part_names and not isinstance(n, e.CommReducer)):
            if _has_own_line(n) and n not in self.part_names:
                text, _ = EXPRESSIONS[type(n)](self, n)
                self.part_names[n] = self.names.reserved("part")
                self.pending.append(f"{self.part_names[n]} = T.meta_var({text})")

    def list(self, items: Any) -> str:
        return ", ".join(self.expr(item) for item in items)

    def shape(self, items: tuple[Any, ...]) -> str:
        return f"({self.list(items)},)" if len(items) == 1 else f"({self.list(items)})"

    def value(self, x: Any) -> str:
        """An attribute or annotation: plain Python data and nodes in it."""
        if isinstance(x, (e.IntImm,)) and not x.dtype.is_bool:
            return f"T.{x.dtype}({x.value})" if _fits(x) else f'T.IntImm("{x.dtype}", {x.value})'
        if isinstance(x, e.IntImm):
            return f"T.bool({bool(x.value)})"
        if isinstance(x, e.StringImm):
            return f"T.StringImm({quoted(x.value)})"
        if isinstance(x, str):
            return quoted(x)
        if isinstance(x, (tuple, list)):
            return f"[{', '.join(self.value(item) for item in x)}]"
        if isinstance(x, dict):
            return "{" + ", ".join(f"{self.value(k)}: {self.value(v)}" for k, v in x.items()) + "}"
        if isinstance(x, float):
            return number(x)
        if isinstance(x, Node):
            return self.expr(x)
        as_script = getattr(x, "as_script", None)
        return str(as_script()) if callable(as_script) else repr(x)

    # ------------------------------------------------------------ names

    def var(self, v: e.Var) -> tuple[str, int]:
        name = self.names.of.get(v)
        if name is not None:
            return name, ATOM
        owner = self.known_data.get(v)
        if owner is not None and owner in self.names.of:
            return f"{self.names.of[owner]}.data", ATOM
        if self.fragment:
            return v.name or "v", ATOM
        return self.declare(v), ATOM

    def declare(self, v: e.Var) -> str:
        """Declare a variable before the current statement."""
        name = self.names.define(v, v.name)
        self.pending.append(f"{name} = {self.type_of(v)}")
        return name

    def type_of(self, v: e.Var) -> str:
        """The constructor call that makes a variable like ``v``."""
        if not v.dtype.is_handle:
            return f"T.{v.dtype}()"
        if v.pointer_dtype is None:
            return "T.handle()"
        scope = "" if v.scope == "global" else f", {quoted(v.scope)}"
        return f'T.handle("{v.pointer_dtype}"{scope})'

    def buffer(self, b: Buffer) -> str:
        name = self.names.of.get(b)
        if name is None:
            if self.fragment:
                return b.name
            name = self.declare_buffer(b)
        return self.mark(b, name)

    def has_pointer(self, b: Buffer) -> bool:
        """Whether the pointer of a buffer has a name already."""
        return shares_memory(b, self.names.of) or shares_memory(b, self.known_data)

    def declare_buffer(self, b: Buffer) -> str:
        """Declare a buffer that no construct of the program declares, as a view of its pointer."""
        if not self.has_pointer(b):
            plain = b.data.pointer_dtype == b.dtype and b.data.scope == b.scope
            if not plain:
                self.declare(b.data)
        text = self.buffer_type(b, "T.Buffer")
        name = self.names.define(b, b.name)
        self.known_data.setdefault(b.data, b)
        self.pending.append(f"{name} = {text}")
        return name

    def buffer_type(self, b: Buffer, head: str, first: tuple[str, ...] = ()) -> str:
        """``head(first..., shape, dtype, options)`` with options only where they are not the default."""
        args = [*first, self.shape(b.shape), quoted(b.dtype)]
        scope, data = b.scope, ""
        if self.has_pointer(b):
            data = self.expr(b.data)
        elif not self.fragment and (b.data.pointer_dtype, b.data.scope, b.data.dtype) != (b.dtype, scope, "handle"):
            data = self.declare(b.data)
        if data:
            args.append(f"data={data}")
            scope = "" if scope == (b.data.scope or "global") else scope
        if b.strides:
            args.append(f"strides=[{self.list(b.strides)}]")
        if b.elem_offset is not None:
            args.append(f"elem_offset={self.expr(b.elem_offset)}")
        if scope not in ("", "global") or (scope == "global" and data):
            args.append(f"scope={quoted(scope)}")
        if b.data_alignment:
            args.append(f"align={b.data_alignment}")
        if b.offset_factor:
            args.append(f"offset_factor={b.offset_factor}")
        if b.buffer_type:
            args.append(f"buffer_type={quoted(b.buffer_type)}")
        if b.axis_separators:
            args.append(f"axis_separators={list(b.axis_separators)}")
        return f"{head}({', '.join(args)})"

    # ------------------------------------------------------------ ranges and indices

    def bounds(self, r: Range) -> tuple[str, str]:
        """First and end of a range, such that reading them back gives exactly its min and extent."""
        low, extent = r.min, r.extent
        if e.is_const(low, 0) and isinstance(low, e.IntImm) and low.dtype is extent.dtype:
            if isinstance(extent, e.Add) and (e.is_const(extent.a, 0) or e.is_const(extent.b, 0)):
                return self.expr(low), f"T.Add({self.expr(low)}, {self.expr(extent)})"
            bare = not isinstance(extent, e.IntImm) or low.dtype == "int32"
            return ("0" if bare else self.expr(low)), self.expr(extent)
        if isinstance(low, e.IntImm) and isinstance(extent, e.IntImm) and low.dtype is extent.dtype:
            end = low.value + extent.value
            if low.dtype.min_value <= end <= low.dtype.max_value:
                return self.expr(low), self.expr(e.IntImm(end, low.dtype))
        if is_index(low.dtype) and linear(extent).contains(linear(low).scaled(-1)) and not isinstance(low, e.IntImm):
            from .values import extent_between

            end = simplify(e.Add(low, extent))
            if structural_equal(extent_between(low, end), extent):
                return self.expr(low), self.expr(end)
        return self.expr(low), self.expr(e.Add(low, extent))

    def slice(self, r: Range) -> str:
        low, end = self.bounds(r)
        return f"{low}:{end}" if " " not in low + end else f"{low} : {end}"

    def index(self, i: Any, slices: bool) -> str:
        if slices and isinstance(i, e.Ramp) and e.is_const(i.stride, 1) and i.base.dtype.lanes == 1 and i.lanes > 1:
            if not isinstance(i.base, e.IntImm) or i.base.dtype == "int32":
                text = self.slice(Range(i.base, e.const(i.lanes, i.base.dtype)))
                return self.mark(i, text)
        return self.expr(i)

    def access(self, b: Buffer, indices: tuple[Any, ...], slices: bool = True) -> str:
        ramps = sum(isinstance(i, e.Ramp) for i in indices)
        slices = slices and ramps == 1 and isinstance(indices[-1], e.Ramp)
        name = self.buffer(b)
        return f"{name}[{', '.join(self.index(i, slices) for i in indices) or '()'}]"

    def region(self, r: BufferRegion) -> str:
        items = []
        for axis in r.region:
            if e.is_const(axis.extent, 1) and axis.extent.dtype is axis.min.dtype:
                text = self.expr(axis.min)
            else:
                text = self.slice(axis)
            items.append(self.mark(axis, text))
        return self.mark(r, f"{self.buffer(r.buffer)}[{', '.join(items) or '()'}]")

    def iter_var(self, iv: IterVar) -> str:
        dom = "None" if iv.dom is None else f"({', '.join(self.bounds(iv.dom))})"
        tag = f", {quoted(iv.thread_tag)}" if iv.thread_tag else ""
        return f"T.iter_var({self.expr(iv.var)}, {dom}, {quoted(_ITER_KIND[iv.iter_type])}{tag})"

    def other(self, x: Any) -> str:
        """Nodes that are not expressions, and plain values."""
        rule = PARTS.get(type(x))
        if rule is not None:
            return rule(self, x)
        as_script = getattr(x, "as_script", None)
        if callable(as_script):
            return str(as_script())
        if isinstance(x, Node):
            fields = ", ".join(f"{name}={self.value(getattr(x, name))}" for name in x.fields)
            return f"{type(x).__name__}({fields})"
        return self.value(x)

    # ------------------------------------------------------------ expressions

    def int_imm(self, x: e.IntImm) -> tuple[str, int]:
        if x.dtype.is_bool:
            return str(bool(x.value)), ATOM
        if not _fits(x):
            return f'T.IntImm("{x.dtype}", {x.value})', ATOM
        if x.dtype == "int32":
            return str(int(x.value)), ATOM if x.value >= 0 else UNARY
        return f"T.{x.dtype}({int(x.value)})", ATOM

    def float_imm(self, x: e.FloatImm) -> tuple[str, int]:
        value = x.value
        if not math.isfinite(value):
            return f'T.{x.dtype}("{value}")', ATOM
        if not x.dtype.holds(value):
            return f'T.FloatImm("{x.dtype}", {value!r})', ATOM
        short = value == int(value) and abs(value) < 1e9 and not (value == 0 and math.copysign(1.0, value) < 0)
        return f"T.{x.dtype}({int(value) if short else repr(value)})", ATOM

    def operand(self, x: Any, other: Any, least: int) -> str:
        """An operand; a constant beside a non-constant takes that one's type and is printed bare."""
        if not isinstance(other, (e.IntImm, e.FloatImm)) and x.dtype is other.dtype and x not in self.marks:
            if isinstance(x, e.IntImm) and x.dtype.is_int and _fits(x):
                return str(int(x.value))
            if isinstance(x, e.FloatImm) and math.isfinite(x.value) and x.dtype.holds(x.value):
                return repr(float(x.value))
        return self.expr(x, least)

    def binary(self, x: Any) -> tuple[str, int]:
        a, b = x.a, x.b
        kind = type(x)
        if not _folds(kind, a, b):
            infix = _INFIX.get(kind)
            if (
                infix is not None
                and not (kind is e.Div and a.dtype.is_int)
                and not (kind in (e.FloorDiv, e.FloorMod) and a.dtype.is_float)
            ):
                symbol, strength = infix
                left_least = strength + 1 if strength == COMPARE else strength
                # `and` and `or` read back as left-nested chains, like the other operators
                left, right = self.operand(a, b, left_least), self.operand(b, a, strength + 1)
                return f"{left} {symbol} {right}", strength
            function = _FUNCTIONS.get(kind)
            if function is not None and a.dtype.is_int | (kind in (e.Min, e.Max)):
                return f"{function}({self.operand(a, b, OR)}, {self.operand(b, a, OR)})", ATOM
        return f"T.{kind.__name__}({self.expr(a)}, {self.expr(b)})", ATOM

    def not_(self, x: e.Not) -> tuple[str, int]:
        if isinstance(x.a, e.IntImm):
            return f"T.Not({self.expr(x.a)})", ATOM
        return f"not {self.expr(x.a, NOT)}", NOT

    def select(self, x: e.Select) -> tuple[str, int]:
        return f"T.Select({self.list((x.condition, x.true_value, x.false_value))})", ATOM

    def cast(self, x: e.Cast) -> tuple[str, int]:
        return f"T.Cast({quoted(x.dtype)}, {self.expr(x.value)})", ATOM

    def ramp(self, x: e.Ramp) -> tuple[str, int]:
        return f"T.Ramp({self.expr(x.base)}, {self.expr(x.stride)}, {x.lanes})", ATOM

    def broadcast(self, x: e.Broadcast) -> tuple[str, int]:
        return f"T.Broadcast({self.expr(x.value)}, {x.lanes})", ATOM

    def shuffle(self, x: e.Shuffle) -> tuple[str, int]:
        return f"T.Shuffle([{self.list(x.vectors)}], [{self.list(x.indices)}])", ATOM

    def let(self, x: e.Let) -> tuple[str, int]:
        value = self.expr(x.value)
        name = self.names.of.get(x.var)  # known where a part with the variable stands before
        if name is None:
            name = self.names.define(x.var, x.var.name)
            if not self.fragment:
                self.pending.append(f"{name} = {self.type_of(x.var)}")
        return f"T.Let({self.expr(x.body)}, where={{{name}: {value}}})", ATOM

    def load(self, x: e.BufferLoad) -> tuple[str, int]:
        return self.access(x.buffer, x.indices), ATOM

    def argument(self, x: Any) -> str:
        # A slice as an argument of a call is a region, so a vector load must spell its Ramp.
        if isinstance(x, e.BufferLoad):
            return self.mark(x, self.access(x.buffer, x.indices, slices=False))
        return self.expr(x)

    def call(self, x: e.Call) -> tuple[str, int]:
        op, args = x.op, x.args
        same = bool(args) and all(getattr(a, "dtype", None) is x.dtype for a in args)
        plain = not x.annotations
        if plain and op in _BITS and len(args) == 2 and same and not x.dtype.is_bool and not x.dtype.is_float:
            if not all(isinstance(a, e.IntImm) for a in args):
                symbol, strength = _BITS[op]
                a, b = args
                return f"{self.operand(a, b, strength)} {symbol} {self.operand(b, a, strength + 1)}", strength
        texts = [self.argument(a) for a in args]
        return self.call_text(x, texts, same, plain), ATOM

    def call_text(self, x: e.Call, texts: list[str], same: bool, plain: bool) -> str:
        op, args, entry = x.op, x.args, OPS.get(x.op)
        joined = ", ".join(texts)
        if plain:
            if op == "if_then_else" and args[1].dtype is x.dtype:
                return f"T.if_then_else({joined})"
            if op in _TYPE_FIRST and isinstance(args[0], e.StringImm):
                return f"T.{op}({', '.join([quoted(x.dtype), *texts])})"
            if op == "reinterpret":
                return f"T.reinterpret({quoted(x.dtype)}, {joined})"
            if op == "type_annotation":
                return f"T.type_annotation({quoted(x.dtype)})"
            known = op == "tvm_tuple" or (op == "tvm_access_ptr" and len(args) == 5)
            if x.dtype == "handle" and (known or (op == "address_of" and isinstance(args[0], e.BufferLoad))):
                return f"T.{op}({joined})"
            if op in ("isnullptr", "assume") and x.dtype == "bool":
                return f"T.{op}({joined})"
            if op == "ret" and same and len(args) == 1:
                return f"T.ret({joined})"
            if op == "call_global" and args and isinstance(args[0], e.StringImm):
                return f"T.call_global({joined}" + (")" if x.dtype == "void" else f", dtype={quoted(x.dtype)})")
            if op in ("call_packed", "call_cpacked"):
                return f"T.{op}({joined}" + (")" if x.dtype == "int32" else f", dtype={quoted(x.dtype)})")
            if op in _FLOAT_OPS and same and x.dtype.is_float:
                return f"T.{op}({joined})"
            if entry is not None and op not in _OWN_SPELLING and op not in _FLOAT_OPS:
                lanes = args[0].dtype.lanes if args and isinstance(args[0], e.Expr) else 1
                implied = {
                    "same": args[0].dtype if args else "",
                    "bool": DType("bool").with_lanes(lanes),
                    # warp operators left without a type take their operand's: always say it
                    "given": "" if op.startswith("tvm_warp_") else "void",
                }
                if x.dtype == implied.get(entry.result, entry.result) and not _type_like(args):
                    if op != "abs" or not x.dtype.is_float:
                        return f"T.{op}({joined})"
                if entry.result == "given":
                    return f"T.{op}({', '.join([*texts, f'dtype={quoted(x.dtype)}'])})"
        call = f"T.Call({quoted(x.dtype)}, {quoted(op)}, [{joined}])"
        return call if plain else f"{call[:-1]}, annotations={self.value(x.annotations)})"

    def reduce(self, x: e.Reduce) -> tuple[str, int]:
        parts = [
            self.expr(x.combiner),
            f"[{self.list(x.source)}]",
            f"[{self.list(x.init)}]",
            f"[{self.list(x.axis)}]",
            self.expr(x.condition),
            str(x.value_index),
        ]
        return f"T.Reduce({', '.join(parts)})", ATOM

    def comm_reducer(self, x: e.CommReducer) -> str:
        identity = self.list(x.identity)
        self.names.push()
        params = [self.names.define(v, v.name) for v in (*x.lhs, *x.rhs)]
        result = self.list(x.result)
        self.names.pop()
        result = result if len(x.result) == 1 else f"({result})"
        return f"T.comm_reducer(lambda {', '.join(params)}: {result}, [{identity}])"


_OWN_SPELLING = {
    "if_then_else", "reinterpret", "type_annotation", "address_of", "tvm_access_ptr", "tvm_tuple", "isnullptr", "ret",
    "call_global", "call_packed", "call_cpacked", "assume", "print", *_TYPE_FIRST,
}  # fmt: skip


def _fits(x: e.IntImm) -> bool:
    return x.dtype.lanes == 1 and x.dtype.min_value <= x.value <= x.dtype.max_value


def _type_like(args: tuple[Any, ...]) -> bool:
    """Whether a call's first argument could be taken for its result type."""
    return bool(args) and isinstance(args[0], e.StringImm)


def _folds(kind: type, a: Any, b: Any) -> bool:
    """Whether the operator for ``kind`` would simplify these operands instead of building the node."""
    if a.dtype is not b.dtype:
        return True
    if kind in (e.And, e.Or):
        return isinstance(a, e.IntImm) or isinstance(b, e.IntImm) or not a.dtype.is_bool
    if isinstance(a, (e.IntImm, e.FloatImm)) and isinstance(b, (e.IntImm, e.FloatImm)):
        return isinstance(a, e.IntImm) or kind in _COMPARISONS
    if kind in _COMPARISONS:
        return a.dtype.is_handle
    if a.dtype.is_bool:
        return True
    if isinstance(b, e.IntImm) and kind in _NEUTRAL.get(b.value, ()):
        return True
    return isinstance(a, e.IntImm) and kind in _ABSORBED.get(a.value, ())


# What the operators simplify: x + 0, x * 1 and so on by the right operand's value, 0 + x, 1 * x by the left one's.
_NEUTRAL = {
    0: (e.Add, e.Sub, e.Mul, e.Div, e.Mod, e.FloorDiv, e.FloorMod),
    1: (e.Mul, e.Div, e.Mod, e.FloorDiv, e.FloorMod),
}
_ABSORBED = {0: (e.Add, e.Mul, e.Div, e.Mod, e.FloorDiv, e.FloorMod), 1: (e.Mul,)}
_COMPARISONS = (e.EQ, e.NE, e.LT, e.LE, e.GT, e.GE)

EXPRESSIONS: Mapping[type, Callable[[ExprPrinter, Any], tuple[str, int]]] = {
    e.Var: ExprPrinter.var,
    e.IntImm: ExprPrinter.int_imm,
    e.FloatImm: ExprPrinter.float_imm,
    e.StringImm: lambda p, x: (quoted(x.value), ATOM),
    **dict.fromkeys((*_INFIX, e.Mod, e.Min, e.Max), ExprPrinter.binary),
    e.Not: ExprPrinter.not_,
    e.Select: ExprPrinter.select,
    e.Cast: ExprPrinter.cast,
    e.Ramp: ExprPrinter.ramp,
    e.Broadcast: ExprPrinter.broadcast,
    e.Shuffle: ExprPrinter.shuffle,
    e.Let: ExprPrinter.let,
    e.Call: ExprPrinter.call,
    e.BufferLoad: ExprPrinter.load,
    e.Reduce: ExprPrinter.reduce,
}

PARTS: Mapping[type, Callable[[ExprPrinter, Any], str]] = {
    Buffer: ExprPrinter.buffer,
    BufferRegion: ExprPrinter.region,
    IterVar: ExprPrinter.iter_var,
    Range: lambda p, r: f"T.Range({', '.join(p.bounds(r))})",
    MatchBufferRegion: lambda p, m: (
        f"{p.buffer(m.buffer)} = {p.buffer_type(m.buffer, 'T.match_buffer', (p.region(m.source),))}"
    ),
    e.CommReducer: ExprPrinter.comm_reducer,
}
