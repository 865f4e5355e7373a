"""A snapshot of a schedule, an immutable program and what became of earlier loops and blocks, and moving between snapshots.

Primitives take a snapshot and return another. ``State.replace`` is the way to change a program: it copies the path
from the changed statement to the root and shares everything else.
"""

from __future__ import annotations

import dataclasses
import functools
import random
from collections.abc import Callable, Mapping
from typing import Any

from ..aliases import is_same_parameter, with_own_memory
from ..analysis.evaluation import may_fail
from ..analysis.index import BlockRef, Index, LoopRef, Place, index_of
from ..buffer import Buffer
from ..checked import checked
from ..errors import ScheduleError, require
from ..expr import Var, all_of
from ..function import IRModule, PrimFunc
from ..names import near_names, unique_name
from ..node import frozendict, once
from ..stmt import (
    NOP,
    Allocate,
    AllocateConst,
    AttrStmt,
    Block,
    BlockRealize,
    BufferRealize,
    DeclBuffer,
    For,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    While,
    edited_seq,
    seq,
)
from ..target import Target
from .handles import BlockRV, LoopRV


@dataclasses.dataclass(frozen=True)
class Fate:
    """What became of a loop or block: ``alias`` is its successor with the same meaning, otherwise ``into`` lists the
    parts.

    ``past`` is the participle of what was done to it ("fused"), if the primitive ``how`` has one.
    """

    step: int
    how: str
    past: str = ""
    into: tuple[str, ...] = ()
    alias: Any = None


