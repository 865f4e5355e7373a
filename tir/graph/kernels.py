"""The functions of the kernels of a graph, scheduled; what their constants determine is computed once, when a model is made."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from codegen import disk
from codegen.build import machine_of
from codegen.program_key import program_key

from ..annotations import CONSTANT, ONCE
from ..buffer import Buffer, decl_buffer
from ..dtype import DType
from ..expr import IntImm
from ..function import IRModule, PrimFunc
from ..names import identifier, unique_name
from ..node import frozendict
from ..progress import track
from ..schedule.constants import folding, places
from ..target import CPUS, Target
from ..transform import cpu_pipeline
from ..transform.pipeline import begun_of, go_on_from, lowered_before
from ..transform.use_workspace import WORKSPACE, temporaries
from ..tune import default
from ..tune.space import Env, rules_of
from ..visit import nodes_of
from ..workers import each
from .arrays import memory, part
from .building import built, naming
from .fusion import Formula, Group
from .graph import Value
from .in_place import in_place, lowered_in_place
from .memory_plan import Place, Plan, check_plan, plan
from .sizes import ALIGNMENT, aligned


@dataclass(frozen=True)
class Call:
    """A call of a kernel with memory, in order."""

    kernel: str
    arguments: tuple[Place, ...]


@dataclass(frozen=True)
class Kernel:
    """A scheduled ``program``. ``kept`` are the places of its arguments among the inputs and outputs of a group; after them come
    arrays ``made`` by the function ``maker`` of the arguments at the places ``sources``, and memory for what is ``temporary``, by elements and type."""

    program: PrimFunc
    kept: tuple[int, ...]
    maker: PrimFunc | None = None
    sources: tuple[int, ...] = ()
    made: tuple[tuple[tuple[int, ...], DType], ...] = ()
    temporary: tuple[tuple[int, DType], ...] = ()

    @staticmethod
    def of(scheduled: PrimFunc, target: Any) -> Kernel:
        folded = folding(scheduled)
        # what depends on sizes is made at each call
        if folded is None or len(folded.parts.maker.buffers()) < len(folded.parts.maker.params):
            program, temporary = _with_workspace(scheduled.without_attr("global_symbol"), target)
            return Kernel(program, _places(scheduled, scheduled), temporary=temporary)
        program, maker = folded.parts
        kept, sources = _places(scheduled, program), _places(scheduled, maker)
        made = tuple((_sizes(b), b.dtype) for b in folded.made)
        program, temporary = _with_workspace(program.without_attr("global_symbol"), target)
        return Kernel(program, kept, maker.with_attr(ONCE, True), sources, made, temporary)

    def over(self, value: int, source: int) -> PrimFunc | None:
        """The program that writes an argument over another, which it no longer has; None if it may not. Both are places in the group."""
        if value not in self.kept or source not in self.kept:
            return None
        buffers = self.program.buffers()
        both = buffers[self.kept.index(source)], buffers[self.kept.index(value)]
        made, begun = in_place(self.program, *both), begun_of(self.program)
        if made is not None and begun is not None and (lowered := lowered_in_place(begun.func, *both)) is not None:
            go_on_from(made, begun._replace(func=lowered))
        return made


def _places(func: PrimFunc, part: PrimFunc) -> tuple[int, ...]:
    """Which buffers of a function a part of it takes, by number; after them come scalars."""
    return tuple(n for n in places(func, part) if n < len(func.buffers()))


def by_default(func: PrimFunc, target: Any) -> Kernel:
    """The kernel of a function by :func:`tir.tune.default`, which the disk cache keeps."""
    key = default_key(func, target)
    path = None if key is None else disk.place(key, ".kernel")
    kept = None if path is None else disk.read(path)
    if kept is not None:
        return pickle.loads(kept)
    made = _scheduled(func, target)
    if path is None:
        return made
    disk.write(path, pickle.dumps(made))
    return made


def _scheduled(func: PrimFunc, target: Any) -> Kernel:
    """The kernel of a function by default rules. What depends on constants is computed by the CPU; rules for CPUs make it so that they re-lay
    constants, and for GPUs it is taken out before."""
    if Target.of(target).kind in CPUS:
        return Kernel.of(default(func, target).func, target)  # pyright: ignore[reportCallIssue]
    made = Kernel.of(func, target)
    return replace(made, program=default(made.program, target).func)  # pyright: ignore[reportCallIssue]


def default_key(func: PrimFunc, target: Any) -> str | None:
    """What names a kernel by default in the disk cache; None if code of other packages has a part in it."""
    env = Env.of(target)
    rules = rules_of(env.target)
    if env.target.kind != "llvm" or any(not one.apply.__module__.startswith("tir.tune.rules.") for one in rules):
        return None
    about = [machine_of(env.target).key(), str(env.threads), *(one.name for one in rules)]
    return program_key(IRModule.of(func), env.target, " ".join(about), cpu_pipeline())


class Kernels:
    """Kernels of groups: groups with equal programs have one. ``makers`` compute what constants determine."""

    def __init__(
        self,
        order: Sequence[Group],
        constants: Iterable[Value],
        target: Any,
        schedule: Callable[[PrimFunc, Any], Kernel] = by_default,
    ):
        self.functions: dict[str, PrimFunc] = {}  # of the calls
        self.makers: dict[str, PrimFunc] = {}
        self.made: dict[tuple[str, tuple[Place, ...]], tuple[Value, ...]] = {}  # results by maker and what it reads
        self.groups: dict[str, Group] = {}  # the first of each kernel and maker
        self._target = target
        self._over: dict[tuple[str, int, int], PrimFunc | None] = {}
        functions = group_functions(order, constants)
        names: dict[PrimFunc, str] = {}
        for group, func in functions.items():
            if func not in names:
                taken = {*names.values(), "main", "run", "workspace_bytes"}
                names[func] = unique_name(identifier(group.name)[:60], taken)
                self.groups[names[func]] = group
        different = sorted(names, key=_size, reverse=True)
        made: dict[PrimFunc, Kernel] = {}
        work = partial(_made, schedule, target)
        for place, take in track(each(work, different), "scheduling kernels", len(different)):
            func = different[place]
            with naming(names[func], self.groups[names[func]], func, target):
                made[func], begun = take()
            if begun is not None:
                go_on_from(made[func].program, begun)
        self._of = {group: (names[func], made[func]) for group, func in functions.items()}
        self._temporary = {
            group: tuple(Value(f"{name}_{step}_{n}", (count,), dtype) for n, (count, dtype) in enumerate(one.temporary))
            for step, (group, (name, one)) in enumerate(self._of.items())
        }

    def temporaries(self, group: Group) -> tuple[Value, ...]:
        """The memory that the kernel of a group works in, apart from what it reads and makes."""
        return self._temporary.get(group, ())

    def over(self, group: Group, value: Value, source: Value) -> PrimFunc | None:
        """The kernel of a group that writes a result over an input; None if it may not."""
        values = (*group.inputs, *group.outputs)
        name, kernel = self._of[group]
        key = name, values.index(value), values.index(source)
        if key not in self._over:
            self._over[key] = kernel.over(*key[1:])
        return self._over[key]

    def plan(self, order: Sequence[Group], elsewhere: Iterable[Value], state: Mapping[Value, Value]) -> Plan:
        """The memory of a model, checked. Raises ``ModelError`` as :func:`tir.graph.plan` does."""
        made = plan(order, elsewhere, self.over, state, self.temporaries)
        check_plan(made, order, self.over, self.temporaries)
        return made

    def call(self, group: Group, plan: Plan) -> Call:
        """The call that computes a group with its memory as in ``plan``."""
        name, kernel = self._of[group]
        values = [*group.inputs, *group.outputs]
        arguments = tuple(map(plan.place, values))
        sources = tuple(arguments[n] for n in kernel.sources)
        made = self.made.get((name, sources), ())
        if kernel.maker is not None and not made:
            self.makers[name] = kernel.maker
            first = f"{sources[0].root.name if sources else name}_{len(self.made)}"
            made = tuple(Value(f"{first}_{n}", *of) for n, of in enumerate(kernel.made))
            self.made[name, sources] = made
        func, kept = kernel.program, kernel.kept
        for value, source in plan.replaced.items():
            if value in group.outputs and (over := self.over(group, value, source)) is not None:
                gone = values.index(source)
                name, func, kept = f"{name}_over_{gone}", over, tuple(n for n in kept if n != gone)
        self.functions[name] = func
        self.groups.setdefault(name, group)
        return Call(name, (*(arguments[n] for n in kept), *map(Place, (*made, *self.temporaries(group)))))

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
        packed[total:] = 0
        for value, begin in offsets.items():
            packed[begin + value.nbytes : begin + aligned(value.nbytes)] = 0  # files of one model have the same bytes
            if value in constants:
                part(packed, begin, value)[...] = constants[value]
        makers = built(self.makers, self.groups, on_cpu(self._target)) if self.makers else {}
        for (maker, sources), several in self.made.items():
            shapes = map(_sizes, self.makers[maker].buffers())
            given = [_elements(constants[v], begin, shape) for (v, begin), shape in zip(sources, shapes)]
            given = [np.require(array, requirements=["C", "A"]) for array in given]
            makers[maker].prepared(*given, *(part(packed, offsets[v], v) for v in several))()
        return packed, offsets


def _made(schedule: Callable[[PrimFunc, Any], Kernel], target: Any, func: PrimFunc) -> tuple[Kernel, Any]:
    """The kernel of a function, and what is known of its program lowered, which is no part of it."""
    made = schedule(func, target)
    return made, begun_of(made.program)


def _size(func: PrimFunc) -> int:
    """By which functions are ordered whose scheduling takes long."""
    return sum(1 for _ in nodes_of(func.body))


def group_functions(order: Iterable[Group], constants: Iterable[Value]) -> dict[Group, PrimFunc]:
    """The functions of groups that are no views, one of those that compute the same; their attributes say which parameters are constant."""
    fixed = set(constants)  # and what is a view of one
    found: dict[Group, PrimFunc] = {}
    made: dict[Any, PrimFunc] = {}
    for group in order:
        if group.view is not None:
            fixed.update(group.outputs if group.view.source in fixed else ())
            continue
        formula = Formula(group.nodes, group.inputs, group.outputs)
        constant = tuple(v in fixed for v in group.inputs)
        if (formula, constant) not in made:
            func = formula.function()
            names = tuple(b.name for b, is_fixed in zip(func.buffers(), constant) if is_fixed)
            made[formula, constant] = func.with_attr(CONSTANT, names) if names else func
        found[group] = made[formula, constant]
    return found


def on_cpu(target: Any) -> Any:
    """The target that computes what constants determine: a GPU's is this machine's."""
    return target if Target.of(target).kind in CPUS else "llvm"


def _with_workspace(program: PrimFunc, target: Any) -> tuple[PrimFunc, tuple[tuple[int, DType], ...]]:
    """A program with parameters for its large temporaries, where a target lowers it, and their elements and types."""
    if Target.of(target).kind != "llvm":
        return program, ()
    threads = Env.of(target).threads
    begun = lowered_before("use_workspace", program, target)
    found = temporaries(begun.func)
    sizes = tuple((t.elements * min(t.iterations, threads), t.allocation.dtype) for t in found)
    if not sizes:
        go_on_from(program, begun)
        return program, ()
    taken = {b.name for b in program.buffers()}
    added = []
    for count, dtype in sizes:
        added.append(decl_buffer((count,), dtype, unique_name("work", taken), data_alignment=ALIGNMENT))
        taken.add(added[-1].name)
    made, lowered = (_with_parameters(func, added) for func in (program, begun.func))
    go_on_from(made, begun._replace(func=lowered))
    return made, sizes


def _with_parameters(program: PrimFunc, added: Sequence[Buffer]) -> PrimFunc:
    """A program with parameters that are its workspace."""
    made = program.replace(
        params=(*program.params, *(b.data for b in added)),
        buffer_map=frozendict({**program.buffer_map, **{b.data: b for b in added}}),
    )
    return made.with_attr(WORKSPACE, tuple(b.name for b in added))


def _sizes(buffer: Buffer) -> tuple[int, ...]:
    return tuple(size.value for size in buffer.shape if isinstance(size, IntImm))


def _elements(array: np.ndarray, begin: Any, shape: tuple[int, ...]) -> np.ndarray:
    """The array of a shape that begins at a byte of another."""
    first = begin // array.itemsize
    return array.reshape(-1)[first : first + math.prod(shape)].reshape(shape)
