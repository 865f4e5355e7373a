"""Statements of the dialect: Python syntax to IR, one handler for each construct."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from .. import expr as _e
from .. import op as _op
from ..buffer import Buffer, BufferRegion
from ..dtype import DType
from ..expr import Expr, StringImm, Var, const
from ..stmt import AssertStmt, BufferStore, Evaluate, IfThenElse, Stmt
from . import frames as f
from .diagnostics import Abort, Source, type_name
from .environment import Environment
from .jumps import construct
from .macro import MOST_EXPANDED
from .operators import plain
from .parse_block import BlockParser
from .parse_expr import ExprParser
from .parse_loops import LoopParser
from .parse_names import Definition, NameParser
from .scope import POISON, Item, Scope, close
from .values import dtype_of, index_tuple, row_indices, to_expr

_NOT_DIALECT = {
    ast.Try: "`try`", ast.ClassDef: "a class", ast.FunctionDef: "a nested function",
    ast.AsyncFunctionDef: "`async def`",
    ast.AsyncFor: "`async for`", ast.AsyncWith: "`async with`", ast.Raise: "`raise`", ast.Delete: "`del`",
    ast.Global: "`global`", ast.Nonlocal: "`nonlocal`", ast.Import: "`import`", ast.ImportFrom: "`import`",
    ast.Break: "`break` outside of a loop", ast.Continue: "`continue` outside of a loop",
}  # fmt: skip
_INSTEAD = {
    ast.FunctionDef: "define it outside as a Python function of expressions, or as @T.macro",
    ast.Import: "import outside the function",
    ast.ImportFrom: "import outside the function",
    ast.Raise: "use `assert condition, message`",
}
_LEGAL = "a prim_func holds loops, with-scopes, if, while, assignments, stores, assert, return and calls"


class StmtParser(BlockParser, LoopParser, NameParser, ExprParser):
    """Parses statement lists; results go to ``out``, the items of the innermost open scope."""

    def __init__(self, source: Source, env: Environment, changing: dict[Definition, DType | None] | None = None):
        ExprParser.__init__(self, source, env)
        BlockParser.__init__(self)
        NameParser.__init__(self, changing)
        self.out: list[Item] = []
        self.domains: dict[Var, Any] = {}
        self.func_attrs: dict[str, Any] = {}
        self.params: dict[Var, Any] = {}
        self.sizes: dict[str, Var] = {}  # the sizes that the signature names in strings
        self.size_dtypes: dict[str, str] = {}
        self.buffer_map: dict[Var, Buffer] = {}
        self.returned: list[Any] | None = None
        self.expanded = 0

    # ------------------------------------------------------------ scopes

    def emit(self, item: Item) -> None:
        self.out.append(item)

    def body(self, statements: list[ast.stmt], names: dict[str, Any] | None = None, read: Iterable[str] = ()) -> Stmt:
        """Statements in a new scope, as one statement; names ``read`` are used there before."""
        with self.nested(names) as items:
            self.scopes[-1].read.update(read)
            self.statements(statements)
        return close(items)

    @contextmanager
    def nested(self, names: dict[str, Any] | None = None) -> Iterator[list[Item]]:
        outer, self.out = self.out, []
        self.scopes.append(Scope(names))
        try:
            yield self.out
        finally:
            self.scopes.pop()
            self.out = outer

    def statements(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            if self.diagnostics and self.env.first_error_only:
                return
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        """One statement; an error in it is recorded and the names it defines become placeholders."""
        if self.expansions and not self.expand_one(node):
            return
        kind = construct(node)
        handler = _STATEMENTS.get(kind)
        try:
            if handler is None and str(self.source.span(node)) in {str(fault.span) for fault in self.diagnostics}:
                return  # a jump whose place is wrong: reported with the loop
            if handler is None:
                what = _NOT_DIALECT.get(kind, f"`{kind.__name__.lower()}`")
                self.fail(node, f"{what} is not part of the dialect", _INSTEAD.get(kind, _LEGAL))
            handler(self, node)  # type: ignore[misc]
        except Abort:
            self.poison(node)
        except (TypeError, ValueError, ArithmeticError) as exc:  # what the IR's constructors refuse
            try:
                self.fault(_header(node), exc)
            except Abort:
                self.poison(node)
        except RecursionError:
            self.report(node, "nested too deeply to be parsed", "split it into parts, or use a loop")
            self.poison(node)

    def expand_one(self, node: ast.stmt) -> bool:
        """Count an expanded statement of a macro; false once there are too many, which is reported once."""
        self.expanded += 1
        if self.expanded == MOST_EXPANDED:
            self.report(node, f"macros expand to more than {MOST_EXPANDED} statements", "use a loop")
        return self.expanded < MOST_EXPANDED

    def poison(self, node: ast.AST) -> None:
        for child in ast.walk(node):
            if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
                self.scopes[-1].names[child.id] = POISON

    # ------------------------------------------------------------ simple statements

    def _assign(self, node: ast.Assign) -> None:
        value = self.ev(node.value)
        if len(node.targets) != 1:
            self.fail(node, "one target at a time is assigned in the dialect")
        self.bind(node.targets[0], value, node)

    def _annotated(self, node: ast.AnnAssign) -> None:
        kind = self.ev(node.annotation)
        if not isinstance(node.target, ast.Name):
            self.fail(node.target, "only a name can be annotated")
        name = node.target.id
        if isinstance(kind, Var):
            declared = kind.replace(name=name)
        elif isinstance(kind, f.BufferSpec):
            declared = None
        elif isinstance(kind, f.TypeOfValue) and node.value is not None:
            value = to_expr(plain(self.ev(node.value)))
            self.let(name, value, node, Var(name, value.dtype))
            return
        else:
            try:
                declared = Var(name, dtype_of(kind))  # type: ignore[arg-type]
            except (TypeError, ValueError):
                self.fail(
                    node.annotation,
                    f"`{ast.unparse(node.annotation)}` is not a type of the dialect",
                    "write a type such as T.int32, T.float32x4 or T.handle",
                )
        if node.value is None:
            if declared is None:
                self.define(name, self.declare(name, kind, node))  # pyright: ignore[reportArgumentType]
            else:
                self.define(name, declared)
            return
        value = self.ev(node.value)
        if declared is None or isinstance(value, (f.Frame, Buffer)):
            self.bind_name(name, value, node)
            return
        value = plain(value)
        if not isinstance(value, Expr):
            value = const(value, declared.dtype) if isinstance(value, (int, float)) else to_expr(value)
        if value.dtype != declared.dtype:
            self.fail(
                node.value,
                f"`{name}` is declared {declared.dtype}, but its value is {value.dtype}",
                f'convert it: T.Cast("{declared.dtype}", ...)',
            )
        self.let(name, value, node, declared)

    def _augmented(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            old = self.name(ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target))
            if isinstance(old, Buffer):
                self.fail(node, f"buffer `{old.name}` is not a value; index it, as in {old.name}[0]")
            self.bind(node.target, self._apply_at(node, old, self.ev(node.value)), node)
            return
        if not isinstance(node.target, ast.Subscript):
            self.fail(node.target, "only a name or a buffer element can be updated")
        buffer, index = self.place(node.target)
        old = to_expr(index_tuple(buffer, index))
        self.store(buffer, index, self._apply_at(node, old, self.ev(node.value)), node)

    def _apply_at(self, node: ast.AugAssign, old: Any, value: Any) -> Any:
        try:
            return self.env.operate(node.op, old, value)
        except (Abort, RecursionError):
            raise
        except Exception as exc:
            self.fault(node, exc)

    def place(self, target: ast.Subscript) -> tuple[Buffer, tuple[Any, ...]]:
        """The buffer and the indices of a store's left side, checked."""
        base = self.ev(target.value)
        index = self.ev(target.slice)
        buffer = self.as_buffer(base)
        if buffer is None:
            self.fail(
                target,
                f"`{ast.unparse(target.value)}` ({type_name(base)}) is no buffer; only buffer elements can be stored to",
            )
        index = index if isinstance(index, tuple) else (index,)
        try:
            index_tuple(buffer, index)
        except (TypeError, ValueError) as exc:
            self.fail(target, str(exc))
        return buffer, index

    def store_to(self, target: ast.Subscript, value: Any) -> None:
        buffer, index = self.place(target)
        self.store(buffer, index, value, target)

    def store(self, buffer: Buffer, index: tuple[Any, ...], value: Any, node: ast.AST) -> None:
        """Store a value at indices: constants take the buffer's type if it represents them exactly, others where an
        operator would convert them to it."""
        try:
            where = index_tuple(buffer, index)
            indices = row_indices(where) if isinstance(where, BufferRegion) else where.indices
            want = _e.BufferLoad(buffer, indices).dtype
            value = plain(value)
            made = const(value, want) if isinstance(value, (int, float)) else to_expr(value)
        except (TypeError, ValueError) as exc:
            self.fail(node, str(exc))
        made = _literal_as(made, want.element)
        if made.dtype.lanes == 1 and _e.converts(made, want.element):
            made = _e.cast(want.element, made)
        if made.dtype != want and made.dtype == want.element:
            made = _e.Broadcast(made, want.lanes)
        if made.dtype != want and _e.converts(made, want):
            made = _e.cast(want, made)
        if made.dtype != want:
            self.fail(
                node,
                f"buffer `{buffer.name}` holds {want}, but the value stored is {made.dtype}",
                f'a call says its type by dtype="{want}"'
                if made.dtype == "void"
                else f'convert it: T.Cast("{want}", ...)'
                if made.dtype.lanes == want.lanes
                else f"the place has {want.lanes} lanes, the value {made.dtype.lanes}",
            )
        self.emit(BufferStore(buffer, made, indices, span=self.source.span(node)))

    def _expression(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, (str, type(...))):
            return  # a docstring, or `...`
        self.perform(self.ev(node.value), node)

    def perform(self, value: Any, node: ast.stmt) -> None:
        """A bare expression as a statement."""
        span = self.source.span(node)
        if value is None:
            return
        if isinstance(value, f.Directive):
            self.directive(value, node)
        elif isinstance(value, f.Evaluated):
            self.emit(Evaluate(to_expr(value.value), span=span))
        elif isinstance(value, f.StoreFrame):
            self.store(value.buffer, value.indices, value.value, node)
        elif isinstance(value, f.AssertFrame):
            self.emit_assert(value.condition, value.message, node)
        elif isinstance(value, (f.AttrFrame, f.LaunchFrame, f.AllocateFrame, f.RealizeFrame, f.LetFrame)):
            self.open_over_rest(value, "", node)
        elif isinstance(value, f.BufferSpec):
            self.declare(getattr(value, "name", "") or "buffer", value, node)
        elif isinstance(value, Expr):
            self.emit(Evaluate(value, span=span))
        elif isinstance(value, f.Axis):
            self.axis("v", value, node)
        elif isinstance(value, f.Frame):
            self.fail(node, f"{value.described} needs `{'for' if isinstance(value, f.LoopFrame) else 'with'}`")
        else:
            self.fail(node, f"a {type_name(value)} is not a statement", _LEGAL)

    def emit_assert(self, condition: Any, message: Any, node: ast.AST) -> None:
        if isinstance(message, tuple) and len(message) == 2 and isinstance(message[1], (list, tuple)):
            message = "".join(map(str, message[1]))  # TVM's: the kind of error, and the parts of what it says
        text = StringImm("assertion failed") if message is None else to_expr(message)
        self.emit(AssertStmt(self.condition(condition, node), text, span=self.source.span(node)))

    def _assert(self, node: ast.Assert) -> None:
        condition = self.ev(node.test)
        self.emit_assert(condition, None if node.msg is None else self.ev(node.msg), node)

    def _pass(self, node: ast.Pass) -> None:
        """Nothing."""

    def _return(self, node: ast.Return) -> None:
        if self.returned is not None:
            self.returned.append(None if node.value is None else self.ev(node.value))
            return
        if node.value is None:
            return  # the last statement
        value = self.ev(node.value)
        if value is None:
            return
        e = to_expr(value)
        result = e if isinstance(e, _e.Call) and e.op == "ret" else _op.call("ret", e, dtype=e.dtype)
        self.emit(Evaluate(result, span=self.source.span(node)))

    # ------------------------------------------------------------ control flow

    def condition(self, value: Any, node: ast.AST) -> Expr:
        try:
            return _e.as_bool(to_expr(plain(value)))
        except TypeError as exc:
            return self.fail(node, str(exc))

    def _if(self, node: ast.If) -> None:
        try:
            test = plain(self.ev(node.test))
        except Abort:
            self.body(node.body)
            self.body(node.orelse)
            return
        if not isinstance(test, Expr):  # known in Python: only the branch taken is in the program
            self.statements(node.body if test else node.orelse)
            return
        condition = self.condition(test, node.test)
        then = self.body(node.body)
        other = self.body(node.orelse) if node.orelse else None
        self.emit(IfThenElse(condition, then, other, span=self.source.span(node)))

    def _with(self, node: ast.With) -> None:
        self.with_items(node.items, node)

    def with_items(self, items: list[ast.withitem], node: ast.With) -> None:
        if not items:
            self.statements(node.body)
            return
        item, rest = items[0], items[1:]
        go = lambda: self.with_items(rest, node)  # noqa: E731
        try:
            frame = self.ev(item.context_expr)
            opener = self.opener(frame)
            if opener is None:
                described = frame.described if isinstance(frame, f.Frame) else f"a {type_name(frame)}"
                self.fail(
                    item.context_expr,
                    f"`with` cannot open {described}",
                    "it opens T.block, T.init, T.LetStmt, T.attr, T.launch_thread, T.allocate, T.decl_buffer, "
                    "T.realize or T.Assert",
                )
            opener(frame, item, node, go)
        except Abort:
            with self.nested(), self.unknown_block():
                if item.optional_vars is not None:
                    self.poison(item.optional_vars)
                go()