@dataclasses.dataclass(frozen=True)
class State:
    """One snapshot. ``func_name`` is the function worked on, the first of several until one ``is_chosen``; ``step`` counts
    the primitives applied so far."""

    mod: IRModule
    func_name: str
    target: Target | None = None
    fates: Mapping[Any, Fate] = dataclasses.field(default_factory=frozendict)
    step: int = 0
    seed: int = 0
    trace: Any = None
    primitive_name: str = ""
    past: str = ""  # what that primitive does to loops and blocks, as a participle
    is_chosen: bool = True  # by its name, `main`, by `work_on`, or since there is no other

    def __repr__(self) -> str:
        return f"State of {', '.join(self.mod)} after step {self.step}"

    def replaced(self, **changes: Any) -> State:
        """The snapshot with these fields changed: a fast ``dataclasses.replace``."""
        made = object.__new__(State)
        object.__setattr__(made, "__dict__", {**self.__dict__, **changes})
        return made

    # ------------------------------------------------------------ look-ups

    @property
    def program(self) -> IRModule:
        """The module as it was given and will be built: with a pointer for each parameter. Steps see one pointer for all
        parameters of a function that may overlap (:func:`tir.aliases.with_one_memory`)."""
        return _program(self.mod)

    @property
    def func(self) -> PrimFunc:
        return self.mod.functions[self.func_name]

    @property
    def index(self) -> Index:
        return index_of(self.mod.functions[self.func_name])

    def place(self, stmt: Stmt) -> Place:
        """The place of ``stmt`` (a node of the current program)."""
        return self.index.place(stmt)

    def with_call(self, call: Any) -> State:
        """The snapshot with one more call in its trace, which shares what was there."""
        return self.replaced(trace=(self.trace, call))

    def calls(self) -> list[Any]:
        """The recorded calls, first to last."""
        found, chain = [], self.trace
        while chain is not None:
            chain, call = chain
            found.append(call)
        return found[::-1]

    def find_block(self, which: BlockRV | BlockRef | str) -> BlockRef:
        """The block of a handle or a name.

        Raises ``ScheduleError`` when it does not exist, saying what became of it or listing the existing blocks.
        """
        if isinstance(which, BlockRef):
            return which
        key = which.key if isinstance(which, BlockRV) else (self.func_name, which)
        name = which.name if isinstance(which, BlockRV) else which
        key, found = self._followed(
            key, lambda key: index_of(self.mod[key[0]]).blocks.get(key[1]) if key[0] in self.mod else None
        )
        if found is not None:
            return found
        if isinstance(which, str) and "." in which:  # the copy in scope "shared.dyn" may be called X_shared.dyn
            return self.find_block(which.replace(".", "_"))
        loops = self.index.loops_named(name) if isinstance(name, str) else []
        require(not loops,
                "`{0}` is a loop, not a block",
                name, legal=lambda: list(dict.fromkeys(b.name for ref in loops for b in self.index.blocks_below(ref))))  # fmt: skip
        raise self._gone(f"block `{name}`", self.fates.get(key), near_names(str(name), self.index.blocks))

    def require_one_function(self, name: str) -> None:
        """Refuse a name, of a block or a loop, that several functions have while none of them is chosen."""
        if self.is_chosen:
            return
        block, _, _ = name.rpartition(".")
        indices = {func: index_of(self.mod[func]) for func in self.mod}
        having = [f for f, i in indices.items() if name in i.blocks or block in i.blocks or i.loops_named(name)]
        require(
            len(having) < 2,
            "`{0}` is in functions {1}",
            name,
            " and ".join(f"`{func}`" for func in having),
            legal=[*(f'sch.work_on("{func}")' for func in having), f'sch.get_block(…, func_name="{having[0]}")']
            if having
            else "",
        )

    def find_loop(self, which: LoopRV | LoopRef | str, near: Place | None = None) -> LoopRef:
        """The loop of a handle, or of a name: ``"i"`` if only one loop has that name, ``"C.i"`` above block C.

        ``near`` selects, among loops of the same name, those above that place. Raises ``ScheduleError`` when there is
        none, or more than one.
        """
        if isinstance(which, LoopRef):
            return which
        if isinstance(which, str):
            return self._loop_named(which, near)
        if not isinstance(which, LoopRV):
            raise ScheduleError(f"a loop is a handle or a name, not {which!r}")
        var: Any = which.var
        func = self.mod.functions.get(which.func) or self.func
        var, found = self._followed(var, index_of(func).loops.get)
        if found is not None:
            return found
        raise self._gone(f"loop `{which.name}`", self.fates.get(var), self._near_loops(which.name))

    def _followed(self, key: Any, find: Callable[[Any], Any]) -> tuple[Any, Any]:
        """What ``key`` is called now, and what ``find`` has under that name; None if it is gone."""
        for _ in range(1000):
            found, fate = find(key), self.fates.get(key)
            if found is not None or fate is None or fate.alias is None:
                return key, found
            key = fate.alias
        return key, None

    def _loop_named(self, name: str, near: Place | None) -> LoopRef:
        block, dot, loop = name.rpartition(".")
        if dot:
            loops = self.find_block(block).all_loops()
            above = [ref for ref in loops if ref.name == loop]
            require(above,
                    "no loop `{0}` above block `{1}`",
                    loop, block, legal=lambda: near_names(loop, (r.name for r in loops)))  # fmt: skip
            return above[-1]
        found = self.index.loops_named(name)
        if len(found) > 1 and near is not None:
            found = [ref for ref in near.all_loops() if ref.name == name] or found
        if len(found) == 1:
            return found[0]
        if not found:
            require(name not in self.index.blocks,
                    "`{0}` is a block, not a loop",
                    name, legal=lambda: [label(self, ref) for ref in self.index.blocks[name].all_loops()])  # fmt: skip
            fates = [f for k, f in self.fates.items() if isinstance(k, Var) and k.name == name]
            raise self._gone(f"loop `{name}`", fates[-1] if fates else None, self._near_loops(name))
        owners = [self._first_block(ref) for ref in found]
        raise ScheduleError("{0} loops are called `{1}`: above " + ", ".join(f"block `{o}`" for o in owners),
                            len(found), name, func=self.func, nodes=[ref.node for ref in found],
                            legal=f'say which, as in "{owners[0]}.{name}", or use sch.get_loops("{owners[0]}")')  # fmt: skip

    def _first_block(self, place: Place) -> str:
        blocks = self.index.blocks_below(place)
        return blocks[0].name if blocks else "?"

    def _near_loops(self, name: str) -> list[str]:
        return near_names(name, (ref.name for ref in self.index.loops.values()))

    def _gone(self, what: str, fate: Fate | None, there: list[str]) -> ScheduleError:
        if fate is None:
            return ScheduleError("{0} is not in function `{1}`", what, self.func_name, legal=there)
        past = fate.past or f"{'replaced' if fate.into else 'removed'} by {fate.how}"
        parts = f" into {', '.join(fate.into)}" if fate.into else ""
        return ScheduleError("{0} was {1} at step {2}{3}", what, past, fate.step, parts, legal=there)

    # ------------------------------------------------------------ handles

    def loop_rv(self, loop: Var | For | LoopRef) -> LoopRV:
        """A handle for a loop of the function worked on."""
        var = loop if isinstance(loop, Var) else loop.loop_var if isinstance(loop, For) else loop.var
        return LoopRV(var, self.func_name)

    def block_rv(self, block: str | Block | BlockRealize | BlockRef) -> BlockRV:
        """A handle for a block of the function worked on."""
        if isinstance(block, BlockRealize):
            block = block.block
        return BlockRV(block if isinstance(block, str) else block.name, self.func_name)

    # ------------------------------------------------------------ changes

    def replace(self, old: Any, new: Any, *, moved: Mapping[Any, Any] | None = None) -> State:
        """The snapshot with statement (or block) ``old`` replaced by ``new``; None removes it and parents that become
        empty.

        ``moved`` forwards handles: a loop variable to the variable (or a block name to the name) that replaces it, or
        to a list of its parts.
        """
        node = self.rebuilt(self.index.root, old, new)
        return self.with_func(self.func.with_body(NOP if node is None else node), moved=moved)

    def replace_both(self, old: Any, new: Any, gone: Any) -> State:
        """The snapshot with ``old`` replaced by ``new``, as :meth:`replace` does, and without ``gone``; neither of the two
        contains the other."""
        first, second = self.index.place(old), self.index.place(gone)
        above = [first, *first.ancestors()]
        while second.parent not in above:
            assert second.parent is not None
            second = second.parent
        node = self.rebuilt(second.parent, old, new)
        if type(node) is not SeqStmt:  # branches of an `if`
            return self.replace(old, new).replace(gone, None)
        return self.replace(second.parent.node, _swap(node, second.node, self.rebuilt(second, gone, None)))

    def rebuilt(self, host: Place, old: Any, new: Any) -> Any:
        """The statement at ``host`` with ``old`` in it replaced by ``new``, as :meth:`replace` does; None if nothing is left."""
        place, node = self.index.place(old), new
        while place is not host:
            assert place.parent is not None
            parent = place.parent.node
            if node is not None or not _drops_with_child(parent):
                node = _swap(parent, place.node, NOP if node is None and not isinstance(parent, SeqStmt) else node)
            place = place.parent
        return node

    def with_func(self, func: PrimFunc, *, moved: Mapping[Any, Any] | None = None) -> State:
        """The snapshot with the function worked on replaced."""
        fates = self.fates
        if moved:
            fates = dict(fates)
            for key, value in moved.items():
                fates[self._fate_key(key)] = self._fate(value)
        return self.replaced(mod=self.mod.with_function(self.func_name, func), fates=fates)

    def _fate_key(self, key: Any) -> Any:
        return (self.func_name, key) if isinstance(key, str) else key

    def _fate(self, value: Any) -> Fate:
        if isinstance(value, (list, tuple)):
            parts = tuple(v if isinstance(v, str) else v.name for v in value)
            return Fate(self.step + 1, self.primitive_name, self.past, parts)
        return Fate(self.step + 1, self.primitive_name, alias=self._fate_key(value))

    def note_losses(self, before: State) -> State:
        """Record that this step removed the loops and blocks of ``before`` that are gone and not forwarded."""
        was, now = before.func, self.func
        if was is now:
            return self
        gone = index_of(was).keys_without(index_of(now))
        lost = [key for key in map(self._fate_key, gone) if key not in self.fates]
        if not lost:
            return self
        fate = Fate(self.step + 1, self.primitive_name, self.past)
        return self.replaced(fates={**self.fates, **dict.fromkeys(lost, fate)})

    def draw(self) -> tuple[State, random.Random]:
        """A random generator for one decision, and the snapshot with the advanced random state."""
        generator = random.Random(self.seed)
        return self.replaced(seed=generator.getrandbits(62)), generator

    # ------------------------------------------------------------ fresh names

    def fresh_block_name(self, name: str, taken: set[str] = frozenset()) -> str:  # type: ignore[assignment]
        """``name``, with a numeric suffix if a block of the function has that name already."""
        blocks = self.index.blocks
        return unique_name(name, {*blocks, *taken} if taken else blocks)


