"""Blocks, buffers and the scopes that wrap what follows."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from ..buffer import Buffer, BufferRegion, IterVar, MatchBufferRegion, Range, index_expr
from ..dtype import HANDLE, DType
from ..equal import structural_equal
from ..expr import TRUE, BufferLoad, Call, Expr, IntImm, StringImm, Var, as_bool, as_expr, cast, const
from ..function import require_name
from ..names import claimed
from ..node import freeze
from ..stmt import Allocate, AllocateConst, AttrStmt, Block, BlockRealize, BufferRealize, DeclBuffer, LetStmt, Stmt
from . import frames as f
from .diagnostics import type_name
from .scope import Item, close
from .values import as_region, attributes, dtype_of, make_buffer, to_expr


@dataclass
class OpenBlock:
    """A block while its body is parsed."""

    name: str
    iter_vars: list[IterVar] = field(default_factory=list)
    iter_values: list[Expr] = field(default_factory=list)
    reads: tuple[BufferRegion, ...] | None = None
    writes: tuple[BufferRegion, ...] | None = None
    predicate: Expr = TRUE
    init: Stmt | None = None
    alloc_buffers: list[Buffer] = field(default_factory=list)
    match_buffers: list[MatchBufferRegion] = field(default_factory=list)
    annotations: dict[str, Any] = field(default_factory=dict)


class BlockParser:
    """The part of the statement parser that knows blocks, buffers and wrapping scopes."""

    # what the statement parser provides
    source: Any
    fail: Callable[..., NoReturn]
    report: Callable[..., None]
    emit: Callable[[Item], None]
    nested: Callable[..., Any]
    define: Callable[[str, Any], Any]
    declare_pointer: Callable[..., None]
    emit_assert: Callable[..., None]
    domains: dict[Var, Range]
    known: set[Var]
    params: dict[Var, Any]
    buffer_map: dict[Var, Buffer]
    func_attrs: dict[str, Any]

    def __init__(self) -> None:
        self.blocks: list[OpenBlock] = []
        self.block_names: set[str] = set()
        self.root_buffers: list[Buffer] = []
        self.has_block = False
        self.depth = 0
        self.unregioned: set[Block] = set()
        self.threads: dict[Var, str] = {}
        self.iterators: set[Var] = set()

    # ------------------------------------------------------------ blocks

    def unique_name(self, name: str) -> str:
        """A block name not yet used in the function."""
        return claimed(name, self.block_names)

    def current(self, what: str, node: ast.AST) -> OpenBlock:
        if not self.blocks:
            self.fail(node, f"{what} belongs directly inside a block", 'open one: with T.block("name"):')
        return self.blocks[-1]

    @contextmanager
    def unknown_block(self) -> Iterator[None]:
        """A block for the statements under an invalid `with`, so that they are still checked."""
        self.blocks.append(OpenBlock("?"))
        try:
            yield
        finally:
            self.blocks.pop()

    def open_block(self, frame: f.BlockFrame, item: ast.withitem, node: ast.With, go: Callable[[], None]) -> None:
        self.has_block = True
        building = OpenBlock(self.unique_name(frame.name or "block"))
        outermost = not self.blocks and self.depth == 0
        if item.optional_vars is not None:
            self.report(item.optional_vars, "T.block has no value to bind", "iterators are made by T.axis inside it")
        self.blocks.append(building)
        try:
            with self.nested() as items:
                go()
        finally:
            self.blocks.pop()
        span = self.source.span(node)
        block = Block(
            tuple(building.iter_vars),
            building.reads or (),
            building.writes or (),
            building.name,
            close(items),
            building.init,
            tuple(building.alloc_buffers),
            tuple(building.match_buffers),
            freeze(building.annotations),
            span=span,
        )
        if (building.reads is None or building.writes is None) and not (outermost and not building.iter_vars):
            block = self.infer_regions(block, building)
        elif building.reads is None and building.writes is None:
            self.unregioned.add(block)
        if frame.no_realize:
            if building.iter_vars and building.predicate is not TRUE:
                self.fail(node, "T.where is not allowed in a block with no_realize=True")
            self.emit(block)
        else:
            self.emit(BlockRealize(tuple(building.iter_values), building.predicate, block, span=span))

    def infer_regions(self, block: Block, building: OpenBlock | None) -> Block:
        """The block with its undeclared regions inferred from its body."""
        from ..analysis.block_regions import block_access_region

        reads, writes = block_access_region(block)
        return block.replace(
            reads=tuple(reads) if building is None or building.reads is None else block.reads,
            writes=tuple(writes) if building is None or building.writes is None else block.writes,
        )

    def open_init(self, frame: f.InitFrame, item: ast.withitem, node: ast.With, go: Callable[[], None]) -> None:
        block = self.current("T.init", node)
        if block.init is not None:
            self.fail(node, f"block `{block.name}` has an init already")
        with self.nested() as items:
            go()
        block.init = close(items)

    def axis(self, name: str, axis: f.Axis, node: ast.AST) -> Var:
        """Declare an iterator of the block."""
        block = self.current("T.axis", node)
        dom = axis.dom
        assert dom is not None
        binding = axis.binding
        dtype = dom.extent.dtype
        if binding.dtype != dtype and isinstance(dom.extent, IntImm) and dtype.bits < binding.dtype.bits:
            dtype = binding.dtype
            dom = Range(cast(dtype, dom.min), cast(dtype, dom.extent))
        elif dom.min.dtype != dtype and isinstance(dom.min, IntImm):
            dom = Range(cast(dtype, dom.min), dom.extent)
        var = Var(name, dtype)
        self.known.add(var)
        self.iterators.add(var)
        self.domains[var] = dom
        block.iter_vars.append(IterVar(dom, var, axis.kind))
        block.iter_values.append(binding)
        return var

    def axis_list(self, frame: f.AxisList, count: int, node: ast.AST) -> list[f.Axis]:
        """The iterators that ``T.axis.remap`` declares."""
        kinds = {"S": "spatial", "R": "reduce"}
        bindings = [as_expr(b) for b in frame.bindings]
        if len(frame.kinds) != len(bindings) or count != len(bindings):
            self.fail(
                node,
                f'T.axis.remap has {len(frame.kinds)} kinds ("{frame.kinds}") and {len(bindings)} loops '
                f"for {count} name{'s' * (count != 1)}; the three must agree",
            )
        axes = []
        for letter, binding in zip(frame.kinds, bindings):
            if letter not in kinds:
                self.fail(node, f"T.axis.remap knows the kinds S and R, not `{letter}`")
            dom = self.domains.get(binding) if isinstance(binding, Var) else None
            if dom is None:
                self.fail(
                    node,
                    f"T.axis.remap takes loop variables, not `{binding!r}`",
                    "give the domain yourself: T.axis.spatial(extent, value)",
                )
            axes.append(f.Axis(kinds[letter], dom, binding))
        return axes

    def directive(self, directive: f.Directive, node: ast.AST) -> None:
        """A statement about the enclosing block or function."""
        key, value = directive.key, directive.value
        if key in ("func_attr", "block_attr"):
            value = attributes(value, directive.described)
        if key == "func_attr":
            if self.blocks or self.depth:
                self.fail(node, "T.func_attr belongs at the top of the function")
            self.merge(self.func_attrs, value, "T.func_attr", node)
            try:
                require_name(self.func_attrs.get("global_symbol", "main"), "the global_symbol of a function")
            except (TypeError, ValueError) as fault:
                self.fail(node, str(fault))
            return
        block = self.current(directive.described, node)
        if key == "where":
            if block.predicate is not TRUE:
                self.fail(
                    node, f"block `{block.name}` has a T.where already", "join the conditions with T.And or `and`"
                )
            block.predicate = as_bool(to_expr(value))
        elif key == "block_attr":
            self.merge(block.annotations, value, "T.block_attr", node)
        else:
            items: list[Any] = []
            for item in value:
                items.extend(item) if isinstance(item, (list, tuple)) else items.append(item)
            try:
                regions = tuple(as_region(item) for item in items)
            except TypeError as exc:
                self.fail(node, str(exc))
            if getattr(block, key) is not None:
                self.fail(node, f"block `{block.name}` has its T.{key} already", "list all regions in one")
            setattr(block, key, regions)

    def merge(self, into: dict[str, Any], more: dict[str, Any], what: str, node: ast.AST) -> None:
        """Add attributes; dicts of one key are merged, any other key has one value."""
        for key, value in more.items():
            if key not in into:
                into[key] = dict(value) if isinstance(value, dict) else value
            elif isinstance(into[key], dict) and isinstance(value, dict):
                self.merge(into[key], value, what, node)
            elif not structural_equal(freeze(into[key]), freeze(value)):
                self.fail(node, f"{what} gives `{key}` a second value: {value!r} after {into[key]!r}")

    # ------------------------------------------------------------ buffers

    def declare(self, name: str, spec: f.BufferSpec, node: ast.AST) -> Buffer:
        """The buffer a spec makes under a name, entered where it lives."""
        spec = self.with_symbols(spec)
        if spec.how == "decl_buffer":
            spec, bind = self.with_pointer(name, spec, node)
            if bind is not None:
                self.emit(bind)
        try:
            if spec.how == "match_buffer":
                return self.match(name, spec, node)
            buffer = make_buffer(spec, name)
        except (TypeError, ValueError) as exc:
            return self.fail(node, str(exc))
        if spec.how == "alloc_buffer":
            (self.blocks[-1].alloc_buffers if self.blocks else self.root_buffers).append(buffer)
        elif spec.how == "decl_buffer":
            self.emit(self.wrapper_of_decl(buffer, spec, node))
        return buffer

    def with_symbols(self, spec: f.BufferSpec) -> f.BufferSpec:
        """``spec`` with variables for the sizes, strides and offset that it gives by name, as in ``strides=("s0", 1)``."""
        strides, offset = spec.options.get("strides"), spec.options.get("elem_offset")
        if not any(isinstance(x, str) for x in (*spec.shape, *(strides or ()), offset)):
            return spec
        options = {**spec.options, "elem_offset": self.symbol(offset)}
        if strides:
            options["strides"] = tuple(self.symbol(x) for x in strides)
        return replace(spec, shape=tuple(self.symbol(x) for x in spec.shape), options=options)

    def with_pointer(
        self, name: str, spec: f.BufferSpec, node: ast.AST
    ) -> tuple[f.BufferSpec, Callable[[Stmt], Stmt] | None]:
        """``spec`` with a variable as ``data`` where that is computed, as by ``T.address_of``; and the let that binds it."""
        data = spec.options.get("data")
        if not isinstance(data, Call) or not data.dtype.is_handle:
            return spec, None
        scope = spec.options.get("scope") or _scope_behind(data)
        var = Var(f"{name}_data", HANDLE, DType(spec.dtype), scope)
        self.known.add(var)
        span = self.source.span(node)
        return replace(spec, options={**spec.options, "data": var}), lambda body: LetStmt(var, data, body, span=span)

    def symbol(self, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        found = next((s.names[value] for s in reversed(self.scopes) if value in s.names), None)
        return found if isinstance(found, Var) else self.define(value, Var(value))

    def match(self, name: str, spec: f.BufferSpec, node: ast.AST) -> Buffer:
        source = spec.source
        if isinstance(source, Var):
            if source not in self.params:
                self.fail(
                    node,
                    f"`{source.name}` is not a parameter of the function",
                    "T.match_buffer takes a T.handle parameter, or a region in a block",
                )
            if not source.dtype.is_handle:
                self.fail(node, f"parameter `{source.name}` is {source.dtype}; T.match_buffer takes a T.handle")
            if source in self.buffer_map:
                self.fail(
                    node, f"parameter `{source.name}` is matched to buffer `{self.buffer_map[source].name}` already"
                )
            if spec.options.get("shape_of_source"):
                self.fail(node, "T.match_buffer of a parameter needs a shape")
            buffer = self.buffer_map[source] = make_buffer(spec, name)
            return buffer
        region = as_region(source)
        block = self.current("T.match_buffer of a region", node)
        shape = tuple(r.extent for r in region.region) if spec.options.get("shape_of_source") else None
        if shape is not None:
            spec.dtype = region.buffer.dtype
        if not spec.options.get("scope"):
            spec.options["scope"] = region.buffer.scope
        buffer = make_buffer(spec, name, shape)
        block.match_buffers.append(MatchBufferRegion(buffer, region))
        return buffer

    def wrapper_of_decl(self, buffer: Buffer, spec: f.BufferSpec, node: ast.AST) -> Callable[[Stmt], Stmt]:
        span = self.source.span(node)
        if spec.options["data"] is not None:
            return lambda body: DeclBuffer(buffer, body, span=span)
        return lambda body: Allocate(
            buffer.data, buffer.dtype, buffer.shape, TRUE, DeclBuffer(buffer, body, span=span), span=span
        )

    # ------------------------------------------------------------ wrapping scopes

    def wrapper(self, frame: Any, name: str, node: ast.AST) -> tuple[Callable[[Stmt], Stmt], Any]:
        """How a frame wraps its body, and the value bound to its name."""
        span = self.source.span(node)
        if isinstance(frame, f.AttrFrame):
            facts = [(k, StringImm(v) if isinstance(v, str) else to_expr(v)) for k, v in frame.facts.items()]

            def attributes(body: Stmt) -> Stmt:
                for key, value in reversed(facts):
                    body = AttrStmt(frame.node, key, value, body, span=span)
                return body

            return attributes, None
        if isinstance(frame, f.LaunchFrame):
            return self.launch(frame, name, span, node)
        if isinstance(frame, f.AllocateFrame):
            return self.allocation(frame, name or "buffer", span)
        if isinstance(frame, f.LetFrame):
            return self.let_frame(frame, name or "x", span, node)
        if isinstance(frame, f.RealizeFrame):
            region = as_region(frame.region)
            buffer = region.buffer
            if frame.scope and frame.scope != buffer.scope:
                self.fail(
                    node, f'buffer `{buffer.name}` is in scope "{buffer.scope}", but T.realize says "{frame.scope}"'
                )
            holds = as_bool(to_expr(frame.condition))
            return lambda body: BufferRealize(buffer, region.region, holds, body, span=span), buffer
        raise TypeError(f"{type_name(frame)} does not wrap what follows")

    def launch(self, frame: f.LaunchFrame, name: str, span: Any, node: ast.AST) -> tuple[Callable[[Stmt], Stmt], Var]:
        extent = index_expr(frame.extent)
        if isinstance(frame.thread, str):
            var = Var(name or frame.thread.replace(".", "_"), extent.dtype)
            tag = frame.thread
        else:
            var = f.as_var(frame.thread)
            tag = self.threads.get(var) if isinstance(var, Var) else None  # type: ignore[assignment]
            if tag is None:
                self.fail(
                    node,
                    "T.launch_thread takes a thread axis by name, or what T.env_thread gave",
                    'as in: with T.launch_thread("threadIdx.x", 128) as tx:',
                )
        self.known.add(var)
        domain = Range(const(0, extent.dtype), extent)
        self.domains[var] = domain
        iterator = IterVar(domain, var, "thread", tag)
        return lambda body: AttrStmt(iterator, "thread_extent", extent, body, span=span), var

    def allocation(self, frame: f.AllocateFrame, name: str, span: Any) -> tuple[Callable[[Stmt], Stmt], Var]:
        var = Var(name, HANDLE, DType(frame.dtype), frame.scope)
        extents = tuple(index_expr(e) for e in frame.extents)
        annotations = attributes(frame.annotations, "T.allocate")
        self.known.add(var)
        self.declare_pointer(var, frame.dtype, extents)
        if frame.data is None:
            condition = as_bool(to_expr(frame.condition))
            return lambda body: Allocate(var, frame.dtype, extents, condition, body, annotations, span=span), var
        data = _constant_array(frame, extents)
        return lambda body: AllocateConst(var, frame.dtype, extents, data, body, annotations, span=span), var

    def let_frame(self, frame: f.LetFrame, name: str, span: Any, node: ast.AST) -> tuple[Callable[[Stmt], Stmt], Var]:
        kind = frame.type
        if frame.var is not None:
            var = frame.var
            value = as_expr(frame.value, var.dtype)
        else:
            dtype = None if kind is None or isinstance(kind, Var) else dtype_of(kind)
            value = as_expr(frame.value, dtype) if isinstance(frame.value, (int, float)) else to_expr(frame.value)
            var = kind.replace(name=name) if isinstance(kind, Var) else Var(name, dtype or value.dtype)  # type: ignore[arg-type]
        if value.dtype != var.dtype:
            self.fail(node, f"`{var.name}` is {var.dtype}, but its value is {value.dtype}")
        self.known.add(var)
        return lambda body: LetStmt(var, value, body, span=span), var

    def open_over_rest(self, frame: Any, name: str, node: ast.AST) -> Any:
        """A frame used as a statement: it wraps the rest of the scope."""
        wrap, value = self.wrapper(frame, name, node)
        self.emit(wrap)
        return value

    def open_wrapper(self, frame: Any, item: ast.withitem, node: ast.With, go: Callable[[], None]) -> None:
        """``with frame as name:``"""
        target = item.optional_vars
        if target is not None and not isinstance(target, ast.Name):
            self.fail(target, "a name is expected after `as`")
        name = target.id if isinstance(target, ast.Name) else ""
        if isinstance(frame, f.BufferSpec):
            frame, bind = self.with_pointer(name or "buffer", self.with_symbols(frame), node)
            value: Any = make_buffer(frame, name or "buffer")
            declared = self.wrapper_of_decl(value, frame, node)
            wrap = declared if bind is None else lambda body: bind(declared(body))
        else:
            wrap, value = self.wrapper(frame, name, node)
        with self.nested() as items:
            if name:
                self.define(name, value)
            go()
        self.emit(wrap(close(items)))

    def open_assert(self, frame: f.AssertFrame, item: ast.withitem, node: ast.With, go: Callable[[], None]) -> None:
        self.emit_assert(frame.condition, frame.message, node)
        with self.nested() as items:
            go()
        self.emit(close(items))

    def opener(self, frame: Any) -> Callable[..., None] | None:
        """The wrapper for a frame given to ``with``; None if it cannot be used so."""
        if isinstance(frame, f.BlockFrame):
            return self.open_block
        if isinstance(frame, f.InitFrame):
            return self.open_init
        if isinstance(frame, f.AssertFrame):
            return self.open_assert
        wrapping = (f.AttrFrame, f.LaunchFrame, f.AllocateFrame, f.LetFrame, f.RealizeFrame)
        if isinstance(frame, wrapping) or (isinstance(frame, f.BufferSpec) and frame.how == "decl_buffer"):
            return self.open_wrapper
        return None


def _scope_behind(pointer: Call) -> str:
    """The storage scope of the memory that a computed pointer leads to."""
    if pointer.op == "address_of" and isinstance(pointer.args[0], BufferLoad):
        return pointer.args[0].buffer.scope
    return next((a.scope for a in pointer.args if isinstance(a, Var) and a.dtype.is_handle and a.scope), "global")


def _constant_array(frame: f.AllocateFrame, extents: tuple[Expr, ...]) -> Any:
    """The NumPy array of an ``allocate_const``. Raises ``ValueError`` when data and extents disagree."""
    import numpy as np

    sizes = [e.value if isinstance(e, IntImm) else -1 for e in extents]
    dtype = str(frame.dtype) if frame.dtype.code in ("int", "uint", "float", "bool") else "float32"
    data = np.array(frame.data, dtype=dtype)
    wanted = int(np.prod(sizes)) if sizes else 1
    if data.size != wanted:
        raise ValueError(f"T.allocate_const has {data.size} values for {wanted} elements")
    return data.reshape(sizes)
