"""Statements of a kernel to the source of a Python generator that runs many threads at once.

The generator yields 1 where its threads wait at a barrier of the block, 2 where they wait for something else. In stepping
mode it also yields 0 after every statement, so that a scheduler can run warps in any order.
"""

from __future__ import annotations

import math
from typing import Any

from ... import expr as E
from ... import stmt as S
from ...analysis.effects import effects
from ...buffer import Buffer
from ...dtype import DType
from ...errors import RunError
from ...function import PrimFunc
from ...levels import ends_with_launch, is_fragment, is_in_registers, is_launch_axis, is_shared
from ...op import string_arg
from ...script.print_stmt import Printer
from ...visit import walk
from ..arguments import layout_variables
from ..numbers import constant_data, storage_dtype
from . import intrinsics
from .lanes import EMPTY, Engines, narrow
from .report import Site
from .thread_values import Values, identifier
from .turns import diverge

_TYPED = ("ptx_cp_async", "ptx_cp_async_bulk", "ptx_ldmatrix")  # their offsets count elements of the call's type
_MAX_NEST = 15  # CPython allows 20 nested blocks in one function
_MAX_ROUNDS = 1_000_000  # limit of a while loop: a thread that waits for another block would never end


class _Numbered(Printer):
    """A printer that records the line of every statement."""

    def __init__(self) -> None:
        super().__init__()
        self.where: dict[Any, int] = {}

    def line(self, text: str, item: Any = None) -> None:
        self.flush()
        if item is not None:
            self.where.setdefault(item, len(self.lines) + 1)
        super().line(text, item)


def numbered(func: PrimFunc) -> tuple[list[str], dict[Any, int]]:
    """The lines of the function's script, and the line (from 1) of every statement."""
    from ...script.printer import _program_lines

    printer = _Numbered()
    return _program_lines(func, printer), printer.where


class Survey:
    """Facts about each pointer of a kernel, collected once."""

    def __init__(self, func: PrimFunc):
        self.written = effects(func.body).writes
        self.sizes: dict[E.Var, set[int]] = {}
        self.types: dict[E.Var, set[DType]] = {}
        self.pointed: dict[E.Var, set[DType]] = {}
        self.undeclared: dict[E.Var, list[Buffer]] = {}
        self.shapes: dict[E.Var, tuple[int, int, int]] = {}
        self.offsets: set[E.Var] = set()
        self.warp_barriers = False
        self.shared_bytes = 0  # per block, if the extents are constants
        self.cluster = tuple(int(n) for n in func.attrs.get("tir.cluster") or (1, 1, 1))
        self.engines = Engines(used=math.prod(self.cluster) > 1)
        declared: set[Buffer] = set(func.buffer_map.values())
        used: dict[Buffer, None] = {}
        allocated: dict[E.Var, DType] = {}
        for p in func.params:
            if p.dtype.is_handle and p.pointer_dtype is not None:
                self._type(p, p.pointer_dtype)
        for item in walk(func.body):
            if isinstance(item, Buffer):
                self._type(item.data, item.dtype)
                if item.elem_offset is not None or item.strides:
                    self.offsets.add(item.data)
            elif isinstance(item, (E.BufferLoad, S.BufferStore)):
                used.setdefault(item.buffer)
            elif isinstance(item, S.DeclBuffer):
                declared.add(item.buffer)
            elif isinstance(item, S.Allocate):
                allocated[item.buffer_var] = item.dtype
                if is_shared(item.buffer_var.scope):
                    counts = [e.value for e in item.extents if isinstance(e, E.IntImm)]
                    self.shared_bytes += math.prod(counts) * item.dtype.bytes
            elif isinstance(item, E.Call):
                self._call(item)
        for var, dtype in allocated.items():  # an arena of bytes has the granule of its views
            if var not in self.types:
                self._type(var, dtype)
        for buffer in used:
            if buffer not in declared:
                self.undeclared.setdefault(buffer.data, []).append(buffer)

    def _type(self, var: E.Var, dtype: DType) -> None:
        self.types.setdefault(var, set()).add(dtype)
        self.sizes.setdefault(var, set()).add(storage_dtype(dtype).itemsize)

    def _call(self, e: E.Call) -> None:
        if e.op == "create_barriers":
            if self.engines.transactions:
                raise RunError("a kernel makes its transaction barriers with one create_barriers: there are two")
            self.engines.transactions = intrinsics.number(e.args[0], "the number of barriers")
        self.engines.products |= e.op in ("ptx_wgmma", "ptx_setmaxnreg")
        self.engines.used |= e.op in intrinsics.ENGINES
        if e.op == "tvm_storage_sync" and string_arg(e.args[0]) == "warp":
            self.warp_barriers = True
        if e.op == "call_extern" and string_arg(e.args[0]) == "__syncwarp":
            self.warp_barriers = True
        for position, a in enumerate(e.args):
            if isinstance(a, E.Var) and a.dtype.is_handle:
                dtype = e.dtype if e.op in _TYPED else e.args[0].dtype if e.op == "tvm_access_ptr" else a.pointer_dtype
                if dtype is not None:
                    self._type(a, dtype.element)
                    self.pointed.setdefault(a, set()).add(dtype.element)
                else:
                    self.pointed.setdefault(a, set())
                if e.op in ("tvm_load_matrix_sync", "tvm_fill_fragment") and position == 0:
                    self.shapes[a] = tuple(int(x) for x in e.args[1:4])  # type: ignore[assignment]

    def granule(self, var: E.Var) -> int:
        return min(self.sizes.get(var, {1}))