@once
def _program(mod: IRModule) -> IRModule:
    return mod.map_functions(with_own_memory)


def require_above(state: State, loop: LoopRef, block: BlockRef) -> None:
    """Refuse a loop that is not around ``block``, saying which blocks it is around."""
    loops = block.loops()
    require(
        loop in loops,
        "loop {0} belongs to {1}, not to {2}",
        loop.node,
        lambda: owners(state, loop),
        block,
        nodes=[loop.node],
        legal=lambda: (
            f"the loops of {block.name} are {', '.join(ref.name for ref in loops)}" if loops else "it has no loops"
        ),
    )


def blocks_with_init(state: State) -> list[str]:
    """The names of the blocks that have a T.init()."""
    return [ref.name for ref in state.index.blocks.values() if ref.block.init is not None]


def owners(state: State, loop: LoopRef) -> str:
    """The blocks that ``loop`` is around, as text."""
    names = [f"`{ref.name}`" for ref in state.index.blocks_below(loop)]
    return " and ".join(names[:3]) + (" …" if len(names) > 3 else "") if names else "no block"


def scope_of(place: Place) -> BlockRef:
    """The block that encloses ``place``. Raises ``ScheduleError`` if there is none (a program without blocks)."""
    require(place.scope is not None, "`{0}` is the root block: there is nothing around it", getattr(place, "name", "?"))
    assert place.scope is not None
    return place.scope


