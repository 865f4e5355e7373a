"""Text of statements, functions and modules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .. import expr as e
from .. import stmt as s
from ..aliases import shares_memory
from ..buffer import Buffer, IterVar, MatchBufferRegion, Range
from ..equal import structural_equal
from ..expr import Expr, IntImm, Var
from ..function import IRModule, PrimFunc
from ..visit import free_vars, walk
from .print_expr import MARK, UNMARK, ExprPrinter, quoted
from .print_names import legal

_LOOPS = {"serial": "T.serial", "parallel": "T.parallel", "vectorized": "T.vectorized", "unrolled": "T.unroll"}


class Printer(ExprPrinter):
    """Prints a program line by line into ``lines``.

    ``syntax_sugar`` false spells loops one by one, every iterator and every parameter buffer in full.
    """

    def __init__(self, syntax_sugar: bool = True, indent: int = 4, marks: Any = ()):
        super().__init__(marks)
        self.sugar = syntax_sugar
        self.step = " " * indent
        self.lines: list[str] = []
        self.depth = 0
        self.loops: dict[Var, Range] = {}
        self.undeclared: dict[Var, list[Buffer]] = {}

    # ------------------------------------------------------------ lines and scopes

    def line(self, text: str, item: Any = None) -> None:
        """A line, after the declarations its text needed; underlined where ``item`` is marked."""
        self.flush()
        if self.marks and item is not None and item in self.marks:
            text = f"{MARK}{text}{UNMARK}"
        self.lines.append(self.step * self.depth + text)

    def flush(self) -> None:
        for text in self.taken():
            self.lines.append(self.step * self.depth + text)

    def body(self, stmt: s.Stmt | Callable[[], None]) -> None:
        """An indented scope with names of its own."""
        self.names.push()
        self.depth += 1
        before = len(self.lines)
        if callable(stmt):
            stmt()
        else:
            self.stmt(stmt)
        if len(self.lines) == before:
            self.line("pass")
        self.depth -= 1
        self.names.pop()

    def stmt(self, x: Any, last: bool = True) -> None:
        """A statement; ``last`` in its scope, it may wrap what follows without indenting it."""
        rule = STATEMENTS.get(type(x))
        if rule is None:
            raise TypeError(f"{type(x).__name__} is not a statement that can be printed")
        rule(self, x, last)

    def wrap(self, x: Any, text: str, last: bool) -> None:
        """A statement that holds over its body: a plain line at the end of a scope, else a ``with``."""
        if last:
            self.line(text, x)
            self.stmt(x.body)
            return
        self.line(f"with {text}:", x)
        self.body(x.body)

    def bind(self, x: Any, made: Var | Buffer, text: str, last: bool, kind: str = "", scoped: str = "") -> None:
        """A statement whose body knows ``made``, which ``text`` makes (as a scope ``scoped``): a plain line at the end of a
        scope, else a ``with``."""
        self.flush()
        if last:
            self.line(f"{self.mark(made, self.names.define(made, made.name))}{kind} = {text}", x)
            self.bound_body(made, x.body)
            return
        self.names.push()
        self.line(f"with {scoped or text} as {self.names.define(made, made.name)}:", x)
        self.body(lambda: self.bound_body(made, x.body))
        self.names.pop()

    def bound_body(self, made: Var | Buffer, body: s.Stmt) -> None:
        """The statements that know ``made``, beginning with the views of the memory it points to."""
        if isinstance(made, Var):
            self.views_of(made)
        self.stmt(body)

    # ------------------------------------------------------------ simple statements

    def store(self, x: s.BufferStore, last: bool) -> None:
        self.line(f"{self.access(x.buffer, x.indices)} = {self.expr(x.value)}", x)

    def evaluate(self, x: s.Evaluate, last: bool) -> None:
        text = self.expr(x.value)
        bare = isinstance(x.value, e.Call) and text.startswith("T.") and x.value.op != "print"
        self.line(text if bare else f"T.evaluate({text})", x)

    def assert_(self, x: s.AssertStmt, last: bool) -> None:
        self.line(f"assert {self.expr(x.condition)}, {self.expr(x.message)}", x)

    def seq(self, x: s.SeqStmt, last: bool) -> None:
        for i, item in enumerate(x.stmts):
            self.stmt(item, last and i == len(x.stmts) - 1)

    # ------------------------------------------------------------ control flow

    def condition(self, x: Expr) -> str:
        return f"T.bool({bool(x.value)})" if isinstance(x, IntImm) else self.expr(x)

    def if_(self, x: s.IfThenElse, last: bool) -> None:
        self.line(f"if {self.condition(x.condition)}:", x)
        self.body(x.then_case)
        other = x.else_case
        while isinstance(other, s.IfThenElse):
            self.names.push()
            text = self.condition(other.condition)
            self.names.pop()
            if self.pending:  # what it declares must stand before it: in an `else:` of its own
                self.taken()
                break
            self.line(f"elif {text}:", other)
            self.body(other.then_case)
            other = other.else_case
        if other is not None:
            self.line("else:")
            self.body(other)

    def while_(self, x: s.While, last: bool) -> None:
        self.line(f"while {self.condition(x.condition)}:", x)
        self.body(x.body)

    def for_(self, x: s.For, last: bool) -> None:
        nest = self.nest(x)
        domains = [loop.domain for loop in nest]
        head = f"T.grid({', '.join(self.expr(loop.extent) for loop in nest)})" if len(nest) > 1 else self.loop_head(x)
        self.flush()
        self.names.push()
        names = [self.names.define(loop.loop_var, loop.loop_var.name) for loop in nest]
        if self.marks and len(nest) > 1:
            names = [self.mark(loop, name) for loop, name in zip(nest, names)]
        for loop, domain in zip(nest, domains):
            self.loops[loop.loop_var] = domain
        self.line(f"for {', '.join(names)} in {head}:", x if len(nest) == 1 else None)
        self.body(nest[-1].body)
        self.names.pop()

    def nest(self, x: s.For) -> list[s.For]:
        """The loops that print as one ``T.grid``: perfectly nested, plain, with extents that do not use each other."""
        nest = [x]
        if not self.sugar or not _plain_loop(x):
            return nest
        inner = x.body
        variables = {x.loop_var}
        while isinstance(inner, s.For) and _plain_loop(inner) and inner.loop_var not in variables:
            if not isinstance(inner.extent, IntImm) and any(n in variables for n in walk(inner.extent)):
                break
            nest.append(inner)
            variables.add(inner.loop_var)
            inner = inner.body
        return nest

    def loop_head(self, x: s.For) -> str:
        plain = e.is_const(x.min, 0) and isinstance(x.min, IntImm) and x.min.dtype is x.extent.dtype
        args = [self.expr(x.extent)] if plain else list(self.bounds(x.domain))
        if x.thread:
            args.append(f"thread={quoted(x.thread)}")
        notes = {k: v for k, v in x.annotations.items() if k != "private"}
        if notes:
            args.append(f"annotations={self.value(notes)}")
        if x.private:
            args.append(f"private=[{', '.join(self.buffer(b) for b in x.private)}]")
        name = _LOOPS.get(x.kind, "T.thread_binding")
        if x.kind == "serial" and not x.annotations and self.sugar:
            name = "range"
        return f"{name}({', '.join(args)})"

    # ------------------------------------------------------------ blocks

    def realize(self, x: s.BlockRealize, last: bool) -> None:
        self.block_text(x.block, x.iter_values, x.predicate, x)

    def bare_block(self, x: s.Block, last: bool) -> None:
        self.block_text(x, None, e.TRUE, x)

    def block_text(self, block: s.Block, values: Any, predicate: Expr, owner: Any) -> None:
        extra = ", no_realize=True" if values is None and not self.fragment else ""
        marked = owner if owner in self.marks else block
        self.line(f"with T.block({quoted(block.name)}{extra}):", marked)
        self.body(lambda: self.block_body(block, values, predicate))

    def block_body(self, block: s.Block, values: Any, predicate: Expr) -> None:
        self.iterators(block, values)
        if not (isinstance(predicate, IntImm) and predicate.value):
            self.line(f"T.where({self.expr(predicate)})")
        self.line(f"T.reads({', '.join(self.region(r) for r in block.reads)})")
        self.line(f"T.writes({', '.join(self.region(r) for r in block.writes)})")
        if block.annotations:
            self.line(f"T.block_attr({self.value(block.annotations)})")
        self.alloc_buffers(block)
        for m in block.match_buffers:
            self.match_region(m)
        if block.init is not None:
            self.line("with T.init():", block.init)
            self.body(block.init)
        self.stmt(block.body)

    def alloc_buffers(self, block: s.Block) -> None:
        for b in block.alloc_buffers:
            self.names.of.pop(b, None)
            text = self.buffer_type(b, "T.alloc_buffer")
            self.define_buffer(b, text)

    def define_buffer(self, b: Buffer, text: str) -> None:
        name = self.names.define(b, b.name)
        self.known_data[b.data] = b
        self.line(f"{self.mark(b, name)} = {text}")
        self.views_of(b.data)

    def match_region(self, m: MatchBufferRegion) -> None:
        source = self.region(m.source)
        text = self.buffer_type(m.buffer, "T.match_buffer", (source,))
        if m.buffer.scope == "global" and m.source.buffer.scope != "global" and "scope=" not in text:
            text = f'{text[:-1]}, scope="global")'
        self.define_buffer(m.buffer, text)

    def iterators(self, block: s.Block, values: Any) -> None:
        items = list(zip(block.iter_vars, values if values is not None else [None] * len(block.iter_vars)))
        i = 0
        while i < len(items):
            run = i
            while run < len(items) and self.sugar and self.remappable(*items[run]):
                run += 1
            if run - i > 1:
                kinds = "".join("S" if iv.iter_type == "spatial" else "R" for iv, _ in items[i:run])
                bindings = ", ".join(self.expr(value) for _, value in items[i:run])
                self.flush()
                names = [self.mark(iv, self.define_iterator(iv)) for iv, _ in items[i:run]]
                self.line(f'{", ".join(names)} = T.axis.remap("{kinds}", [{bindings}])')
                i = run
            else:
                self.iterator(*items[i])
                i += 1

    def remappable(self, iv: IterVar, value: Any) -> bool:
        """Whether ``T.axis.remap`` gives this iterator: the whole domain of a loop, as it is."""
        domain = self.loops.get(value) if isinstance(value, Var) else None
        if domain is None or iv.iter_type not in ("spatial", "reduce") or iv.dom is None:
            return False
        return iv.var.dtype is value.dtype and structural_equal(iv.dom, domain)

    def define_iterator(self, iv: IterVar) -> str:
        if iv.dom is not None:
            self.loops[iv.var] = iv.dom
        return self.names.define(iv.var, iv.var.name)

    def iterator(self, iv: IterVar, value: Any) -> None:
        dom = iv.dom
        assert dom is not None, f"block iterator {iv.var.name} has no domain"
        low, end = self.bounds(dom)
        whole = e.is_const(dom.min, 0) and dom.min.dtype is dom.extent.dtype
        domain = self.expr(dom.extent) if whole else f"({low}, {end})"
        binding = "..." if value is None else self.expr(value)
        self.flush()
        name = self.mark(iv, self.define_iterator(iv))
        self.line(f"{name} = T.axis.{iv.iter_type}({domain}, {binding})")

    # ------------------------------------------------------------ scoped statements

    def let(self, x: s.LetStmt, last: bool) -> None:
        value = self.expr(x.value)
        kind = self.type_of(x.var)
        kind = kind if x.var.dtype.is_handle else kind[:-2]
        # A constant would take the type from the annotation; as an argument it says its own.
        self.bind(x, x.var, value, last, f": {kind}", f"T.LetStmt({value}, {kind})")

    def allocate(self, x: s.Allocate, last: bool) -> None:
        v = x.buffer_var
        args = [f"[{self.list(x.extents)}]", quoted(x.dtype), quoted(v.scope or "global")]
        if not (isinstance(x.condition, IntImm) and x.condition.value):
            args.append(f"condition={self.expr(x.condition)}")
        if x.annotations:
            args.append(f"annotations={self.value(x.annotations)}")
        self.bind(x, v, f"T.allocate({', '.join(args)})", last)

    def allocate_const(self, x: s.AllocateConst, last: bool) -> None:
        values = ", ".join(self.value(v) for v in x.data.ravel().tolist())
        args = [f"[{values}]", quoted(x.dtype), f"[{self.list(x.extents)}]"]
        if x.annotations:
            args.append(f"annotations={self.value(x.annotations)}")
        self.bind(x, x.buffer_var, f"T.allocate_const({', '.join(args)})", last)

    def decl_buffer(self, x: s.DeclBuffer, last: bool) -> None:
        b = x.buffer
        if not self.has_pointer(b):
            self.declare(b.data)
        self.bind(x, b, self.buffer_type(b, "T.decl_buffer"), last)

    def attr(self, x: s.AttrStmt, last: bool) -> None:
        node, value = x.node, x.value
        if x.attr_key == "thread_extent" and isinstance(node, IterVar) and node.iter_type == "thread":
            domain = node.dom
            if domain is not None and e.is_const(domain.min, 0) and structural_equal(domain.extent, value):
                if domain.min.dtype is node.var.dtype is value.dtype:
                    self.launch(x, last)
                    return
        self.wrap(x, f"T.attr({self.value(node)}, {quoted(x.attr_key)}, {self.expr(value)})", last)

    def launch(self, x: s.AttrStmt, last: bool) -> None:
        iv = x.node
        extent = self.expr(x.value)
        known = self.names.of.get(iv.var)
        if known is not None:
            # The same thread index again: it was declared with T.env_thread where it was first needed.
            self.wrap(x, f"T.launch_thread({known}, {extent})", last)
            return
        self.loops[iv.var] = iv.dom
        self.bind(x, iv.var, f"T.launch_thread({quoted(iv.thread_tag)}, {extent})", last)

    def buffer_realize(self, x: s.BufferRealize, last: bool) -> None:
        from ..buffer import BufferRegion

        self.names.push()
        region = self.region(BufferRegion(x.buffer, tuple(x.bounds)))
        condition = "" if isinstance(x.condition, IntImm) and x.condition.value else f", {self.expr(x.condition)}"
        self.wrap(x, f"T.realize({region}, {quoted(x.buffer.scope)}{condition})", last)
        self.names.pop()

    # ------------------------------------------------------------ functions

    def function(self, f: PrimFunc, name: str | None = None) -> None:
        symbol = f.attrs.get("global_symbol")
        shown = legal(name or (symbol if isinstance(symbol, str) else "main"), "f")
        self.names.push()
        private = "(private=True)" if "global_symbol" not in f.attrs else ""
        self.line(f"@T.prim_func{private}")
        params, matched = self.params(f)
        self.taken()
        result = "" if f.ret_type == "void" else f" -> T.{f.ret_type}"
        self.line(f"def {shown}({', '.join(params)}){result}:", f)
        self.body(lambda: self.function_body(f, matched, shown))
        self.names.pop()

    def params(self, f: PrimFunc) -> tuple[list[str], list[tuple[str, Buffer]]]:
        """Parameter declarations, and the parameters whose buffers T.match_buffer describes."""
        texts, matched = [], []
        pointers: set[Var] = set()
        for p in f.params:
            b = f.buffer_map.get(p)
            if b is not None and self.sugar and _plain_buffer(b, p) and not shares_memory(b, pointers):
                name = self.names.define(b, b.name)
                self.known_data[b.data] = b
                pointers.add(b.data)
                size = f"{self.shape(b.shape)}, {quoted(b.dtype)}"
                texts.append(f"{self.mark(b, name)}: T.Buffer({size})")
                continue
            name = self.names.define(p, p.name)
            kind = "T.handle" if p.dtype == "handle" and p.pointer_dtype is None else self.type_of(p)
            texts.append(f"{name}: {kind.removesuffix('()')}")
            if b is not None:
                matched.append((name, b))
        return texts, matched

    def function_body(self, f: PrimFunc, matched: list[tuple[str, Buffer]], shown: str) -> None:
        attrs = {k: v for k, v in f.attrs.items() if k != "global_symbol" or v != shown}
        if attrs:
            self.line(f"T.func_attr({self.value(attrs)})")
        for name, b in matched:
            text = self.buffer_type(b, "T.match_buffer", (name,))
            self.define_buffer(b, text)
        body = f.body
        self.free(f)
        root = f.root
        if isinstance(body, s.BlockRealize) and root is not None and self.implicit_root(body, root):
            self.line('# with T.block("root"):', body if body in self.marks else root)
            self.alloc_buffers(root)
            self.stmt(root.body)
            return
        self.stmt(body)

    def implicit_root(self, realize: s.BlockRealize, root: s.Block) -> bool:
        """Whether the parser makes this very root block by itself."""
        if root.name != "root" or root.iter_vars or root.reads or root.writes or root.init or root.match_buffers:
            return False
        if (
            root.annotations
            or realize.iter_values
            or not (isinstance(realize.predicate, IntImm) and realize.predicate.value)
        ):
            return False
        inner = root.body
        if not root.alloc_buffers and isinstance(inner, s.BlockRealize) and not inner.block.iter_vars:
            return False
        blocks = [n for n in walk(inner) if isinstance(n, s.Block)]
        return (bool(blocks) or bool(root.alloc_buffers)) and all(b.name != "root" for b in blocks)

    def free(self, f: PrimFunc) -> None:
        """Declare what nothing in the function declares: free variables, views without a DeclBuffer, shared threads."""
        threads: dict[Var, int] = {}
        tags: dict[Var, str] = {}
        declared: set[Buffer] = set(f.buffer_map.values())
        used: dict[Buffer, None] = {}
        bound: set[Var] = set(f.params)
        for n in walk(f.body):
            if isinstance(n, s.AttrStmt) and n.attr_key == "thread_extent" and isinstance(n.node, IterVar):
                threads[n.node.var] = threads.get(n.node.var, 0) + 1
                tags[n.node.var] = n.node.thread_tag
            elif isinstance(n, s.Block):
                declared.update(n.alloc_buffers)
                declared.update(m.buffer for m in n.match_buffers)
                views = [m.buffer for m in n.match_buffers]
                bound.update(v for b in views for v in (*b.strides, b.elem_offset) if isinstance(v, Var))
            elif isinstance(n, s.DeclBuffer):
                declared.add(n.buffer)
            elif isinstance(n, e.CommReducer):
                bound.update(n.lhs, n.rhs)
            elif isinstance(n, Buffer):
                used.setdefault(n)
        for v, count in threads.items():
            if count > 1:
                name = self.names.define(v, v.name)
                dtype = "" if v.dtype == "int32" else f", {quoted(v.dtype)}"
                self.line(f"{name} = T.env_thread({quoted(tags[v])}{dtype})")
        for b in used:
            if b not in declared:
                self.undeclared.setdefault(b.data, []).append(b)
        undeclared_data = {b.data for b in used if b not in declared}
        bound_elsewhere = undeclared_data and {
            n.buffer_var if isinstance(n, (s.Allocate, s.AllocateConst)) else n.var
            for n in walk(f.body)
            if isinstance(n, (s.Allocate, s.AllocateConst, s.LetStmt))
        }
        for v in free_vars(f):
            if v not in bound and v not in self.names.of and v not in self.known_data and v not in undeclared_data:
                self.declare(v)
        self.flush()
        for data in list(self.undeclared):
            owned = data in self.names.of or data in self.known_data
            if owned or data not in (bound_elsewhere or ()):
                self.views_of(data)

    def views_of(self, data: Var) -> None:
        """Declare the buffers that view ``data`` without a DeclBuffer, now that it is there."""
        for b in self.undeclared.pop(data, ()):
            if b not in self.names.of:
                self.declare_buffer(b)
                self.flush()

    def module(self, m: IRModule, name: str | None = None) -> None:
        self.line("@I.ir_module")
        self.line(f"class {legal(name or 'Module')}:")

        def functions() -> None:
            if m.attrs:
                self.line(f"I.module_attrs({self.value(m.attrs)})")
            for i, (key, func) in enumerate(m.functions.items()):
                if i or m.attrs:
                    self.lines.append("")
                self.function(func, key)

        self.body(functions)


def _plain_loop(x: s.For) -> bool:
    zero = isinstance(x.min, IntImm) and x.min.value == 0 and x.min.dtype is x.extent.dtype
    return x.kind == "serial" and not x.annotations and zero and x.loop_var.dtype is x.extent.dtype


def _plain_buffer(b: Buffer, param: Var) -> bool:
    """Whether ``name: T.Buffer(shape, dtype)`` says all there is to say."""
    data = b.data
    return (
        all(isinstance(size, IntImm) for size in b.shape)
        and not b.strides
        and b.elem_offset is None
        and (b.scope, b.data_alignment, b.offset_factor, b.axis_separators, b.buffer_type) == ("global", 0, 0, (), "")
        and (data.dtype, data.pointer_dtype, data.scope) == ("handle", b.dtype, "global")
        and (param.dtype, param.pointer_dtype) == ("handle", None)
    )


STATEMENTS: Mapping[type, Callable[[Printer, Any, bool], None]] = {
    s.BufferStore: Printer.store, s.For: Printer.for_, s.While: Printer.while_, s.IfThenElse: Printer.if_,
    s.SeqStmt: Printer.seq, s.LetStmt: Printer.let, s.AssertStmt: Printer.assert_, s.Evaluate: Printer.evaluate,
    s.AttrStmt: Printer.attr, s.Allocate: Printer.allocate, s.AllocateConst: Printer.allocate_const,
    s.DeclBuffer: Printer.decl_buffer, s.BufferRealize: Printer.buffer_realize, s.Block: Printer.bare_block,
    s.BlockRealize: Printer.realize,
}  # fmt: skip
