"""Statements to Python source: one Python function per PrimFunc, with the checks written in."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import expr as E
from .. import stmt as S
from ..buffer import Buffer, BufferRegion
from ..dtype import DType
from ..errors import RunError
from ..function import PrimFunc
from ..op import string_arg
from ..visit import walk
from . import memory, numbers
from .expressions import Bounds, Expressions, identifier
from .numbers import is_small_float, storage_dtype

_MAX_NEST = 12  # CPython refuses more than 20 nested loops in one function: deeper ones go into an inner function
_CONCURRENT = (S.PARALLEL, S.VECTORIZED, S.THREAD_BINDING)


class Compiler(Expressions):
    """Compiles one function. ``source`` afterwards is the text of a Python function ``run(scalars, arrays)``."""

    def __init__(self, func: PrimFunc, check: bool, regions: bool):
        super().__init__()
        self.func = func
        self.check = check
        self.regions = regions
        self.lines: list[str] = []
        self.indent = 1
        self.nest = 0
        self.views: dict[Buffer, str] = {}
        self.memories: dict[E.Var, str] = {}
        self.shadows: set[E.Var] = set()
        self.context: list[tuple[str, str, bool]] = []  # (Python name, user's name, whether a block iterator)
        self.span: Any = None
        self.block: S.Block | None = None
        self.now = "0"
        self.threads: dict[str, str] = {}
        self.sync_matters = False
        self.boxes: dict[tuple[Buffer, str], str] | None = None
        self.own: set[Buffer] = set()
        self.exempt: set[Buffer] = set()
        self._survey()

    # ------------------------------------------------------------------ what the function holds

    def _survey(self) -> None:
        """Which buffers need which records, found once: shadows of allocations, race records, undeclared views."""
        func = self.func
        declared: set[Buffer] = set(func.buffer_map.values())
        used: dict[Buffer, None] = {}
        sizes: dict[E.Var, set[tuple[int, int]]] = {}
        self.escaping: set[E.Var] = set()
        self.shared_writes: set[E.Var] = set()
        aliases: dict[E.Var, E.Var] = {}
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
                declared.update(item.alloc_buffers)
                for match in item.match_buffers:
                    declared.add(match.buffer)
                    aliases[match.buffer.data] = match.source.buffer.data
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
        for inner, outer in reversed(list(aliases.items())):
            if inner in self.shared_writes:
                self.shared_writes.add(outer)
            if inner in self.escaping or inner in self.mixed:
                self.escaping.add(outer)
        for inner, outer in aliases.items():
            if outer in self.shared_writes:
                self.shared_writes.add(inner)
            if outer in self.escaping or outer in self.mixed:
                self.escaping.add(inner)
        self.undeclared: dict[E.Var, list[Buffer]] = {}
        for buffer in used:
            if buffer not in declared:
                self.undeclared.setdefault(buffer.data, []).append(buffer)

    # ------------------------------------------------------------------ text

    def emit(self, line: str) -> None:
        self.lines.append("    " * self.indent + line)

    def variable(self, var: E.Var, bounds: Bounds | None = None) -> str:
        name = self.names[var] = self.fresh(f"{identifier(var.name)}_")
        if bounds is not None:
            self.bounds[var] = bounds
        return name

    def site(self, what: str, buffer: Buffer | None) -> tuple[str, str]:
        """Names of a fault's place and of the tuple of the values around it."""
        names = tuple((user, is_iter) for _, user, is_iter in self.context)
        block = "" if self.block is None or self.block.name == "root" else self.block.name
        values = ", ".join(python for python, _, _ in self.context)
        return self.const(memory.Site(what, buffer, self.span, block, names), "site"), f"({values}{',' * bool(values)})"

    def compile(self) -> str:
        func = self.func
        for param in func.params:
            if param not in func.buffer_map:
                self._scalar(param)
        for param in func.params:
            buffer = func.buffer_map.get(param)
            if buffer is not None:
                offset = () if buffer.elem_offset is None else (buffer.elem_offset,)
                for part in (*buffer.shape, *buffer.strides, *offset):
                    for var in walk(part):
                        if isinstance(var, E.Var) and var not in self.names:
                            self._scalar(var)
        for param in func.params:
            buffer = func.buffer_map.get(param)
            if buffer is not None:
                name = self.fresh(f"v_{identifier(buffer.name)}_")
                self.emit(f"{name} = arrays[{self.const(buffer)}]")
                if buffer.data not in self.memories:
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

    # ------------------------------------------------------------------ memory

    def _memory_records(self, data: E.Var, name: str, count: str | None) -> None:
        """The records that go with a piece of memory: which elements are written (``count`` fresh ones), race log."""
        if self.check and count is not None and data not in self.mixed and data not in self.escaping:
            self.shadows.add(data)
            self.emit(f"u_{name} = {self.helper(np.zeros)}({count}, {self.helper(np.bool_)})")
        if self.concurrent and data in self.shared_writes:
            self.emit(f"t_{name} = {self.helper(memory.Tracker)}(races)")

    def _views_of(self, data: E.Var) -> None:
        for buffer in self.undeclared.get(data, ()):
            self.declare(buffer)

    def declare(self, buffer: Buffer) -> None:
        """A view of the memory behind ``buffer.data``."""
        if buffer.data not in self.memories:
            raise RunError(f"buffer `{buffer.name}` lies behind the pointer `{buffer.data.name}`, defined nowhere")
        data = self.memories[buffer.data]
        name = self.fresh(f"v_{identifier(buffer.name)}_")
        shape = self._tuple(buffer.shape)
        strides = self._tuple(buffer.strides) if buffer.strides else "None"
        offset = "0" if buffer.elem_offset is None else self.expr(buffer.elem_offset)
        dtype = self.const(buffer.dtype)
        make = self.helper(memory.view)
        self.emit(f"{name} = {make}({data}, {dtype}, {shape}, {strides}, {offset}, {buffer.name!r})")
        if buffer.data in self.shadows:
            scalar = self.const(DType("bool"))
            self.emit(f"u_{name} = {make}(u_{data}, {scalar}, {shape}, {strides}, {offset}, {buffer.name!r})")
        self._bind_view(buffer, name)

    def _bind_view(self, buffer: Buffer, name: str) -> None:
        self.views[buffer] = name
        self.emit(f"g_{name} = {name}.item")
        data = self.memories[buffer.data]
        if self.concurrent and buffer.data in self.shared_writes:
            self.emit(f"r_{name} = t_{data}.on({data}, {name})")

    def _tuple(self, items: Any) -> str:
        parts = [self.expr(i) for i in items]
        return f"({', '.join(parts)}{',' * (len(parts) == 1)})"

    def allocate(self, buffer: Buffer) -> None:
        data = self.memories[buffer.data] = self.fresh(f"p_{identifier(buffer.name)}_")
        if buffer.strides:
            span = " + ".join(f"({self.expr(n)} - 1) * {self.expr(s)}" for n, s in zip(buffer.shape, buffer.strides))
            count = f"(1 + {span})"
        else:
            count = " * ".join(self.expr(n) for n in buffer.shape) or "1"
        self.emit(f"{data} = {self.helper(memory.allocate)}({count}, {self.const(buffer.dtype)})")
        self._memory_records(buffer.data, data, count)
        if isinstance(buffer.elem_offset, E.Var) and buffer.elem_offset not in self.names:
            self.emit(f"{self.variable(buffer.elem_offset, (0, 0))} = 0")
        self.own.add(buffer)
        self.declare(buffer)
        self._views_of(buffer.data)

    def pointer(self, e: Any) -> str:
        """A pointer value: the memory from that element on, as a one-dimensional array."""
        if isinstance(e, E.Var):
            name = self.memories.get(e)
            if name is None:
                raise RunError(f"pointer `{e.name}` is used where nothing defines it")
            return name
        if isinstance(e, E.Call) and e.op == "address_of":
            load = e.args[0]
            name, _ = self._view(load.buffer)
            index = ", ".join(self.expr(i) for i in load.indices)
            return f"{self.helper(_from_element)}({self.memories[load.buffer.data]}, {name}, ({index},))"
        if isinstance(e, E.Call) and e.op == "tvm_access_ptr":
            _, data, offset, extent, *_ = e.args
            start = self.expr(offset)
            return f"{self.pointer(data)}[{start}:{start} + {self.expr(extent)}]"
        return self.expr(e)

    def _view(self, buffer: Buffer) -> tuple[str, str]:
        name = self.views.get(buffer)
        if name is None:
            raise RunError(f"buffer `{buffer.name}` is used where nothing declares it")
        return name, self.memories[buffer.data]

    # ------------------------------------------------------------------ accesses

    def _indices(self, buffer: Buffer, indices: tuple[Any, ...]) -> tuple[list[str], list[str]]:
        """Index sources (each evaluated once), and the conditions under which they are inside the buffer."""
        name, _ = self._view(buffer)
        texts, conditions = [], []
        if len(indices) != buffer.ndim:
            raise RunError(f"buffer `{buffer.name}` has {buffer.ndim} axes, accessed with {len(indices)} indices")
        for axis, (index, size) in enumerate(zip(indices, buffer.shape)):
            if index.dtype.lanes > 1:
                text, low, high = self.expr(index), -1, -1  # lanes: bounds not known
            elif index.dtype.is_int:
                text, (low, high) = self.value(index)
            else:
                text, low, high = f"int({self.expr(index)})", 0, 1
            safe = low >= 0 and isinstance(size, E.IntImm) and high < size.value
            if self.check and (not text.isidentifier() and not text.isdigit()):
                held = self.fresh("x")
                if safe:
                    texts.append(text)
                    continue
                test, text = f"({held} := {text})", held
            else:
                test = text
            if self.check and not safe:
                limit = str(size.value) if isinstance(size, E.IntImm) else f"{name}.shape[{axis}]"
                if index.dtype.lanes > 1:
                    conditions.append(f"{self.helper(_all_within)}({test}, {limit})")
                else:
                    conditions.append(f"0 <= {test} < {limit}")
            texts.append(text)
        return texts, conditions

    def _guards(self, buffer: Buffer, texts: list[str], what: str, site: str, values: str, vector: bool) -> list[str]:
        """Further conditions of an access in checked mode; each holds or raises."""
        name, _ = self._view(buffer)
        index = f"({', '.join(texts)}{',' * (len(texts) == 1)})"
        guards = []
        if self.boxes is not None and buffer not in self.own:
            boxes = self.boxes.get((buffer, what), "[]")
            guards.append(f"{self.helper(memory.outside_region)}({site}, {boxes}, {index}, {values})")
        if what == "read" and buffer.data in self.shadows:
            place = ", ".join(texts) or "()"
            test = f"u_{name}[{place}]" + (".all()" if vector else "")
            guards.append(f"({test} or {self.helper(memory.uninitialised)}({site}, {index}, {values}))")
        if self.now != "0" and buffer.data in self.shared_writes and buffer not in self.exempt:
            guards.append(f"r_{name}.{what}({index}, {self.now}, {site}, {values})")
        return guards

    def load(self, e: E.BufferLoad) -> str:
        buffer, dtype = e.buffer, e.dtype
        name, _ = self._view(buffer)
        texts, conditions = self._indices(buffer, e.indices)
        place = ", ".join(texts)
        vector = dtype.lanes > 1
        if vector:
            text = f"{name}[{place or '()'}]"
            if buffer.dtype.lanes > 1 and e.indices and e.indices[-1].dtype.lanes > 1:
                text += ".reshape(-1)"
        elif dtype.is_int or dtype.is_bool:
            text = f"g_{name}({place})"
        else:
            text = f"{name}[{place or '()'}]"
        if is_small_float(dtype):
            text = f"{self.const(numbers.decode_table(dtype.element))}[{text}]"
        elif dtype.is_int and dtype.bits < 8:
            text = f"{self.helper(numbers.from_storage)}({text}, {self.const(dtype)})"
        elif vector and not any(i.dtype.lanes > 1 for i in e.indices):
            text += ".copy()"
        if not self.check:
            return text
        site, values = self.site("read", buffer)
        guards = self._guards(buffer, texts, "read", site, values, vector)
        if conditions:
            index = self._again(e.indices)
            fail = f"{self.helper(memory.out_of_bounds)}({site}, {index}, {name}.shape, {values})"
            guarded = " and ".join([*conditions, *guards])
            return f"({text} if {guarded} else {fail})"
        return f"({text} if {' and '.join(guards)} else None)" if guards else text

    def _again(self, indices: tuple[Any, ...]) -> str:
        """The indices once more, for the message of a fault."""
        saved, self.check = self.check, False
        text = self._tuple(indices)
        self.check = saved
        return text

    def _store(self, s: S.BufferStore) -> None:
        buffer = s.buffer
        name, _ = self._view(buffer)
        texts, conditions = self._indices(buffer, s.indices)
        value = self.expr(s.value)
        if is_small_float(buffer.dtype):
            value = f"{self.helper(numbers.encode)}({value}, {self.const(buffer.dtype.element)})"
        place = ", ".join(texts) or "()"
        if buffer.dtype.lanes > 1 and s.indices[-1].dtype.lanes > 1:
            value = f"({value}).reshape(-1, {buffer.dtype.lanes})"
        if self.check:
            held = self.fresh("w")
            self.emit(f"{held} = {value}")  # the value is read before the element is written
            value = held
            site, values = self.site("write", buffer)
            if conditions:
                index = self._again(s.indices)
                self.emit(f"if not ({' and '.join(conditions)}):")
                self.emit(f"    {self.helper(memory.out_of_bounds)}({site}, {index}, {name}.shape, {values})")
            for guard in self._guards(buffer, texts, "write", site, values, False):
                self.emit(guard)
            if buffer.data in self.shadows:
                self.emit(f"u_{name}[{place}] = True")
        self.emit(f"{name}[{place}] = {value}")

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
        self._loop(s.loop_var, s.min, s.extent, s.body, s.kind, s.thread)

    def _loop(self, var: E.Var, low: Any, extent: Any, body: S.Stmt, kind: str, thread: str = "") -> None:
        first, b0 = self.value(low)
        count, b1 = self.value(extent)
        if self.nest >= _MAX_NEST:
            self._outlined(lambda: self._loop(var, low, extent, body, kind, thread))
            return
        name = self.variable(var, (b0[0], max(b0[0], b0[1] + b1[1] - 1)))
        now, threads, sync = self.now, self.threads, self.sync_matters
        tracked = self.concurrent and kind in _CONCURRENT
        if thread:
            self.threads = {**threads, thread: name}
            single = isinstance(extent, E.IntImm) and extent.value == 1
            self.sync_matters = sync or (thread.startswith("threadIdx") and not single)
        if tracked:
            instance = self.fresh("run")
            self.emit(f"{instance} = races.enter()")
        stop = count if first == "0" else f"{first}, {first} + {count}"
        self.emit(f"for {name} in range({stop}):")
        if tracked:
            self.now = self.fresh("now")
            self.emit(f"    {self.now} = races.step({now}, {instance}, {var.name!r}, {name})")
        self.context.append((name, var.name, False))
        self.nest += 1
        exempt = self.exempt
        if thread and self.concurrent:
            self.exempt = exempt | _synchronised(body)
        self.body(body)
        self.exempt = exempt
        self.nest -= 1
        self.context.pop()
        self.now, self.threads, self.sync_matters = now, threads, sync

    def _outlined(self, emit: Any) -> None:
        """What ``emit`` writes, in an inner function."""
        name = self.fresh("part")
        self.emit(f"def {name}():")
        nest, self.nest = self.nest, 0
        indent, self.indent = self.indent, self.indent + 1
        emit()
        self.nest, self.indent = nest, indent
        self.emit(f"{name}()")

    def _same_thread(self, thread: str, var: E.Var, body: S.Stmt) -> bool:
        """A second binding of a thread axis inside the first is the same thread, except around cooperative copies into
        shared memory, which are run for all threads (as the barrier after them would make visible). Every loop of
        virtual threads is its own."""
        outer = self.threads.get(thread)
        if outer is None or thread.startswith("vthread"):
            return False
        stores = [item for item in walk(body) if isinstance(item, S.BufferStore)]
        if stores and all(item.buffer.scope.startswith("shared") for item in stores):
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
        self.emit(f"if {self.expr(s.condition)}:")
        self.body(s.then_case)
        if s.else_case is not None:
            self.emit("else:")
            self.body(s.else_case)

    def _let(self, s: S.LetStmt) -> None:
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
            if e.op in ("continue_loop", "break_loop"):
                self.emit(e.op.removesuffix("_loop"))
                return
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
        data = np.ascontiguousarray(s.data).reshape(-1)
        if data.dtype != storage_dtype(s.dtype):
            data = data.astype(storage_dtype(s.dtype))
        name = self.memories[s.buffer_var] = self.fresh(f"p_{identifier(s.buffer_var.name)}_")
        self.emit(f"{name} = {self.const(data)}")
        self._memory_records(s.buffer_var, name, None)
        self._views_of(s.buffer_var)
        self.statement(s.body)

    def _decl_buffer(self, s: S.DeclBuffer) -> None:
        if s.buffer.data in self.memories:
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
        values = [self.value(v) if v.dtype.is_int else (self.expr(v), (0, 1)) for v in s.iter_values]
        for iter_var, (text, bounds) in zip(block.iter_vars, values):
            name = self.variable(iter_var.var, bounds)
            self.emit(f"{name} = {text}")
        guarded = not E.is_const(s.predicate, 1)
        if guarded:
            self.emit(f"if {self.expr(s.predicate)}:")
            self.indent += 1
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
        if self.check:  # from here on the iterator is in its domain
            self.bounds[iter_var.var] = (max(bounds[0], b0[0]), min(bounds[1], b0[1] + b1[1] - 1))

    def _block_body(self, s: S.BlockRealize) -> None:
        block = s.block
        for buffer in block.alloc_buffers:
            self.allocate(buffer)
        if self.concurrent and any(v.iter_type == "reduce" for v in block.iter_vars):
            bound = {v for iv, e in zip(block.iter_vars, s.iter_values) if iv.iter_type == "reduce" for v in walk(e)}
            if any(self.names.get(v) in self.threads.values() for v in bound if isinstance(v, E.Var)):
                # a reduction across threads: lowering combines the partial results, no race
                self.exempt = self.exempt | {r.buffer for r in block.writes}
        if self.regions and block.name != "root":
            self.own = set(block.alloc_buffers)
            self.boxes = {}
            for what, regions in (("read", block.reads), ("write", block.writes)):
                for buffer in dict.fromkeys(r.buffer for r in regions):
                    boxes = ", ".join(self._box(r) for r in regions if r.buffer is buffer)
                    name = self.fresh("box")
                    self.emit(f"{name} = [{boxes}]")
                    self.boxes[buffer, what] = name
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
        for axis, (size, stride) in enumerate(zip(buffer.shape, (*buffer.strides, *[None] * buffer.ndim))):
            if isinstance(size, E.Var) and size not in self.names:
                self.emit(f"{self.variable(size)} = {name}.shape[{axis}]")
            if isinstance(stride, E.Var) and stride not in self.names:
                self.emit(f"{self.variable(stride)} = {name}.strides[{axis}] // {lanes}")
        offset = buffer.elem_offset
        if isinstance(offset, E.Var) and offset not in self.names:
            self.emit(f"{self.variable(offset)} = {self.helper(_element_offset)}({data}, {name}, {lanes})")
        self.emit(f"{self.helper(_same_shape)}({name}, {self._tuple(buffer.shape)}, {buffer.name!r})")
        self.memories[buffer.data] = data
        if source.data in self.shadows:
            self.shadows.add(buffer.data)
            self.emit(f"u_{name} = {part}(u_{outer}, {begins}, {extents}, {buffer.ndim}, {buffer.name!r})")
        self.own = self.own | {buffer}
        self._bind_view(buffer, name)

    def _block(self, s: S.Block) -> None:
        self._block_realize(S.BlockRealize((), E.TRUE, s))

    def call_function(self, e: E.Call) -> str:
        from .executor import call_in_module

        args = ", ".join(self.argument(a) for a in e.args[1:])
        tail = "," * bool(args)
        return f"{self.helper(call_in_module)}({string_arg(e.args[0])!r}, {self.const(e.dtype)}, ({args}{tail}))"


