"""Memory in the compiled program: allocation, views, loads and stores with their checks."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import expr as E
from .. import stmt as S
from ..aliases import shares_memory
from ..buffer import Buffer
from ..dtype import DType
from ..errors import RunError
from . import memory, numbers
from .expressions import Bounds, Expressions, identifier
from .numbers import is_small_float


class MemoryAccess(Expressions):
    """Expressions, and the program's memory. The subclass sets what must be known of the whole function first."""

    def __init__(self, check: bool):
        super().__init__()
        self.check = check
        self.lines: list[str] = []
        self.indent = 1
        self.views: dict[Buffer, str] = {}
        self.memories: dict[E.Var, str] = {}
        self.shadows: set[E.Var] = set()
        self.context: list[tuple[str, str, bool]] = []  # (Python name, user's name, whether a block iterator)
        self.span: Any = None
        self.block: S.Block | None = None
        self.now = "0"
        self.boxes: dict[tuple[Buffer, str], str] | None = None
        self.own: set[Buffer] = set()
        self.exempt: set[Buffer] = set()
        self.concurrent = False
        self.mixed: set[E.Var] = set()
        self.escaping: set[E.Var] = set()
        self.shared_writes: set[E.Var] = set()
        self.overlapping: set[E.Var] = set()  # memory that may be one: it has one race tracker
        self.trackers: dict[E.Var, str] = {}
        self.unit = 0  # the bytes of the least element of these, if there are others
        self.undeclared: dict[E.Var, list[Buffer]] = {}

    # ------------------------------------------------------------------ text

    def emit(self, line: str) -> None:
        self.lines.append("    " * self.indent + line)

    def variable(self, var: E.Var, bounds: Bounds | None = None) -> str:
        name = self.names[var] = self.fresh(f"{identifier(var.name)}_")
        if bounds is not None:
            self.bounds[var] = bounds
        return name

    def site(self, what: str, buffer: Buffer | None) -> tuple[str, str]:
        """Source names of an error's ``Site`` and of the tuple of values of the variables in scope."""
        names = tuple((user, is_iter) for _, user, is_iter in self.context)
        block = "" if self.block is None or self.block.name == "root" else self.block.name
        values = ", ".join(python for python, _, _ in self.context)
        return self.const(memory.Site(what, buffer, self.span, block, names), "site"), f"({values}{',' * bool(values)})"

    # ------------------------------------------------------------------ memory

    def _memory_records(self, data: E.Var, name: str, count: str | None) -> None:
        """The records of a piece of memory: which elements are written (``count`` new ones), and the race tracker."""
        if self.check and count is not None and data not in self.mixed and data not in self.escaping:
            self.shadows.add(data)
            self.emit(f"u_{name} = {self.helper(np.zeros)}({count}, {self.helper(np.bool_)})")
        if self.concurrent and data in self.shared_writes:
            known = self.trackers.get(data, f"{self.helper(memory.Tracker)}(races)")
            self.emit(f"t_{name} = {known}")
            if data in self.overlapping:
                self.trackers.update(dict.fromkeys(self.overlapping, f"t_{name}"))

    def _views_of(self, data: E.Var) -> None:
        for buffer in self.undeclared.get(data, ()):
            self.declare(buffer)

    def declare(self, buffer: Buffer) -> None:
        """A view of the memory behind ``buffer.data``."""
        if not shares_memory(buffer, self.memories):
            raise RunError(f"buffer `{buffer.name}` uses the undefined pointer `{buffer.data.name}`")
        data = self.memories[buffer.data]
        name = self.fresh(f"v_{identifier(buffer.name)}_")
        shape = self._tuple(buffer.shape)
        strides = self._tuple(buffer.strides) if buffer.strides else "None"
        offset = "0" if buffer.elem_offset is None else self.expr(buffer.elem_offset)
        dtype = self.const(buffer.dtype)
        make = self.helper(memory.view)
        self.emit(f"{name} = {make}({data}, {dtype}, {shape}, {strides}, {offset}, {buffer.name!r})")
        if shares_memory(buffer, self.shadows):
            scalar = self.const(DType("bool"))
            self.emit(f"u_{name} = {make}(u_{data}, {scalar}, {shape}, {strides}, {offset}, {buffer.name!r})")
        self._bind_view(buffer, name)

    def _bind_view(self, buffer: Buffer, name: str) -> None:
        self.views[buffer] = name
        self.emit(f"g_{name} = {name}.item")
        data = self.memories[buffer.data]
        if self.concurrent and shares_memory(buffer, self.shared_writes):
            self.emit(f"r_{name} = t_{data}.on({name}, {self.unit})")
            if not self.unit:
                self.emit(f"a_{name}, s_{name} = r_{name}.base, r_{name}.strides")

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
                raise RunError(f"pointer `{e.name}` is undefined")
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
            raise RunError(f"buffer `{buffer.name}` is not declared")
        return name, self.memories[buffer.data]

    # ------------------------------------------------------------------ accesses

    def _indices(self, buffer: Buffer, indices: tuple[Any, ...]) -> tuple[list[str], list[str]]:
        """Sources of the indices (each evaluated once), and the conditions that they are in bounds."""
        name, _ = self._view(buffer)
        texts, conditions = [], []
        if len(indices) != buffer.ndim:
            raise RunError(f"buffer `{buffer.name}` has {buffer.ndim} axes, accessed with {len(indices)} indices")
        for axis, (index, size) in enumerate(zip(indices, buffer.shape)):
            if index.dtype.lanes > 1:
                text, low, high = self.expr(index), -1, -1  # a vector's bounds are unknown
            elif index.dtype.is_int:
                text, (low, high) = self.index(index)
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

    def _guards(self, access: Any, texts: list[str], what: str, site: str, values: str, vector: bool) -> list[str]:
        """Further checks of an access in checked mode: expressions that are true or raise."""
        buffer = access.buffer
        name, data = self._view(buffer)
        index = f"({', '.join(texts)}{',' * (len(texts) == 1)})"
        guards = []
        if self.boxes is not None and buffer not in self.own:
            boxes = self.boxes.get((buffer, what), "[]")
            guards.append(f"{self.helper(memory.outside_region)}({site}, {boxes}, {index}, {values})")
        if what == "read" and shares_memory(buffer, self.shadows):
            place = ", ".join(texts) or "()"
            test = f"u_{name}[{place}]" + (".all()" if vector else "")
            guards.append(f"({test} or {self.helper(memory.uninitialised)}({site}, {index}, {values}))")
        if self.now != "0" and shares_memory(buffer, self.shared_writes) and buffer not in self.exempt:
            told = f"r_{name}.{what}({index}, {self.now}, {site}, {values})"
            if not self.unit and all(i.dtype.lanes == 1 for i in access.indices):
                key = " + ".join([f"a_{name}", *(f"({text}) * s_{name}[{axis}]" for axis, text in enumerate(texts))])
                told = f"(t_{data}.{what}({key}, {self.now}, {site}) or {told})"
            guards.append(told)
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
        guards = self._guards(e, texts, "read", site, values, vector)
        if conditions:
            index = self._again(e.indices)
            fail = f"{self.helper(memory.out_of_bounds)}({site}, {index}, {name}.shape, {values})"
            guarded = " and ".join([*conditions, *guards])
            return f"({text} if {guarded} else {fail})"
        return f"({text} if {' and '.join(guards)} else None)" if guards else text

    def _again(self, indices: tuple[Any, ...]) -> str:
        """Source of the indices for the error message, without checks."""
        saved, self.check = self.check, False
        texts = [self.index(i)[0] if i.dtype.is_int and i.dtype.lanes == 1 else self.expr(i) for i in indices]
        self.check = saved
        return f"({', '.join(texts)},)"

    def store(self, s: S.BufferStore) -> None:
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
            self.emit(f"{held} = {value}")  # the value is evaluated before the element is written
            value = held
            site, values = self.site("write", buffer)
            if conditions:
                index = self._again(s.indices)
                self.emit(f"if not ({' and '.join(conditions)}):")
                self.emit(f"    {self.helper(memory.out_of_bounds)}({site}, {index}, {name}.shape, {values})")
            for guard in self._guards(s, texts, "write", site, values, False):
                self.emit(guard)
            if shares_memory(buffer, self.shadows):
                self.emit(f"u_{name}[{place}] = True")
        self.emit(f"{name}[{place}] = {value}")


def _all_within(index: np.ndarray, size: int) -> bool:
    return bool(index.min() >= 0 and index.max() < size)


def _from_element(data: np.ndarray, array: np.ndarray, index: tuple[int, ...]) -> np.ndarray:
    offset = array.ctypes.data - data.ctypes.data + sum(i * s for i, s in zip(index, array.strides))
    return data[offset // data.itemsize :]
