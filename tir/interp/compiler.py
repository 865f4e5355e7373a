"""Statements to Python source: one Python function per PrimFunc, with the checks written in."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import expr as E
from .. import stmt as S
from ..aliases import other_names, overlapping, shares_memory, views_in, with_names, with_views
from ..analysis.reduction_forms import shared_results
from ..buffer import Buffer, BufferRegion
from ..errors import RunError
from ..function import PrimFunc
from ..levels import is_shared, is_thread_axis, is_virtual_axis
from ..op import string_arg
from ..progress import track
from ..visit import walk
from . import memory
from .accesses import MemoryAccess
from .arguments import layout_variables
from .expressions import Bounds, identifier
from .numbers import constant_data, storage_dtype

_MAX_NEST = 12  # CPython allows 20 nested blocks in one function: deeper loops go into an inner function
_CONCURRENT = (S.PARALLEL, S.VECTORIZED, S.THREAD_BINDING)


class Compiler(MemoryAccess):
    """Compiles one function; ``source`` is then the text of a Python function ``run(scalars, arrays)``."""

    def __init__(self, func: PrimFunc, check: bool, regions: bool):
        super().__init__(check)
        self.func = func
        self.regions = regions
        self.nest = 0
        self.tracked = False  # inside of a loop whose progress is shown
        self.threads: dict[str, str] = {}
        self.sync_matters = False
        self._survey()

    # ------------------------------------------------------------------ what the function holds

    def _survey(self) -> None:
        """Finds which buffers need which records: shadows of allocations, race records, undeclared views."""
        func = self.func
        declared: set[Buffer] = set(func.buffer_map.values())
        used: dict[Buffer, None] = {}
        sizes: dict[E.Var, set[tuple[int, int]]] = {}
        blocks: list[S.Block] = []
        named: set[E.Var] = set(overlapping(func))
        concurrent = False
        for item in walk(func.body):
            if isinstance(item, Buffer):
                sizes.setdefault(item.data, set()).add((storage_dtype(item.dtype).itemsize, item.dtype.lanes))
            elif isinstance(item, (E.BufferLoad, S.BufferStore)):
                used.setdefault(item.buffer)
                if isinstance(item, S.BufferStore):
                    self.shared_writes.add(item.buffer.data)
            elif isinstance(item, S.DeclBuffer):
                declared.add(item.buffer)
            elif isinstance(item, S.Block):
                declared.update(item.alloc_buffers, (match.buffer for match in item.match_buffers))
                blocks.append(item)
            elif isinstance(item, S.LetStmt):
                names = [*other_names(item)]
                named.update(names)
                self.escaping.update(names)
            elif isinstance(item, E.Call):
                for a in item.args:
                    if isinstance(a, E.Var) and a.dtype.is_handle:
                        self.escaping.add(a)
                    elif isinstance(a, E.BufferLoad) and item.op == "address_of":
                        self.escaping.add(a.buffer.data)
            elif isinstance(item, S.BufferRealize):
                declared.add(item.buffer)
            loop = isinstance(item, S.For) and item.kind in _CONCURRENT
            launch = isinstance(item, S.AttrStmt) and item.attr_key in ("thread_extent", "virtual_thread")
            concurrent = concurrent or loop or launch
        self.concurrent = concurrent and self.check
        self.mixed = {data for data, kinds in sizes.items() if len(kinds) > 1}
        views, self.overlapping = views_in(blocks), named
        self.escaping = {*with_views(frozenset(self.escaping | self.mixed), views)}
        written = with_names(with_views(frozenset(self.shared_writes), views), named)
        self.shared_writes = {*with_views(written, views)}
        units = {size for data in named for size, _ in sizes.get(data, ())}
        self.unit = min(units) if len(units) > 1 else 0
        for buffer in used:
            if buffer not in declared:
                self.undeclared.setdefault(buffer.data, []).append(buffer)

    def compile(self) -> str:
        func = self.func
        for param in func.params:
            if param not in func.buffer_map:
                self._scalar(param)
        for param in func.params:
            buffer = func.buffer_map.get(param)
            for var in () if buffer is None else layout_variables(buffer):
                if var not in self.names:
                    self._scalar(var)
        for param in func.params:
            buffer = func.buffer_map.get(param)
            if buffer is not None:
                name = self.fresh(f"v_{identifier(buffer.name)}_")
                self.emit(f"{name} = arrays[{self.const(buffer)}]")
                if not shares_memory(buffer, self.memories):
                    data = self.memories[buffer.data] = self.fresh(f"p_{identifier(buffer.name)}_")
                    self.emit(f"{data} = {self.helper(memory.flat)}({name})")
                    self._memory_records(buffer.data, data, None)
                self._bind_view(buffer, name)
        for param in func.params:
            buffer = func.buffer_map.get(param)
            if buffer is not None:
                self._views_of(buffer.data)
        self.statement(func.body)
        return "\n".join(["def run(scalars, arrays, races):", *self.lines, "    return None"])

    def _scalar(self, var: E.Var) -> None:
        if var.dtype.is_handle:
            name = self.memories[var] = self.fresh(f"p_{identifier(var.name)}_")
            self.emit(f"{name} = scalars[{self.const(var)}]")
            self._memory_records(var, name, None)
            self._views_of(var)
        else:
            name = self.variable(var)
            self.emit(f"{name} = scalars[{self.const(var)}]")

    # ------------------------------------------------------------------ statements

    def statement(self, s: S.Stmt) -> None:
        outer = self.span
        if s.span is not None:
            self.span = s.span
        _STATEMENTS[type(s)](self, s)
        self.span = outer

    def body(self, s: S.Stmt) -> None:
        """``s`` one level deeper."""
        self.indent += 1
        before = len(self.lines)
        self.statement(s)
        if len(self.lines) == before:
            self.emit("pass")
        self.indent -= 1

    def _seq(self, s: S.SeqStmt) -> None:
        for item in s.stmts:
            self.statement(item)

    def _for(self, s: S.For) -> None:
        if s.kind == S.THREAD_BINDING and self._same_thread(s.thread, s.loop_var, s.body):
            return
        self._loop(s.loop_var, s.min, s.extent, s.body, s.kind, s.thread, s.private)

    def _loop(
        self,
        var: E.Var,
        low: Any,
        extent: Any,
        body: S.Stmt,
        kind: str,
        thread: str = "",
        private: tuple[Buffer, ...] = (),
    ) -> None:
        first, b0 = self.value(low)
        count, b1 = self.value(extent)
        if self.nest >= _MAX_NEST:
            self._outlined(lambda: self._loop(var, low, extent, body, kind, thread, private))
            return
        name = self.variable(var, (b0[0], max(b0[0], b0[1] + b1[1] - 1)))
        now, threads, sync = self.now, self.threads, self.sync_matters
        tracked = self.concurrent and kind in _CONCURRENT
        if thread:
            self.threads = {**threads, thread: name}
            single = isinstance(extent, E.IntImm) and extent.value == 1
            self.sync_matters = sync or (is_thread_axis(thread) and not single)
        if tracked:
            instance = self.fresh("run")
            self.emit(f"{instance} = races.enter()")
        stop = count if first == "0" else f"{first}, {first} + {count}"
        outside, once = self.tracked, isinstance(extent, E.IntImm) and extent.value == 1
        values = f"range({stop})" if outside or once else self._tracked(f"range({stop})", var, count)
        self.tracked = outside or not once
        self.emit(f"for {name} in {values}:")
        if tracked:
            self.now = self.fresh("now")
            self.emit(f"    {self.now} = races.step({now}, {instance}, {var.name!r}, {name})")
        self.context.append((name, var.name, False))
        self.nest += 1
        exempt = self.exempt
        if thread and self.concurrent:
            self.exempt = exempt | _synchronised(body)
        if private:
            self._own_copies(private, body)
        else:
            self.body(body)
        self.exempt = exempt
        self.nest -= 1
        self.tracked = outside
        self.context.pop()
        self.now, self.threads, self.sync_matters = now, threads, sync

    def _tracked(self, values: str, var: E.Var, count: str) -> str:
        """The values of an outermost loop, which shows its progress if it takes long."""
        return f"{self.helper(track)}({values}, {f'{self.func.name}: loop {var.name}'!r}, {count})"

    def _own_copies(self, private: tuple[Buffer, ...], body: S.Stmt) -> None:
        """``body`` of a loop whose every iteration has its own, uninitialised copies of the buffers ``private``."""
        memories, views = dict(self.memories), dict(self.views)
        self.indent += 1
        for buffer in private:
            self.allocate(buffer)
        self.statement(body)
        self.indent -= 1
        self.memories, self.views = memories, views

    def _outlined(self, emit: Any) -> None:
        """Wrap the code that ``emit`` emits in an inner function."""
        name = self.fresh("part")
        self.emit(f"def {name}():")
        nest, self.nest = self.nest, 0
        indent, self.indent = self.indent, self.indent + 1
        emit()
        self.nest, self.indent = nest, indent
        self.emit(f"{name}()")

    def _same_thread(self, thread: str, var: E.Var, body: S.Stmt) -> bool:
        """A nested loop bound to the same thread axis runs as the same thread. A cooperative copy into shared memory is
        the exception: it runs for all threads, as the barrier after it makes all their writes visible. Virtual thread
        loops are always distinct."""
        outer = self.threads.get(thread)
        if outer is None or is_virtual_axis(thread):
            return False
        stores = [item for item in walk(body) if isinstance(item, S.BufferStore)]
        if stores and all(is_shared(item.buffer.scope) for item in stores):
            return False
        self.emit(f"{self.variable(var)} = {outer}")
        self.statement(body)
        return True

    def _while(self, s: S.While) -> None:
        self.emit(f"while {self.expr(s.condition)}:")
        self.nest += 1
        self.body(s.body)
        self.nest -= 1

    def _if(self, s: S.IfThenElse) -> None:
        if s.condition.dtype.lanes > 1:
            condition = self.fresh("m")
            self.emit(f"{condition} = {self.expr(s.condition)}")
            for case, test in ((s.then_case, condition), (s.else_case, f"~{condition}")):
                if case is not None:
                    lanes = self.fresh("m")
                    self.emit(f"{lanes} = {self.helper(np.flatnonzero)}({test})")
                    self.emit(f"if {lanes}.size:")
                    self.masks.append(lanes)
                    self.body(case)
                    self.masks.pop()
            return
        self.emit(f"if {self.expr(s.condition)}:")
        self.body(s.then_case)
        if s.else_case is not None:
            self.emit("else:")
            self.body(s.else_case)

    def _let(self, s: S.LetStmt) -> None:
        self.named(s.var, s.value)
        if s.var.dtype.is_handle:
            value = self.pointer(s.value)
            name = self.memories[s.var] = self.fresh(f"p_{identifier(s.var.name)}_")
            self.emit(f"{name} = {value}")
            self._memory_records(s.var, name, None)
            self._views_of(s.var)
        elif s.value.dtype.is_int and s.value.dtype.lanes == 1:
            value, bounds = self.value(s.value)
            self.emit(f"{self.variable(s.var, bounds)} = {value}")
        else:
            value = self.expr(s.value)
            self.mask_depth[s.var] = len(self.masks)
            self.emit(f"{self.variable(s.var)} = {value}")
        self.statement(s.body)

    def _assert(self, s: S.AssertStmt) -> None:
        site, values = self.site("assertion", None)
        message = string_arg(s.message)
        self.emit(f"if not {self.expr(s.condition)}:")
        self.emit(f"    {site}.fail({f'assertion failed: {message}'!r}, {values})")

    def _evaluate(self, s: S.Evaluate) -> None:
        e = s.value
        if isinstance(e, E.IntImm):
            return
        if isinstance(e, E.Call):
            if e.op == "tvm_storage_sync":
                if self.sync_matters:
                    site, values = self.site("barrier", None)
                    self.emit(
                        f"{site}.fail('a barrier between threads: the reference executor runs threads one after the "
                        f"other, which is wrong here; run the program before thread_sync', {values})"
                    )
                return
            if e.op in ("prefetch", "tvm_global_barrier_kinit", "ptx_commit_group", "ptx_wait_group"):
                return
        self.emit(self.expr(e))

    def _attr(self, s: S.AttrStmt) -> None:
        if s.attr_key in ("thread_extent", "virtual_thread"):
            var = s.node.var
            tag = s.node.thread_tag or var.name
            if var in self.names or self._same_thread(tag, var, s.body):
                if var in self.names:
                    self.statement(s.body)
                return
            self._loop(var, E.IntImm(0, s.value.dtype), s.value, s.body, S.THREAD_BINDING, tag)
            return
        self.statement(s.body)

    def _allocate(self, s: S.Allocate) -> None:
        count = " * ".join(self.expr(n) for n in s.extents) or "1"
        name = self.memories[s.buffer_var] = self.fresh(f"p_{identifier(s.buffer_var.name)}_")
        self.emit(f"{name} = {self.helper(memory.allocate)}({count}, {self.const(s.dtype)})")
        lanes = f" * {s.dtype.lanes}" if s.dtype.lanes > 1 else ""
        self._memory_records(s.buffer_var, name, None if lanes else count)
        self._views_of(s.buffer_var)
        self.statement(s.body)

    def _allocate_const(self, s: S.AllocateConst) -> None:
        data = constant_data(s.data, s.dtype)
        name = self.memories[s.buffer_var] = self.fresh(f"p_{identifier(s.buffer_var.name)}_")
        self.emit(f"{name} = {self.const(data)}")
        self._memory_records(s.buffer_var, name, None)
        self._views_of(s.buffer_var)
        self.statement(s.body)

    def _decl_buffer(self, s: S.DeclBuffer) -> None:
        if shares_memory(s, self.memories):
            self.declare(s.buffer)
        else:
            self.allocate(s.buffer)
        self.statement(s.body)

    def _realize(self, s: S.BufferRealize) -> None:
        if any(not E.is_const(r.min, 0) for r in s.bounds):
            raise RunError(f"BufferRealize of `{s.buffer.name}` with a box that does not start at 0")
        self.allocate(s.buffer)
        self.statement(s.body)

    # ------------------------------------------------------------------ blocks

    def _block_realize(self, s: S.BlockRealize) -> None:
        block = s.block
        outer = (self.block, self.boxes, self.own, self.exempt, len(self.context))
        guarded = not E.is_const(s.predicate, 1)
        if guarded:
            self.emit(f"if {self.expr(s.predicate)}:")
            self.indent += 1
        values = [self.value(v) if v.dtype.is_int else (self.expr(v), (0, 1)) for v in s.iter_values]
        for iter_var, (text, bounds) in zip(block.iter_vars, values):
            name = self.variable(iter_var.var, bounds)
            self.emit(f"{name} = {text}")
        self.context.extend((self.names[v.var], v.var.name, True) for v in block.iter_vars)
        self.block = block
        for iter_var, (_, bounds) in zip(block.iter_vars, values):
            self._domain(iter_var, bounds)
        self._block_body(s)
        if guarded:
            self.emit("pass")
            self.indent -= 1
        self.block, self.boxes, self.own, self.exempt, depth = outer
        del self.context[depth:]

    def _domain(self, iter_var: Any, bounds: Bounds) -> None:
        dom = iter_var.dom
        if dom is None:
            return
        (low, b0), (extent, b1) = self.value(dom.min), self.value(dom.extent)
        end = f"{low} + {extent}" if low != "0" else extent
        exact = b0[0] == b0[1] and b1[0] == b1[1]
        if self.check and not (exact and b0[0] <= bounds[0] and bounds[1] < b0[0] + b1[0]):
            name = self.names[iter_var.var]
            site, values = self.site("iterator", None)
            self.emit(f"if not {low} <= {name} < {end}:")
            fail = self.helper(_outside_domain)
            self.emit(f"    {fail}({site}, {iter_var.var.name!r}, {name}, {low}, {end}, {values})")
        if self.check:  # from here on the iterator is known to be in its domain
            self.bounds[iter_var.var] = (max(bounds[0], b0[0]), min(bounds[1], b0[1] + b1[1] - 1))

    def _block_body(self, s: S.BlockRealize) -> None:
        block = s.block
        for buffer in block.alloc_buffers:
            self.allocate(buffer)
        results = shared_results(block) if self.concurrent else ()
        if results and any(v.iter_type == "reduce" for v in block.iter_vars):
            bound = {v for iv, e in zip(block.iter_vars, s.iter_values) if iv.iter_type == "reduce" for v in walk(e)}
            threads = [name for tag, name in self.threads.items() if is_thread_axis(tag)]
            if any(self.names.get(v) in threads for v in bound if isinstance(v, E.Var)):
                # a reduction across the threads of a block is no race: lowering combines the partial results
                self.exempt = self.exempt.union(results)
        declares = block is not self.func.root or (block.name != "root" and (block.reads or block.writes))
        if self.regions and declares:
            self.own = set(block.alloc_buffers)
            self.boxes = {}
            for what, regions in (("read", block.reads), ("write", block.writes)):
                for buffer in dict.fromkeys(r.buffer for r in regions):
                    boxes = ", ".join(self._box(r) for r in regions if r.buffer is buffer)
                    name = self.fresh("box")
                    self.emit(f"{name} = [{boxes}]")
                    self.boxes[buffer, what] = name
        defined = set(self.names)
        for match in block.match_buffers:
            self._match(match)
        if block.init is not None:
            firsts = [
                f"{self.names[v.var]} == {self.expr(v.dom.min)}"
                for v in block.iter_vars
                if v.iter_type == "reduce" and v.dom is not None
            ]
            boxes, self.boxes = self.boxes, None if self.boxes is None else {**self.boxes}
            if firsts:
                self.emit(f"if {' and '.join(firsts)}:")
                self.body(block.init)
            else:
                self.statement(block.init)
            self.boxes = boxes
        if self.boxes is not None and block.init is not None:  # a reduction reads what it updates
            for buffer in dict.fromkeys(r.buffer for r in block.writes):
                self.boxes.setdefault((buffer, "read"), self.boxes[buffer, "write"])
        self.statement(block.body)
        if block.match_buffers:  # another block's views may use the same variables
            self.names = {var: name for var, name in self.names.items() if var in defined}

    def _box(self, region: BufferRegion) -> str:
        parts = [f"({self.expr(r.min)}, {self.expr(r.min)} + {self.expr(r.extent)})" for r in region.region]
        return f"[{', '.join(parts)}]"

    def _match(self, match: Any) -> None:
        source, buffer = match.source.buffer, match.buffer
        outer, data = self._view(source)
        name = self.fresh(f"v_{identifier(buffer.name)}_")
        begins = self._tuple([r.min for r in match.source.region])
        extents = self._tuple([r.extent for r in match.source.region])
        part = self.helper(memory.matched)
        self.emit(f"{name} = {part}({outer}, {begins}, {extents}, {buffer.ndim}, {buffer.name!r})")
        lanes = buffer.dtype.lanes * storage_dtype(buffer.dtype).itemsize
        for axis, size in enumerate(buffer.shape):
            self._declared(buffer, f"shape[{axis}]", size, f"{name}.shape[{axis}]")
        for axis, stride in enumerate(buffer.strides):
            at = axis + source.ndim - buffer.ndim
            sizes = " * ".join(self.expr(n) for n in source.shape[at + 1 :]) or "1"
            self._declared(
                buffer, f"strides[{axis}]", stride, self.expr(source.strides[at]) if source.strides else sizes
            )
        offset = f"{self.helper(_element_offset)}({data}, {name}, {lanes})"
        if buffer.elem_offset is not None:
            self._declared(buffer, "elem_offset", buffer.elem_offset, offset)
        if buffer.offset_factor > 1:
            self.emit(f"{self.helper(_divide)}({buffer.offset_factor}, {offset}, {buffer.name!r})")
        self.memories[buffer.data] = data
        if shares_memory(source, self.shadows):
            self.shadows.add(buffer.data)
            self.emit(f"u_{name} = {part}(u_{outer}, {begins}, {extents}, {buffer.ndim}, {buffer.name!r})")
        self.own = self.own | {buffer}
        self._bind_view(buffer, name)

    def _declared(self, view: Buffer, what: str, declared: Any, actual: str) -> None:
        """Match one size of a view's declaration: an unbound variable takes the actual value, anything else must equal
        it."""
        if isinstance(declared, E.Var) and declared not in self.names:
            self.emit(f"{self.variable(declared)} = {actual}")
            return
        about = f"match_buffer `{view.name}`: {what} is declared as"
        about += "" if isinstance(declared, E.IntImm) else f" `{declared!r}` ="
        self.emit(f"{self.helper(_agree)}({self.expr(declared)}, {actual}, {about!r})")

    def _block(self, s: S.Block) -> None:
        self._block_realize(S.BlockRealize((), E.TRUE, s))

    def call_function(self, e: E.Call) -> str:
        from .executor import call_in_module

        args = ", ".join(self.argument(a) for a in e.args[1:])
        tail = "," * bool(args)
        return f"{self.helper(call_in_module)}({string_arg(e.args[0])!r}, {self.const(e.dtype)}, ({args}{tail}))"


def _synchronised(body: S.Stmt) -> set[Buffer]:
    """Buffers that threads may share without a race: lowering inserts barriers for shared memory, and every thread has
    its own copy of the other non-global scopes."""
    return {item for item in walk(body) if isinstance(item, Buffer) and item.scope not in ("global", "")}


def _outside_domain(site: Any, name: str, value: int, low: int, end: int, values: tuple[Any, ...]) -> None:
    site.fail(f"block iterator {name}={value} is outside its domain [{low}, {end})", values)


def _element_offset(data: np.ndarray, array: np.ndarray, size: int) -> int:
    return (array.ctypes.data - data.ctypes.data) // size


def _agree(declared: int, actual: int, about: str) -> None:
    if declared != actual:
        raise RunError(f"{about} {declared}, but the region it views has {actual}")


def _divide(factor: int, offset: int, name: str) -> None:
    if offset % factor:
        about = f"match_buffer `{name}`: offset_factor is declared as {factor}"
        raise RunError(f"{about}, but the region it views starts at element {offset}")


_STATEMENTS: dict[type, Any] = {
    S.BufferStore: Compiler.store, S.For: Compiler._for, S.While: Compiler._while, S.IfThenElse: Compiler._if,
    S.SeqStmt: Compiler._seq, S.LetStmt: Compiler._let, S.AssertStmt: Compiler._assert, S.Evaluate: Compiler._evaluate,
    S.AttrStmt: Compiler._attr, S.Allocate: Compiler._allocate, S.AllocateConst: Compiler._allocate_const,
    S.DeclBuffer: Compiler._decl_buffer, S.BufferRealize: Compiler._realize, S.Block: Compiler._block,
    S.BlockRealize: Compiler._block_realize,
}  # fmt: skip