def _literal_as(e: Expr, dtype: DType) -> Expr:
    """A constant, or a choice of constants, in ``dtype`` where both types represent them exactly; any other expression as
    it is."""
    if isinstance(e, (_e.IntImm, _e.FloatImm)) and e.dtype.represents(e.value) and dtype.represents(e.value):
        return const(e.value, dtype)
    if isinstance(e, _e.Select) or (isinstance(e, _e.Call) and e.op == "if_then_else"):
        condition, *sides = e.children()
        yes, no = (_literal_as(side, dtype) for side in sides)
        if yes.dtype == no.dtype == dtype:
            return (
                e.replace(args=(condition, yes, no), dtype=dtype)
                if isinstance(e, _e.Call)
                else type(e)(condition, yes, no)
            )
    return e


def _header(node: ast.stmt) -> ast.AST:
    """The node to underline for a whole statement: for a compound one, its first line's expression."""
    if isinstance(node, ast.With):
        return node.items[0].context_expr
    if isinstance(node, ast.For):
        return node.iter
    return node.test if isinstance(node, (ast.If, ast.While)) else node


_STATEMENTS: dict[type, Callable[[Any, Any], None]] = {
    ast.Assign: StmtParser._assign, ast.AnnAssign: StmtParser._annotated, ast.AugAssign: StmtParser._augmented,
    ast.Expr: StmtParser._expression, ast.Assert: StmtParser._assert, ast.Pass: StmtParser._pass,
    ast.Return: StmtParser._return, ast.If: StmtParser._if, ast.While: StmtParser._while, ast.For: StmtParser._for,
    ast.With: StmtParser._with,
}  # fmt: skip