class Compiler(Values):
    """Compiles one kernel: ``source`` is a generator function ``run(c, memories, scalars)``."""

    def __init__(self, func: PrimFunc, stepping: bool, traced: bool):
        super().__init__()
        self.func = func
        self.stepping = stepping
        self.traced = traced
        self.survey = Survey(func)
        self.listing, self.where = numbered(func)
        self.sites: list[Site] = []
        self.site_names: dict[Any, str] = {}
        self.views: dict[Buffer, str] = {}
        self.memories: dict[E.Var, str] = {}
        self.pointers: dict[tuple[E.Var, DType | None], str] = {}
        self.visible: dict[str, str] = {}
        self.nest = 0
        self.line = 1
        self.span: Any = None
        self.axes: dict[str, list[Any]] = {}

    # ------------------------------------------------------------------ places

    def site(self, what: str, buffer: str = "", run: bool = True) -> str:
        key = (self.line, what, buffer, self.span, run)
        name = self.site_names.get(key)
        if name is None:
            text = self.listing[self.line - 1].strip() if self.line <= len(self.listing) else ""
            made = Site(len(self.sites), self.line, text, self.span, what, buffer, run)
            self.sites.append(made)
            name = self.site_names[key] = self.const(made, "site")
        return name

    # ------------------------------------------------------------------ the function

    def compile(self) -> str:
        func = self.func
        for p in func.params:
            buffer = func.buffer_map.get(p)
            if buffer is not None:
                for var in layout_variables(buffer):
                    if var not in self.names:
                        self._scalar(var)
            elif not p.dtype.is_handle:
                self._scalar(p)
        for p in func.params:
            buffer = func.buffer_map.get(p)
            var = p if buffer is None else buffer.data
            if buffer is None and not p.dtype.is_handle or var in self.memories:
                continue
            name = self.memories[var] = self.fresh(f"p_{identifier(var.name)}_")
            self.emit(f"{name} = memories[{self.const(var)}]")
            self._point(var, var.pointer_dtype)
        for p in func.params:
            buffer = func.buffer_map.get(p)
            if buffer is not None:
                self._declare(buffer)
        self.statement(func.body)
        return "\n".join(["def run(c, memories, scalars):", "    if False:", "        yield 0", *self.lines])

    def _scalar(self, var: E.Var) -> None:
        name = self.names[var] = self.fresh(f"{identifier(var.name)}_")
        self.emit(f"{name} = scalars[{self.const(var)}]")
        self.visible[var.name] = name

    def _declare(self, buffer: Buffer) -> None:
        memory = self.memories.get(buffer.data)
        if memory is None:
            raise RunError(f"buffer `{buffer.name}` uses the undefined pointer `{buffer.data.name}`")
        name = self.views[buffer] = self.fresh(f"v_{identifier(buffer.name)}_")
        shape = ", ".join(self.text(s) for s in buffer.shape)
        offset = "0" if buffer.elem_offset is None else self.text(buffer.elem_offset)
        self.emit(f"{name} = c.view({memory}, {self.const(buffer.dtype)}, ({shape},), {offset}, {buffer.name!r})")

    def _point(self, var: E.Var, dtype: DType | None) -> None:
        """Views for pointers to ``var`` that are passed to operators, and for its undeclared buffers."""
        for kind in {dtype, *self.survey.pointed.get(var, ())} - {None} if var in self.survey.pointed else ():
            assert kind is not None
            name = self.pointers[var, kind] = self.fresh("d_")
            self.emit(f"{name} = c.view({self.memories[var]}, {self.const(kind)}, None, 0, {var.name!r})")
            if kind is dtype or (var, None) not in self.pointers:
                self.pointers[var, None] = name
        for buffer in self.survey.undeclared.get(var, ()):
            if buffer not in self.views:
                self._declare(buffer)

    # ------------------------------------------------------------------ statements

    def statement(self, s: S.Stmt) -> None:
        outer = self.line, self.span
        self.line = self.where.get(s, self.line)
        if s.span is not None:
            self.span = s.span
        _STATEMENTS[type(s)](self, s)
        self.line, self.span = outer

    def body(self, s: S.Stmt) -> None:
        self.indent += 1
        before, visible = len(self.lines), dict(self.visible)
        self.statement(s)
        if len(self.lines) == before:
            self.emit("pass")
        self.visible = visible
        self.indent -= 1

    def before(self) -> None:
        """Emit the call of the trace hook before a statement with an effect."""
        if self.traced:
            variables = ", ".join(f"{user!r}: {python}" for user, python in self.visible.items())
            views = ", ".join(f"{b.name!r}: {v}" for b, v in self.views.items())
            self.emit(f"c.launch.hook(c, {self.mask}, {self.site('')}, {{{variables}}}, {{{views}}})")

    def after(self) -> None:
        if self.stepping:
            self.emit("yield 0")

    def _seq(self, s: S.SeqStmt) -> None:
        for item in s.stmts:
            self.statement(item)

    def _for(self, s: S.For) -> None:
        if s.thread:
            self._axis(s.thread, s.loop_var, s.extent)
            self.statement(s.body)
            return
        if self.nest >= _MAX_NEST:
            name = self.fresh("inner")
            self.emit(f"def {name}():")
            self.indent += 1
            self.emit("if False:")
            self.emit("    yield 0")
            nest, self.nest = self.nest, 0
            self._for(s)
            self.nest = nest
            self.indent -= 1
            self.emit(f"yield from {name}()")
            return
        self.nest += 1
        (low, va), (extent, vb) = self.value(s.min), self.value(s.extent)
        name = self.names[s.loop_var] = self.fresh(f"{identifier(s.loop_var.name)}_")
        shown = self.visible.get(s.loop_var.name)
        self.visible[s.loop_var.name] = name
        if va or vb:
            self._varying_for(s, name, low, extent)
        else:
            stop = extent if low == "0" else f"{low}, {low} + {extent}"
            self.emit(f"for {name} in range({stop}):")
            self.body(s.body)
        if shown is None:
            del self.visible[s.loop_var.name]
        else:
            self.visible[s.loop_var.name] = shown
        self.nest -= 1

    def _varying_for(self, s: S.For, name: str, low: str, extent: str) -> None:
        """A loop whose bounds differ between threads: each round runs the threads with an iteration left."""
        self.varying.add(s.loop_var)
        stop, outer, mask = self.fresh("stop"), self.mask, self.fresh("m")
        kind = self.const(storage_dtype(s.loop_var.dtype))
        self.emit(f"{name} = c.spread({low}).astype({kind})")
        self.emit(f"{stop} = {name} + {extent}")
        self.emit("while True:")
        self.indent += 1
        self.emit(f"{mask} = {self.helper(narrow)}({outer}, {name} < {stop})")
        self.emit(f"if {mask} is {self.const(EMPTY)}:")
        self.emit("    break")
        self.mask = mask
        self.indent -= 1
        self.body(s.body)
        self.emit(f"    {name} = {name} + 1")
        self.mask = outer

    def _while(self, s: S.While) -> None:
        self.nest += 1
        outer, mask, rounds = self.mask, self.fresh("m"), self.fresh("rounds")
        self.emit(f"{mask}, {rounds} = {outer}, 0")
        self.emit("while True:")
        self.indent += 1
        self.mask = mask
        self.emit(f"{rounds} += 1")
        self.emit(f"if {rounds} > {_MAX_ROUNDS}:")
        self.emit(f"    {self.helper(intrinsics.endless)}({self.site('while')}, {_MAX_ROUNDS})")
        text, varies = self.value(s.condition)
        if varies:
            self.emit(f"{mask} = {self.helper(narrow)}({mask}, {text})")
            self.emit(f"if {mask} is {self.const(EMPTY)}:")
        else:
            self.emit(f"if not {text}:")
        self.emit("    break")
        self.indent -= 1
        self.body(s.body)
        self.mask = outer
        self.nest -= 1

    def _if(self, s: S.IfThenElse) -> None:
        text, varies = self.value(s.condition)
        if not varies:
            self.emit(f"if {text}:")
            self.body(s.then_case)
            if s.else_case is not None:
                self.emit("else:")
                self.body(s.else_case)
            return
        condition = self.keep(text, "t") if s.else_case is not None else text
        if s.else_case is not None and any(isinstance(n, E.Call) and n.op in intrinsics.WAITS for n in walk(s)):
            self._both((s.then_case, condition), (s.else_case, f"~{condition}"))
            return
        outer = self.mask
        for branch, test in ((s.then_case, condition), (s.else_case, f"~{condition}")):
            if branch is not None:
                self.mask = self.keep(f"{self.helper(narrow)}({outer}, {test})", "m")
                self.emit(f"if {self.mask} is not {self.const(EMPTY)}:")
                self.body(branch)
                self.mask = outer

    def _both(self, *cases: tuple[S.Stmt, str]) -> None:
        """Branches of which one may wait for the other: they run in turn where threads of a chunk take both."""
        outer, nest, branches = self.mask, self.nest, []
        for branch, test in cases:
            self.mask, self.nest = self.keep(f"{self.helper(narrow)}({outer}, {test})", "m"), 0
            name = self.fresh("branch")
            self.emit(f"def {name}():")
            self.emit("    if False:")
            self.emit("        yield 0")
            self.body(branch)
            branches.append(f"*([{name}()] if {self.mask} is not {self.const(EMPTY)} else [])")
        self.mask, self.nest = outer, nest
        self.emit(f"yield from {self.helper(diverge)}(c.launch, {', '.join(branches)})")

    def _let(self, s: S.LetStmt) -> None:
        if s.var.dtype.is_handle:
            raise RunError(f"the simulator does not follow the pointer `{s.var.name}` bound by a let")
        self.bind(s.var, s.value)
        self.visible[s.var.name] = self.names[s.var]
        self.statement(s.body)

    def _assert(self, s: S.AssertStmt) -> None:
        self.require(s.condition, string_arg(s.message))

    def require(self, condition: Any, message: str) -> None:
        self.before()
        text, _ = self.value(condition)
        self.emit(f"{self.helper(intrinsics.require)}(c, {self.mask}, {self.site('assert')}, {text}, {message!r})")

    def _attr(self, s: S.AttrStmt) -> None:
        if s.attr_key == "thread_extent":
            self._axis(s.node.thread_tag, s.node.var, s.value)
        elif s.attr_key == "virtual_thread":
            raise RunError("the simulator takes kernels after lowering: a virtual thread is left in it")
        self.statement(s.body)

    def _axis(self, tag: str, var: E.Var, extent: Any) -> None:
        if not is_launch_axis(tag):
            raise RunError(f"the simulator takes lowered kernels, and knows no thread axis {tag!r}")
        self.axes.setdefault(tag, []).append(extent)
        name = self.names[var] = self.fresh(f"{identifier(var.name)}_")
        self.varying.add(var)
        kind = self.const(storage_dtype(var.dtype))
        self.emit(f"{name} = c.axis({tag!r}).astype({kind})")
        self.visible[var.name] = name

    def _allocate(self, s: S.Allocate) -> None:
        var = s.buffer_var
        scope = var.scope or "global"
        count = " * ".join(self.text(x) for x in s.extents) or "1"
        name = self.memories[var] = self.fresh(f"p_{identifier(var.name)}_")
        kinds = self.survey.types.get(var, set()) | {s.dtype}
        one_type = len({k.element for k in kinds}) == 1 and var not in self.survey.offsets
        private = is_in_registers(scope) or not ends_with_launch(scope)
        if private and one_type:
            self.emit(f"{name} = c.local({count}, {self.const(s.dtype)}, {var.name!r})")
        else:
            key = self.const(s)
            size = f"({count}) * {storage_dtype(s.dtype).itemsize * s.dtype.lanes}"
            where = "local" if private else scope
            self.emit(f"{name} = c.allocate({key}, {var.name!r}, {where!r}, {size}, {self.survey.granule(var)})")
        self._point(var, s.dtype.element)
        self.statement(s.body)

    def _allocate_const(self, s: S.AllocateConst) -> None:
        name = self.memories[s.buffer_var] = self.fresh(f"p_{identifier(s.buffer_var.name)}_")
        granule = self.survey.granule(s.buffer_var)
        self.emit(
            f"{name} = c.constant({s.buffer_var.name!r}, {self.const(constant_data(s.data, s.dtype))}, {granule})"
        )
        self._point(s.buffer_var, s.dtype.element)
        self.statement(s.body)

    def _decl(self, s: S.DeclBuffer) -> None:
        self._declare(s.buffer)
        self.statement(s.body)

    # ------------------------------------------------------------------ accesses

    def place(self, buffer: Buffer, indices: tuple[Any, ...], site: str) -> tuple[str, str, str]:
        """Sources of the view, element and mask of an access."""
        view = self.views.get(buffer)
        if view is None:
            raise RunError(f"buffer `{buffer.name}` is not declared")
        if len(indices) == 1 and not buffer.strides:
            index, varies = self.value(indices[0])
            if not varies and indices[0].dtype.lanes > 1:
                index = f"c.each({index})"
            if buffer.dtype.lanes > 1:
                index = f"{self.helper(intrinsics.lanes_of)}(c, {index}, {buffer.dtype.lanes})"
            return view, index, self.mask
        texts = ", ".join(self.each(i) for i in indices)
        strides = ", ".join(self.text(x) for x in buffer.strides)
        index, mask = self.fresh("x"), self.fresh("m")
        self.emit(
            f"{index}, {mask} = {self.helper(intrinsics.linear)}(c, {self.mask}, {site}, {view}, ({texts},), ({strides}))"
            if not strides
            else f"{index}, {mask} = {self.helper(intrinsics.linear)}(c, {self.mask}, {site}, {view}, ({texts},), ({strides},))"
        )
        if buffer.dtype.lanes > 1:
            index = f"{self.helper(intrinsics.lanes_of)}(c, {index}, {buffer.dtype.lanes})"
        return view, index, mask

    def _element(self, buffer: Buffer) -> None:
        if is_fragment(buffer.data.scope or buffer.scope):
            raise RunError(
                f"an element of the fragment `{buffer.name}` is accessed, in {buffer.scope} memory: which lane holds "
                "it is not defined; tensorize the block, or give the buffer another scope"
            )

    def load(self, e: E.BufferLoad) -> tuple[str, bool]:
        self._element(e.buffer)
        site = self.site("read", e.buffer.name, _is_run(e.indices))
        view, index, mask = self.place(e.buffer, e.indices, site)
        return self.keep(f"{view}.load({index}, {mask}, {site})"), True

    def _store(self, s: S.BufferStore) -> None:
        self._element(s.buffer)
        self.before()
        value = self.each(s.value)
        site = self.site("write", s.buffer.name, _is_run(s.indices))
        view, index, mask = self.place(s.buffer, s.indices, site)
        self.emit(f"{view}.store({index}, {value}, {mask}, {site})")
        self.after()

    def pointer(self, e: Any, dtype: DType | None = None, behind: Any = None) -> str:
        """Source of a pointer (to ``dtype``, if given), or of a place so many elements ``behind`` it, as a pair: view, element."""
        view, element = self._pointed(e, dtype)
        more = "0" if behind is None else self.text(behind)
        return f"({view}, {element})" if more == "0" else f"({view}, {element} + {more})"

    def _pointed(self, e: Any, dtype: DType | None) -> tuple[str, str]:
        if isinstance(e, E.Var):
            name = self.pointers.get((e, dtype)) or self.pointers.get((e, None))
            if name is None:
                raise RunError(f"pointer `{e.name}` points to undefined memory")
            return name, "0"
        if isinstance(e, E.Call) and e.op == "address_of":
            load = e.args[0]
            site = self.site("address", load.buffer.name)
            view, index, _ = self.place(load.buffer, load.indices, site)
            return view, index
        if isinstance(e, E.Call) and e.op == "tvm_access_ptr":
            kind, data, offset, *_ = e.args
            name = self.pointers.get((data, kind.dtype.element)) or self.pointers.get((data, None))
            if name is None:
                raise RunError(f"pointer `{data.name}` points to undefined memory")
            return name, self.text(offset)
        raise RunError(f"the simulator cannot tell where this points: `{e!r}`")

    def atomic(self, e: E.Call) -> tuple[str, bool]:
        target = e.args[0]
        name = target.args[0].buffer.name if isinstance(target, E.Call) and target.op == "address_of" else ""
        site = self.site("atomic", name)
        call = f"{self.helper(intrinsics.atomic_add)}(c, {self.mask}, {site}, {self.pointer(target)}, {self.text(e.args[1])})"
        return self.keep(call), True

    # ------------------------------------------------------------------ effects

    def _evaluate(self, s: S.Evaluate) -> None:
        e = s.value
        if isinstance(e, E.IntImm):
            return
        self.before()
        if isinstance(e, E.Call):
            effect = intrinsics.EFFECTS.get(e.op)
            if effect is not None:
                effect(self, e)
                self.after()
                return
            if e.op == "call_extern" and string_arg(e.args[0]) in intrinsics.EXTERNS:
                intrinsics.EXTERNS[string_arg(e.args[0])](self, e)
                self.after()
                return
        self.keep(self.text(e))
        self.after()

    def _unsupported(self, s: S.Stmt) -> None:
        raise RunError(f"the simulator takes kernels after lowering: a {type(s).__name__} is left in it")


_STATEMENTS: dict[type, Any] = {
    S.SeqStmt: Compiler._seq, S.For: Compiler._for, S.While: Compiler._while, S.IfThenElse: Compiler._if,
    S.LetStmt: Compiler._let, S.AssertStmt: Compiler._assert, S.AttrStmt: Compiler._attr,
    S.Allocate: Compiler._allocate, S.AllocateConst: Compiler._allocate_const, S.DeclBuffer: Compiler._decl,
    S.BufferStore: Compiler._store, S.Evaluate: Compiler._evaluate, S.Block: Compiler._unsupported,
    S.BlockRealize: Compiler._unsupported, S.BufferRealize: Compiler._unsupported,
}  # fmt: skip


def _is_run(indices: tuple[E.Expr, ...]) -> bool:
    """Whether the form of the index makes a vector access contiguous: only then is it one wide access. Lanes with
    computed indices are accessed one by one, even if they happen to be contiguous."""
    last = indices[-1] if indices else None
    if last is None or last.dtype.lanes == 1:
        return True
    one = len(indices) == 1 and isinstance(last, E.Ramp)  # of several physical axes the address is computed
    return one and isinstance(last.stride, E.IntImm) and last.stride.value == 1