def pick_buffer(block: BlockRef, side: str, which: int | str | Buffer) -> Buffer:
    """The buffer of a region that ``block`` reads or writes (``side``), by number, name or object."""
    regions = getattr(block.block, side)
    buffers = list(dict.fromkeys(r.buffer for r in regions))
    verb = "reads" if side == "reads" else "writes"
    if isinstance(which, str):
        named = [b for b in buffers if b.name == which]
        require(named,
                "block {0} does not {1} a buffer `{2}`",
                block, verb[:-1], which, legal=[b.name for b in buffers], nodes=())  # fmt: skip
        return named[0]
    if isinstance(which, Buffer):
        same = [b for b in buffers if is_same_parameter(b, which)]
        require(same,
                "block {0} does not {1} buffer `{2}`",
                block, verb[:-1], which.name, legal=[b.name for b in buffers], nodes=())  # fmt: skip
        return same[0]
    require(
        0 <= which < len(regions),
        "block {0} {1} {2} regions, so there is no number {3}",
        block,
        verb,
        len(regions),
        which,
        legal=[f"{n} ({r.buffer.name})" for n, r in enumerate(regions)],
        nodes=(),
    )
    return regions[which].buffer


def _drops_with_child(parent: Any) -> bool:
    """Whether a statement becomes empty once its only child is removed."""
    return isinstance(parent, (For, While, LetStmt, AttrStmt, Allocate, AllocateConst, DeclBuffer, BufferRealize))


def _swap(parent: Any, old: Any, new: Any) -> Any:
    """``parent`` with its child ``old`` replaced."""
    kind = type(parent)
    if kind is For:
        return parent.with_body(new)
    if kind is BlockRealize:
        return parent.replace(block=new)
    if kind is SeqStmt:
        members = [new if s is old else s for s in parent.stmts]
        return edited_seq(parent, seq(members if new is not None else [s for s in members if s is not None]))
    if kind is Block and parent.init is old:
        return parent.replace(init=None if new is NOP else new)
    if getattr(parent, "body", None) is old:
        return parent.with_body(new)
    for field in ("then_case", "else_case"):
        if getattr(parent, field, None) is old:
            return parent.replace(**{field: new})
    raise AssertionError(f"{type(parent).__name__} has no such child")


def label(state: State, ref: LoopRef) -> str:
    """A name that finds the loop again: unqualified if unique, otherwise with a block below it."""
    if len(state.index.loops_named(ref.name)) == 1:
        return ref.name
    blocks = state.index.blocks_below(ref)
    return f"{blocks[0].name}.{ref.name}" if blocks else ref.name


def place_name(state: State, ref: LoopRef | BlockRef) -> str:
    """The name by which a loop or block is found."""
    return label(state, ref) if isinstance(ref, LoopRef) else ref.name


def with_own_conditions(state: State, block: BlockRef) -> tuple[State, BlockRef, Stmt]:
    """The program with every ``if`` around ``block`` alone as a part of its predicate, which moves with it; the block there;
    and the statement of ``state`` that was replaced (that of the block, if there is no such ``if``).

    An ``if`` stays where the block may change what it reads, and where it guards a bound or a binding that may fail.
    """
    shells = []  # the statements that contain nothing but the block, nearest first
    for place in block.ancestors():
        if not isinstance(place.node, For) and not (
            isinstance(place.node, IfThenElse) and place.node.else_case is None
        ):
            break
        shells.append(place.node)
    while shells and isinstance(shells[-1], For):
        shells.pop()
    if not shells:
        return state, block, block.node
    conditions = [s.condition for s in reversed(shells) if isinstance(s, IfThenElse)]
    loops = [s for s in shells if isinstance(s, For)]
    guarded = [*block.node.iter_values, *(e for f in loops for e in (f.min, f.extent))]
    if any(map(may_fail, guarded)) or any(block.may_change(c, block.block) for c in conditions):
        return state, block, block.node
    inner: Stmt = block.node.replace(predicate=all_of([*conditions, block.node.predicate]))
    for f in loops:
        inner = f.replace(body=inner)
    moved = state.replace(shells[-1], inner)
    return moved, moved.find_block(block.name), shells[-1]


