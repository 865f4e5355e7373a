"""The functions of the kernels of a graph, scheduled; what their constants determine is computed once, when a model is made."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ..analysis.constants import CONSTANT, Foldable, places
from ..buffer import Buffer, decl_buffer
from ..canonical import canonical
from ..dtype import DType
from ..expr import IntImm
from ..function import PrimFunc
from ..interp.numbers import array_dtype
from ..names import unique_name
from ..node import frozendict
from ..target import Target
from ..te.to_primfunc import identifier
from ..transform import lower
from ..transform.use_workspace import WORKSPACE, temporaries
from ..tune import default
from ..tune.space import Env
from .building import built, naming
from .calls import memory
from .fusion import Group, group_function
from .graph import Value
from .in_place import in_place
from .memory import ALIGNMENT, Place, Plan, aligned, check_plan, plan


@dataclass(frozen=True)
class Call:
    """A call of a kernel with memory, in order."""

    kernel: str
    arguments: tuple[Place, ...]


@dataclass(frozen=True)
class _Kernel:
    """A scheduled ``program``. ``kept`` are the places of its arguments among the inputs and outputs of a group; after them come
    arrays ``made`` by the function ``maker`` of the arguments at the places ``sources``, and memory for what is ``temporary``, by elements and type."""

    name: str
    program: PrimFunc
    kept: tuple[int, ...]
    maker: str = ""
    sources: tuple[int, ...] = ()
    made: tuple[tuple[tuple[int, ...], DType], ...] = ()
    temporary: tuple[tuple[int, DType], ...] = ()

    @lru_cache(maxsize=64)  # noqa: B019
    def over(self, value: int, source: int) -> PrimFunc | None:
        """The program that writes an argument over another, which it no longer has; None if it may not. Both are places in the group."""
        if value not in self.kept or source not in self.kept:
            return None
        buffers = self.program.buffers()
        return in_place(self.program, buffers[self.kept.index(source)], buffers[self.kept.index(value)])


class Kernels:
    """Kernels of groups: groups with equal programs have one. ``makers`` compute what constants determine."""

    def __init__(self, order: Sequence[Group], constants: Iterable[Value], target: Any):
        self.functions: dict[str, PrimFunc] = {}  # of the calls
        self.makers: dict[str, PrimFunc] = {}
        self.made: dict[tuple[str, tuple[Place, ...]], tuple[Value, ...]] = {}  # results by maker and what it reads
        self.groups: dict[str, Group] = {}  # the first of each kernel and maker
        self._target = target
        self._known: dict[str, _Kernel] = {}
        fixed = set(constants)  # and what is a view of one
        for group in order:
            if group.view is not None and group.view.source in fixed:
                fixed.add(group.outputs[0])
        self._of = {group: self._kernel(group, fixed) for group in order if group.view is None}
        self._temporary = {
            group: tuple(
                Value(f"{kernel.name}_{step}_{n}", (count,), dtype) for n, (count, dtype) in enumerate(kernel.temporary)
            )
            for step, (group, kernel) in enumerate(self._of.items())
        }

    def temporaries(self, group: Group) -> tuple[Value, ...]:
        """The memory that the kernel of a group works in, apart from what it reads and makes."""
        return self._temporary.get(group, ())

    def over(self, group: Group, value: Value, source: Value) -> PrimFunc | None:
        """The kernel of a group that writes a result over an input; None if it may not."""
        values = (*group.inputs, *group.outputs)
        return self._of[group].over(values.index(value), values.index(source))

    def plan(self, order: Sequence[Group], elsewhere: Iterable[Value], state: Mapping[Value, Value]) -> Plan:
        """The memory of a model, checked. Raises ``ModelError`` as :func:`tir.graph.plan` does."""
        made = plan(order, elsewhere, self.over, state, self.temporaries)
        check_plan(made, order, self.over, self.temporaries)
        return made

    def call(self, group: Group, plan: Plan) -> Call:
        """The call that computes a group with its memory as in ``plan``."""
        kernel = self._of[group]
        values = [*group.inputs, *group.outputs]
        arguments = tuple(map(plan.place, values))
        sources = tuple(arguments[n] for n in kernel.sources)
        made = self.made.get((kernel.maker, sources), ())
        if kernel.maker and not made:
            names = [
                f"{sources[0].root.name if sources else kernel.name}_{len(self.made)}_{n}"
                for n in range(len(kernel.made))
            ]
            made = tuple(Value(name, *of) for name, of in zip(names, kernel.made))
            self.made[kernel.maker, sources] = made
        name, func, kept = kernel.name, kernel.program, kernel.kept
        for value, source in plan.replaced.items():
            if value in group.outputs and (over := self.over(group, value, source)) is not None:
                gone = values.index(source)
                name, func, kept = f"{name}_over_{gone}", over, tuple(n for n in kept if n != gone)
        self.functions[name] = func.without_attr("global_symbol")
        self.groups.setdefault(name, group)
        return Call(name, (*(arguments[n] for n in kept), *map(Place, (*made, *self.temporaries(group)))))

    def _kernel(self, group: Group, constants: Container[Value]) -> _Kernel:
        func = group_function(group.nodes, group.inputs, group.outputs)
        names = [b.name for b, v in zip(func.buffers(), group.inputs) if v in constants]
        func = func.with_attr(CONSTANT, tuple(names)) if names else func
        key = canonical(func).key
        if key not in self._known:
            taken = {*(kernel.name for kernel in self._known.values()), "main", "run"}
            name = unique_name(identifier(group.name)[:60], taken)
            self.groups[name] = group
            with naming(name, group, func, self._target):
                self._known[key] = self._scheduled(name, func)
        return self._known[key]

    def _scheduled(self, name: str, func: PrimFunc) -> _Kernel:
        scheduled = default(func, self._target).func  # pyright: ignore[reportCallIssue]
        foldable = Foldable(scheduled)
        if not foldable.makes:
            program, temporary = _with_workspace(scheduled, self._target)
            return _Kernel(name, program, places(scheduled, scheduled), temporary=temporary)
        program, maker = foldable.split()
        kept, sources = places(scheduled, program), places(scheduled, maker)
        made = tuple((_sizes(b), b.dtype) for b in foldable.makes)
        self.makers[name] = maker.without_attr("global_symbol")
        program, temporary = _with_workspace(program, self._target)
        return _Kernel(name, program, kept, name, sources, made, temporary)

    def weights(
        self, calls: Sequence[Call], constants: Mapping[Value, np.ndarray]
    ) -> tuple[np.ndarray, dict[Value, int]]:
        """The constants that kernels read in one aligned array of bytes, and the byte at which each begins."""
        makers = {v: of for of, several in self.made.items() for v in several}
        read = {place.root for call in calls for place in call.arguments}
        offsets: dict[Value, int] = {}
        total = 0
        for value in [*(v for v in constants if v in read), *makers]:
            offsets[value] = total
            total += aligned(value.nbytes)
        packed = memory(total)
        for value, begin in offsets.items():
            if value in constants:
                part(packed, begin, value)[...] = constants[value]
        if self.makers:
            module = built(self.makers, self.groups, self._target)
            for (maker, sources), several in self.made.items():
                shapes = map(_sizes, self.makers[maker].buffers())
                given = [_elements(constants[v], begin, shape) for (v, begin), shape in zip(sources, shapes)]
                given = [np.require(array, requirements=["C", "A", "W"]) for array in given]
                module[maker](*given, *(part(packed, offsets[v], v) for v in several))
        return packed, offsets


def _with_workspace(program: PrimFunc, target: Any) -> tuple[PrimFunc, tuple[tuple[int, DType], ...]]:
    """A program with parameters for its large temporaries, where a target lowers it, and their elements and types."""
    if Target.of(target).kind == "interpreter":
        return program, ()
    threads = Env.of(target).threads
    found = temporaries(next(iter(lower(program, target=target).functions.values())))
    sizes = tuple((t.elements * min(t.iterations, threads), t.allocation.dtype) for t in found)
    if not sizes:
        return program, ()
    taken = {b.name for b in program.buffers()}
    added = []
    for count, dtype in sizes:
        added.append(decl_buffer((count,), dtype, unique_name("work", taken), data_alignment=ALIGNMENT))
        taken.add(added[-1].name)
    made = program.replace(
        params=(*program.params, *(b.data for b in added)),
        buffer_map=frozendict({**program.buffer_map, **{b.data: b for b in added}}),
    )
    return made.with_attr(WORKSPACE, tuple(b.name for b in added)), sizes


def _sizes(buffer: Buffer) -> tuple[int, ...]:
    return tuple(size.value for size in buffer.shape if isinstance(size, IntImm))


def _elements(array: np.ndarray, begin: int, shape: tuple[int, ...]) -> np.ndarray:
    """The array of a shape that begins at a byte of another."""
    first = begin // array.itemsize
    return array.reshape(-1)[first : first + math.prod(shape)].reshape(shape)


def part(packed: np.ndarray, begin: int, value: Value) -> np.ndarray:
    """The array of ``value`` that begins at a byte of ``packed``."""
    return packed[begin : begin + value.nbytes].view(array_dtype(value.dtype)).reshape(value.shape)
