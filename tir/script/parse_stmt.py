"""Statements of the dialect: Python syntax to IR, one handler for each construct."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from .. import expr as _e
from .. import op as _op
from ..arith import simplify
from ..buffer import Buffer, BufferRegion, Range, index_expr
from ..dtype import DType
from ..expr import Expr, StringImm, Var, const
from ..node import freeze
from ..stmt import AssertStmt, BufferStore, Evaluate, For, IfThenElse, Stmt, While
from . import frames as f
from .diagnostics import Abort, Source, type_name
from .environment import Environment
from .macro import MOST_EXPANDED
from .operators import plain
from .parse_block import BlockParser
from .parse_expr import ExprParser
from .scope import POISON, Item, Scope, close
from .values import dtype_of, index_tuple, range_of, row_indices, to_expr

_NOT_DIALECT = {
    ast.Try: "`try`", ast.ClassDef: "a class", ast.FunctionDef: "a nested function",
    ast.AsyncFunctionDef: "`async def`",
    ast.AsyncFor: "`async for`", ast.AsyncWith: "`async with`", ast.Raise: "`raise`", ast.Delete: "`del`",
    ast.Global: "`global`", ast.Nonlocal: "`nonlocal`", ast.Import: "`import`", ast.ImportFrom: "`import`",
    ast.Break: "`break`", ast.Continue: "`continue`",
}  # fmt: skip
_INSTEAD = {
    ast.FunctionDef: "define it outside as a Python function of expressions, or as @T.macro",
    ast.Import: "import outside the function",
    ast.ImportFrom: "import outside the function",
    ast.Break: "use a `while` loop with a flag in a buffer, or guard the body with `if`",
    ast.Continue: "guard the rest of the body with `if`",
    ast.Raise: "use `assert condition, message`",
}
_LEGAL = "a prim_func holds loops, with-scopes, if, while, assignments, stores, assert, return and calls"


class StmtParser(BlockParser, ExprParser):
    """Parses statement lists; results go to ``out``, the items of the innermost open scope."""

    def __init__(self, source: Source, env: Environment):
        ExprParser.__init__(self, source, env)
        BlockParser.__init__(self)
        self.out: list[Item] = []
        self.known: set[Var] = set()
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

    def body(self, statements: list[ast.stmt], names: dict[str, Any] | None = None) -> Stmt:
        """Statements in a new scope, as one statement."""
        with self.nested(names) as items:
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
        handler = _STATEMENTS.get(type(node))
        try:
            if handler is None:
                what = _NOT_DIALECT.get(type(node), f"`{type(node).__name__.lower()}`")
                self.fail(node, f"{what} is not part of the dialect", _INSTEAD.get(type(node), _LEGAL))
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

    # ------------------------------------------------------------ names

    def define(self, name: str, value: Any) -> Any:
        """Bind a name in this scope."""
        scope = self.scopes[-1]
        scope.names[name] = value
        scope.lets.discard(name)
        scope.stale.pop(name, None)
        if isinstance(value, Var):
            self.known.add(value)
        return value

    def let(self, name: str, value: Expr, node: ast.AST, var: Var | None = None) -> Var:
        """Bind a name to a value of the program for the rest of the scope."""
        made = Var(name, value.dtype) if var is None else var
        span = self.source.span(node)
        self.emit(lambda body: _e_let(made, value, body, span))
        self.define(name, made)
        self.scopes[-1].lets.add(name)
        return made

    def check_new(self, name: str, node: ast.AST) -> None:
        """Iterators and buffers have unique names in a scope: a second one would silently shadow the first."""
        held = self.scopes[-1].names.get(name)
        if name != "_" and (isinstance(held, Buffer) or (isinstance(held, Var) and held in self.iterators)):
            what = "a buffer" if isinstance(held, Buffer) else "an iterator"
            self.fail(node, f"`{name}` is {what} of this scope already", "give each its own name")

    def check_rebinding(self, name: str, node: ast.stmt) -> None:
        """Assigning a name of an outer scope in an inner one defines a new value there only: an error if the old value
        is used, now or later."""
        for scope in reversed(self.scopes[:-1]):
            if name not in scope.names:
                continue
            counted = name in scope.lets or isinstance(scope.names[name], (int, float))
            if name in self.scopes[-1].names or not counted:
                return
            value = getattr(node, "value", None)
            if isinstance(node, ast.AugAssign) or (value is not None and _reads(value, name)):
                self.fail(
                    node,
                    f"`{name}` is defined outside this scope and cannot be changed from inside it",
                    f'keep a value that changes in a buffer: {name} = T.alloc_buffer((1,), dtype, scope="local")',
                )
            scope.stale[name] = self.source.span(node).line
            return

    def bind(self, target: ast.expr, value: Any, node: ast.stmt) -> None:
        """``target = value`` in all its forms."""
        if isinstance(target, ast.Name):
            self.bind_name(target.id, value, node)
        elif isinstance(target, (ast.Tuple, ast.List)):
            values = self.axis_list(value, len(target.elts), node) if isinstance(value, f.AxisList) else value
            if not isinstance(values, (tuple, list)):
                self.fail(node, f"a {type_name(value)} cannot be unpacked into {len(target.elts)} names")
            if len(values) != len(target.elts):
                self.fail(node, f"{len(values)} values cannot be unpacked into {len(target.elts)} names")
            for item, part in zip(target.elts, values):
                self.bind(item, part, node)
        elif isinstance(target, ast.Subscript):
            self.store_to(target, value)
        elif isinstance(target, ast.Attribute):
            self.fail(target, "an attribute cannot be assigned", "assign to a name or to a buffer element")
        else:
            self.fail(target, "this cannot be assigned to")

    def bind_name(self, name: str, value: Any, node: ast.stmt) -> None:
        held = next((scope.names[name] for scope in reversed(self.scopes) if name in scope.names), None)
        if isinstance(held, Buffer) and isinstance(value, (Expr, BufferRegion, int, float)):
            index = ", ".join(["..."] * held.ndim)
            self.fail(node, f"`{name}` is a buffer; values are stored to its elements", f"write {name}[{index}] = ...")
        if isinstance(value, (f.Axis, f.BufferSpec)):
            self.check_new(name, node)
        if isinstance(value, f.Meta):
            self.define(name, self.env.bound(value.value))
        elif isinstance(value, f.AxisList):
            self.bind(ast.Tuple([ast.Name(name, ast.Store())], ast.Store()), value, node)
        elif isinstance(value, f.Axis):
            self.define(name, self.axis(name, value, node))
        elif isinstance(value, f.BufferSpec):
            self.define(name, self.declare(name, value, node))
        elif isinstance(value, f.EnvThread):
            var = self.define(name, Var(name, value.dtype))
            self.threads[var] = value.thread
        elif isinstance(value, (f.AllocateFrame, f.LaunchFrame, f.LetFrame)):
            self.define(name, self.open_over_rest(value, name, node))
        elif isinstance(value, (f.Frame, f.Directive)):
            self.fail(
                node,
                f"{value.described} has no value to assign",
                "use it as a statement, or open it with `with` or `for`",
            )
        elif isinstance(value, Var) and not value.name and name in self.sizes:
            self.define(name, self.sizes[name])
        elif isinstance(value, Var) and (not value.name or value.dtype.is_handle or value not in self.known):
            self.define(name, value if value.name else value.replace(name=name))
        elif isinstance(value, (Expr, BufferRegion)):
            self.check_rebinding(name, node)
            self.let(name, to_expr(value), node)
        else:
            self.check_rebinding(name, node)
            self.define(name, self.env.bound(value))

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
                f'convert it: T.Cast("{want}", ...)'
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
            self.fail(node, "`return` without a value is not part of the dialect", "guard what follows with `if`")
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

    def _while(self, node: ast.While) -> None:
        if node.orelse:
            self.report(node.orelse[0], "`else` of a loop is not part of the dialect")
        condition = self.condition(self.ev(node.test), node.test)
        self.emit(While(condition, self.body(node.body), span=self.source.span(node)))

    def _for(self, node: ast.For) -> None:
        if node.orelse:
            self.report(node.orelse[0], "`else` of a loop is not part of the dialect")
        try:
            frame = self.loops_of(self.ev(node.iter), node)
            names = self.loop_names(node.target, len(frame.loops))
            opened = [self.loop(name, loop, node) for name, loop in zip(_flat(names), frame.loops)]
        except Abort:
            with self.nested():
                self.poison(node.target)
                self.statements(node.body)
            return
        bound: dict[str, Any] = {}
        variables = iter([_stepped(var, loop) for var, _, _, loop in opened])
        for name in names:
            bound.update(
                {name[0]: tuple(next(variables) for _ in name[1])}
                if isinstance(name, tuple)
                else {name: next(variables)}
            )
        for var, first, extent, _ in opened:
            self.known.add(var)
            self.domains[var] = Range(first, extent)
        self.depth += 1
        result = self.body(node.body, bound)
        self.depth -= 1
        span = self.source.span(node)
        for var, first, extent, loop in reversed(opened):
            result = For(var, first, extent, loop.kind, result, loop.thread, freeze(loop.annotations), span=span)
        self.emit(result)

    def loops_of(self, value: Any, node: ast.For) -> f.LoopFrame:
        if isinstance(value, f.LoopFrame):
            return value
        if isinstance(value, range):
            plain_loop = value.start == 0 and value.step == 1
            made = f.Loop(value.stop, None) if plain_loop else f.Loop(value.start, value.stop, step=value.step)
            return f.LoopFrame([made], "range")
        return self.fail(
            node.iter,
            f"a `for` loop runs over T.serial, T.grid, T.parallel, T.vectorized, T.unroll, T.thread_binding or range, "
            f"not a {type_name(value)}",
            "to repeat code for Python values, call a Python function or T.macro",
        )

    def loop_names(self, target: ast.expr, count: int) -> list[Any]:
        """A name for each loop; a starred or only name for several is a pair (name, names)."""
        items = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
        starred = [i for i, item in enumerate(items) if isinstance(item, ast.Starred)]
        if len(items) == 1 and isinstance(items[0], ast.Name) and count > 1 and not isinstance(target, ast.Tuple):
            return [(items[0].id, [f"{items[0].id}_{k}" for k in range(count)])]
        names: list[Any] = []
        for item in items:
            inner = item.value if isinstance(item, ast.Starred) else item
            if not isinstance(inner, ast.Name):
                self.fail(item, "a loop variable is a name")
            if isinstance(item, ast.Starred):
                names.append((inner.id, [f"{inner.id}_{k}" for k in range(count - len(items) + 1)]))
            else:
                names.append(inner.id)
        if len(starred) > 1 or len(_flat(names)) != count:
            self.fail(
                target,
                f"{count} loop{'s' * (count != 1)} cannot be unpacked into {len(items)} name{'s' * (len(items) != 1)}",
                f"write one name for each of the {count} extents",
            )
        return names

    def loop(self, name: str, loop: f.Loop, node: ast.For) -> tuple[Var, Expr, Expr, f.Loop]:
        try:
            if loop.stop is None:
                extent = index_expr(plain(loop.start))
                return Var(name, extent.dtype), const(0, extent.dtype), extent, loop
            if _step(loop) is not None:
                return self.stepped_loop(name, loop, node)
            bounds = range_of(plain(loop.start), plain(loop.stop))
            return Var(name, bounds.extent.dtype), bounds.min, bounds.extent, loop
        except (TypeError, ValueError) as exc:
            return self.fail(node.iter, str(exc))

    def stepped_loop(self, name: str, loop: f.Loop, node: ast.For) -> tuple[Var, Expr, Expr, f.Loop]:
        """A loop with a step counts its iterations; its name stands for ``start + count * step``."""
        step = _step(loop)
        if step is None or step <= 0:
            self.fail(
                node.iter,
                f"a loop's step is a positive constant, not {loop.step!r}",
                "count upwards, and compute the descending value from the variable",
            )
        start, stop = (0, loop.start) if loop.stop is None else (loop.start, loop.stop)
        bounds = range_of(plain(start), plain(stop))
        extent = simplify((bounds.extent + (step - 1)) // step)
        return Var(name, extent.dtype), const(0, extent.dtype), extent, replace(loop, start=bounds.min)

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


def _e_let(var: Var, value: Expr, body: Stmt, span: Any) -> Stmt:
    from ..stmt import LetStmt

    return LetStmt(var, value, body, span=span)


def _header(node: ast.stmt) -> ast.AST:
    """The node to underline for a whole statement: for a compound one, its first line's expression."""
    if isinstance(node, ast.With):
        return node.items[0].context_expr
    if isinstance(node, ast.For):
        return node.iter
    return node.test if isinstance(node, (ast.If, ast.While)) else node


def _step(loop: f.Loop) -> int | None:
    """A loop's step where it is not 1; 0 for one that is not a constant."""
    step = plain(loop.step)
    number = step if isinstance(step, int) else step.value if isinstance(step, _e.IntImm) else 0
    return None if number == 1 else number


def _stepped(var: Var, loop: f.Loop) -> Expr:
    """What the name of a loop stands for."""
    step = _step(loop)
    return var if step is None else simplify(loop.start + var * step)


def _flat(names: list[Any]) -> list[str]:
    return [n for name in names for n in (name[1] if isinstance(name, tuple) else [name])]


def _reads(node: ast.AST, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load) for n in ast.walk(node))


_STATEMENTS: dict[type, Callable[[Any, Any], None]] = {
    ast.Assign: StmtParser._assign,
    ast.AnnAssign: StmtParser._annotated,
    ast.AugAssign: StmtParser._augmented,
    ast.Expr: StmtParser._expression,
    ast.Assert: StmtParser._assert,
    ast.Pass: StmtParser._pass,
    ast.Return: StmtParser._return,
    ast.If: StmtParser._if,
    ast.While: StmtParser._while,
    ast.For: StmtParser._for,
    ast.With: StmtParser._with,
}