def _synchronised(body: S.Stmt) -> set[Buffer]:
    """Buffers whose sharing between threads is not a race: barriers are put in for shared memory by lowering, and
    every thread has its own copy of the faster scopes."""
    return {item for item in walk(body) if isinstance(item, Buffer) and item.scope not in ("global", "")}


def _all_within(index: np.ndarray, size: int) -> bool:
    return bool(index.min() >= 0 and index.max() < size)


def _outside_domain(site: Any, name: str, value: int, low: int, end: int, values: tuple[Any, ...]) -> None:
    site.fail(f"block iterator {name}={value} is outside its domain [{low}, {end})", values)


def _from_element(data: np.ndarray, array: np.ndarray, index: tuple[int, ...]) -> np.ndarray:
    offset = array.ctypes.data - data.ctypes.data + sum(i * s for i, s in zip(index, array.strides))
    return data[offset // data.itemsize :]


def _element_offset(data: np.ndarray, array: np.ndarray, size: int) -> int:
    return (array.ctypes.data - data.ctypes.data) // size


def _same_shape(array: np.ndarray, shape: tuple[int, ...], name: str) -> None:
    if array.shape[: len(shape)] != shape:
        raise RunError(f"match_buffer `{name}` is declared with shape {shape}; its source region has {array.shape}")


_STATEMENTS: dict[type, Any] = {
    S.BufferStore: Compiler._store, S.For: Compiler._for, S.While: Compiler._while, S.IfThenElse: Compiler._if,
    S.SeqStmt: Compiler._seq, S.LetStmt: Compiler._let, S.AssertStmt: Compiler._assert,
    S.Evaluate: Compiler._evaluate, S.AttrStmt: Compiler._attr, S.Allocate: Compiler._allocate,
    S.AllocateConst: Compiler._allocate_const, S.DeclBuffer: Compiler._decl_buffer,
    S.BufferRealize: Compiler._realize, S.Block: Compiler._block, S.BlockRealize: Compiler._block_realize,
}  # fmt: skip