class Snapshots:
    """One snapshot after each step, of which one is current; steps that were undone stay until another is taken."""

    def __init__(self, start: State):
        self._states: list[State] = [start]
        self._requests: list[Callable[[], str]] = [str]  # of each step: the call as text
        self._at = 0

    def __getstate__(self) -> dict[str, Any]:
        """Pickled with the texts of the calls, whose arguments may be functions."""
        return {**self.__dict__, "_requests": [functools.partial(str, text()) for text in self._requests]}

    @property
    def state(self) -> State:
        """The current snapshot: module, function worked on, trace; immutable.

        >>> import tir
        >>> sch = tir.Schedule(tir.library.rows.softmax(8, 16))
        >>> start = sch.state
        >>> sch.parallel("out.i")
        >>> sch.state is start, sorted(start.index.blocks)
        (False, ['most', 'out', 'power', 'root', 'scale', 'total'])
        """
        return self._states[self._at]

    def _set_state(self, state: State) -> None:
        self._states[self._at] = state

    @property
    def states(self) -> tuple[State, ...]:
        """The snapshots up to here; number 0 is the start.

        >>> import tir
        >>> sch = tir.Schedule(tir.library.rows.softmax(8, 16))
        >>> sch.parallel("out.i")
        >>> len(sch.states), sch.states[-1] is sch.state
        (2, True)
        """
        return tuple(self._states[: self._at + 1])

    def _after(self, step: int) -> State:
        """The snapshot after a step of the history, counted from 0, the start, or backwards from the last (-1)."""
        if not -len(self.states) <= step < len(self.states):
            raise ScheduleError(f"step={step}: steps 0 to {self._at} are in the history")
        return self.states[step]

    @property
    def undone(self) -> int:
        """How many steps ``redo`` can take.

        >>> import tir
        >>> sch = tir.Schedule(tir.library.rows.softmax(8, 16))
        >>> sch.parallel("out.i")
        >>> sch.undo()
        >>> sch.undone
        1
        """
        return len(self._states) - 1 - self._at

    @checked
    def undo(self, steps: int = 1) -> None:
        """Go back; ``redo`` returns. Raises ``ScheduleError`` at the start of history.

        >>> import tir
        >>> sch = tir.Schedule(tir.library.rows.softmax(8, 16))
        >>> sch.parallel("out.i")
        >>> sch.undo()
        >>> sch
        Schedule of main after 0 steps
        >>> sch.undo(2)
        Traceback (most recent call last):
            ...
        tir.errors.ScheduleError: undo(2): no step has been taken
        """
        _require_steps(f"undo({steps})", steps, self._at, "taken")
        self._at -= steps

    @checked
    def redo(self, steps: int = 1) -> None:
        """Redo undone steps, which stay until another is taken: one that is accepted, also where it changes nothing, not a
        question or a refused step. Raises ``ScheduleError`` when there are fewer.

        >>> import tir
        >>> sch = tir.Schedule(tir.library.rows.softmax(8, 16))
        >>> sch.parallel("out.i")
        >>> sch.undo()
        >>> sch.redo()
        >>> sch
        Schedule of main after 1 step
        """
        _require_steps(f"redo({steps})", steps, self.undone, "undone")
        self._at += steps

    def reset(self) -> None:
        """Go back to the start of history; ``redo`` returns.

        >>> import tir
        >>> sch = tir.Schedule(tir.library.rows.softmax(8, 16))
        >>> sch.parallel("out.i")
        >>> sch.vectorize("out.j")
        >>> sch.reset()
        >>> sch, sch.undone
        (Schedule of main after 0 steps, 2)
        """
        self._at = 0


def _require_steps(request: str, steps: int, most: int, done: str) -> None:
    if not 0 <= steps <= most:
        count = "no step has" if most == 0 else "1 step has" if most == 1 else f"{most} steps have"
        legal = f"\nlegal: 0 to {most}" if most else ""
        raise ScheduleError(f"{request}: {count} been {done}{legal}")
