"""Constant parameters: arrays that are the same at every call, and what of a function is computed of these alone.

A function names them in its attribute ``"tir.constant"`` (or, as in TVM, gives their numbers in ``"layout_free_buffers"``).
Statements of the root block that read nothing else can run once, ahead: the function is split in two.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ..aliases import may_alias, parameter_pointers, shares_memory, sharing
from ..analysis.contents import free_in
from ..analysis.effects import Effects, effects
from ..annotations import BY_NUMBER, CONSTANT
from ..buffer import Buffer
from ..dtype import HANDLE
from ..errors import TirError
from ..expr import Var
from ..function import PrimFunc
from ..names import did_you_mean, unique_name
from ..node import cached_property, frozendict, once
from ..stmt import Block, BlockRealize, SeqStmt, Stmt, seq
from ..visit import free_vars, substitute, walk


class Folded(NamedTuple):
    """A function split in two: ``maker`` computes arrays of constant parameters, which ``program`` takes as its last parameters."""

    program: PrimFunc
    maker: PrimFunc


def constant_parameters(func: PrimFunc) -> tuple[Buffer, ...]:
    """The parameters that are the same at every call, by the attributes of a function.

    Raises ``TirError`` for a name or a number that is of no parameter with a buffer.

    >>> import tir
    >>> func = tir.library.elementwise.gelu_chain(8).with_attr("tir.constant", ["A", "S"])
    >>> [b.name for b in constant_parameters(func)]
    ['A', 'S']
    """
    names, numbers = func.attrs.get(CONSTANT, ()), func.attrs.get(BY_NUMBER, ())
    if not names and not numbers:
        return ()
    buffers = func.buffers()
    return tuple(dict.fromkeys((*_named(func, names, buffers), *_numbered(func, numbers))))


def _named(func: PrimFunc, names: Sequence[str], buffers: Sequence[Buffer]) -> Iterator[Buffer]:
    known = [b.name for b in buffers]
    for name in _listed(names):
        if name not in known:
            raise TirError(
                f'"{CONSTANT}" of {func.name} names {name!r}, which is no parameter with a buffer'
                f"{did_you_mean(str(name), known)}; these are {', '.join(known) or 'none'}"
            )
        yield from (b for b in buffers if b.name == name)


def _numbered(func: PrimFunc, numbers: Sequence[int]) -> Iterator[Buffer]:
    for given in _listed(numbers):
        number = getattr(given, "value", given)
        if not isinstance(number, int) or not 0 <= number < len(func.params):
            raise TirError(
                f'"{BY_NUMBER}" of {func.name} has {number!r}; its {len(func.params)} parameters count from 0'
            )
        if func.params[number] not in func.buffer_map:
            raise TirError(
                f'"{BY_NUMBER}" of {func.name} has {number}; parameter {func.params[number].name} has no buffer'
            )
        yield func.buffer_map[func.params[number]]


def _listed(given: object) -> Sequence[object]:
    return given if isinstance(given, (list, tuple)) else [given]


def fold_constants(func: PrimFunc) -> Folded:
    """Split a function into the part that its constant parameters determine, and the rest, which takes what that part makes.

    A statement of the root block goes into ``maker`` if it reads constants alone, or what such statements make, and writes
    only memory of the root block that is then written by these statements alone, before the others read it. ``program`` has
    the parameters that are still used, and after them, named as the buffers that it reads of ``maker``'s, the new ones. Both
    are ordinary functions: a run of ``maker`` and then of ``program`` computes what ``func`` does.

    Raises ``TirError`` if nothing can be folded, with the reason for each statement.

    >>> import tir
    >>> program, maker = fold_constants(tir.library.elementwise.gelu_chain(8).with_attr("tir.constant", ["A", "S"]))
    >>> [b.name for b in program.buffers()], [b.name for b in maker.buffers()]
    (['H', 'B', 'scaled'], ['A', 'S', 'scaled'])
    """
    return Foldable(func).split()


@once
def determined(func: PrimFunc) -> frozenset[Buffer]:
    """The buffers that the constant parameters of a function determine: these themselves, and what could be folded; none in a
    function without constant parameters.

    >>> import tir
    >>> func = tir.library.elementwise.gelu_chain(8).with_attr("tir.constant", ["A", "S"])
    >>> sorted(b.name for b in determined(func))
    ['A', 'S', 'scaled']
    """
    constants = constant_parameters(func)
    if not constants or func.root is None:
        return frozenset()
    return frozenset((*constants, *Foldable(func).written))


def at_each_call(func: PrimFunc) -> PrimFunc:
    """What is left of a function at each call, once its constants are folded; itself if none can be.

    >>> import tir
    >>> func = tir.library.elementwise.gelu_chain(8)
    >>> at_each_call(func) is func, [b.name for b in at_each_call(func.with_attr("tir.constant", ["A", "S"])).buffers()]
    (True, ['H', 'B', 'scaled'])
    """
    found = folding(func)
    return func if found is None else found.parts.program


class Folding(NamedTuple):
    """The ``parts`` of a function, and the buffers that one makes for the other."""

    parts: Folded
    made: tuple[Buffer, ...]


@once
def folding(func: PrimFunc) -> Folding | None:
    """How :func:`fold_constants` splits a function, found once; None if nothing of it can be folded."""
    if not constant_parameters(func) or func.root is None:
        return None
    foldable = Foldable(func)
    return Folding(foldable.split(), foldable.makes) if foldable.makes else None


def places(func: PrimFunc, part: PrimFunc) -> tuple[int, ...]:
    """Which parameters of ``func`` a part of it takes, by number; what the maker makes, its last parameters, is none of them.

    >>> import tir
    >>> func = tir.library.elementwise.gelu_chain(8).with_attr("tir.constant", ["A", "S"])
    >>> [places(func, part) for part in fold_constants(func)]
    [(2, 3), (0, 1)]
    """

    numbers = {v: n for n, v in enumerate(parameter_pointers(func))}
    return tuple(numbers[v] for v in parameter_pointers(part) if v in numbers)


class Foldable:
    """Which statements of the root block of a function constants determine, and why the others are not.

    Raises ``TirError`` for a function that is not in block form, and for attributes that name no parameters.
    """

    def __init__(self, func: PrimFunc):
        if func.root is None:
            raise TirError(f"{func.name} is not in block form, so it has no statements to fold: fold before lowering")
        self._func = func
        self._root: Block = func.root
        self._constants = {b.data: b for b in constant_parameters(func)}
        self._own = {b.data: b for b in self._root.alloc_buffers if b.scope == "global"}
        body = self._root.body
        self._all: tuple[Stmt, ...] = body.stmts if isinstance(body, SeqStmt) else (body,)

    @cached_property
    def reasons(self) -> Mapping[Stmt, str]:
        """The statements that cannot be folded, each with the reason.

        All others are the largest set that depends on constants and on its own results: beginning with all statements, those
        with a reason are taken out until none is found.
        """
        if may_alias(self._func) or self._root.match_buffers:
            return dict.fromkeys(self._all, "uses memory that may have several names")
        found: dict[Stmt, str] = {}
        before = -1
        while before < len(found):
            before = len(found)
            for s in self._all:  # what reads the results of one comes after it
                if s not in found and (reason := self._reason(s, found)):
                    found[s] = reason
        return found

    @cached_property
    def _effects(self) -> Mapping[Stmt, Effects]:
        return {s: effects(s) for s in self._all}

    @cached_property
    def _writers(self) -> Mapping[Var, list[int]]:
        """The statements that write memory, by number."""
        return self._by_pointer(lambda found: found.writes)

    @cached_property
    def _readers(self) -> Mapping[Var, list[int]]:
        return self._by_pointer(lambda found: found.reads)

    def _by_pointer(self, pointers: Callable[[Effects], Iterable[Var]]) -> Mapping[Var, list[int]]:
        found: defaultdict[Var, list[int]] = defaultdict(list)
        for n, s in enumerate(self._all):
            for pointer in pointers(self._effects[s]):
                found[pointer].append(n)
        return found

    def statements(self) -> list[Stmt]:
        """The statements that can be folded, in order."""
        return [s for s in self._all if s not in self.reasons]

    @cached_property
    def makes(self) -> tuple[Buffer, ...]:
        """The buffers that folded statements make and others read: parameters, once the function is split."""
        used = _used(self.reasons)
        return tuple(sharing(self.written, used))

    @cached_property
    def written(self) -> tuple[Buffer, ...]:
        """The buffers that folded statements make."""
        made = {p for s in self.statements() for p in self._effects[s].writes}
        return tuple(b for p, b in self._own.items() if p in made)

    def _reason(self, stmt: Stmt, outside: Collection[Stmt]) -> str:
        """Why a statement cannot run ahead if those ``outside`` do not; empty if it can."""
        found = self._effects[stmt]
        if found.opaque:
            return "has effects that are not known"
        written = found.writes - found.allocated
        if not written:
            return "writes nothing"
        for pointer in found.reads - found.allocated:
            makers = self._writers.get(pointer, ())
            if pointer not in self._constants and (not makers or any(self._all[n] in outside for n in makers)):
                return f"reads {self._name(pointer)}, which is no constant"
        for pointer in written:
            if reason := self._kept(pointer, outside):
                return reason
        pointers = {*self._constants, *self._own, *found.allocated}
        if late := sorted(v.name for v in free_in(stmt).difference(pointers)):
            return f"uses {', '.join(late)}, which is known only at the call"
        return ""

    def _kept(self, pointer: Var, outside: Collection[Stmt]) -> str:
        """Why memory that a statement writes cannot be made ahead."""
        if pointer not in self._own:
            return f"writes {self._name(pointer)}, which is no global buffer of the root block"
        writers = self._writers[pointer]
        for n in sorted({*writers, *self._readers.get(pointer, ())}):
            other = self._all[n]
            if other in outside and n in writers:
                return f"writes {self._name(pointer)}, as {_title(other)} does"
            if other in outside and n < writers[-1]:
                return f"writes {self._name(pointer)} after {_title(other)} has read it"
        return ""

    def _name(self, pointer: Var) -> str:
        return self._names.get(pointer, pointer.name)

    @cached_property
    def _names(self) -> Mapping[Var, str]:
        return {b.data: b.name for b in (*self._func.buffers(), *self._root.alloc_buffers)}

    def split(self) -> Folded:
        """The two functions. Raises ``TirError`` if nothing can be folded, and for a constant that the function writes."""
        folded = self.statements()
        rest = [s for s in self._all if s in self.reasons]
        changed = [b.name for b in sharing(self._constants.values(), self._writers)]
        if changed:
            raise TirError(f"{self._func.name} writes {', '.join(changed)}, which its attribute calls constant")
        made = self.makes
        if not made:
            raise TirError(self._nothing_folds())
        used = _used(rest)
        kept = [p for p in self._func.params if not self._is_spent(p, used)]
        return Folded(self._program(rest, kept, made), self._maker(folded, made))

    def _nothing_folds(self) -> str:
        names = ", ".join(b.name for b in self._constants.values())
        about = (
            f"constant: {names}"
            if names
            else f'no parameter is constant: name them in T.func_attr({{"{CONSTANT}": […]}})'
        )
        return "\n  ".join(
            [
                f"nothing of {self._func.name} can be folded ({about})",
                *(f"{_title(s)} {r}" for s, r in self.reasons.items()),
            ]
        )

    def _is_spent(self, param: Var, used: Collection[Var]) -> bool:
        """Whether a parameter is a constant that only the folded part reads, and defines no size."""
        buffer = self._func.buffer_map.get(param)
        if buffer is None or not shares_memory(buffer, self._constants) or shares_memory(buffer, used):
            return False
        return free_vars(buffer) == [buffer.data]

    def _program(self, rest: Sequence[Stmt], kept: Sequence[Var], made: Sequence[Buffer]) -> PrimFunc:
        buffers = {p: self._func.buffer_map[p] for p in kept if p in self._func.buffer_map}
        taken = {b.name for b in buffers.values()}
        renamed: dict[Buffer, Buffer] = {}
        for buffer in made:
            renamed[buffer] = buffer.replace(name=unique_name(buffer.name, taken)) if buffer.name in taken else buffer
            taken.add(renamed[buffer].name)
        added = {_handle(b): b for b in renamed.values()}
        constants = [b.name for b in sharing((*buffers.values(), *added.values()), {*self._constants, *self._own})]
        return self._func.replace(
            params=(*kept, *added),
            body=substitute(self._body(rest, made), {}, renamed),
            buffer_map=frozendict({**buffers, **added}),
            attrs=frozendict({**self._attributes(), CONSTANT: tuple(constants)}),
        )

    def _maker(self, folded: Sequence[Stmt], made: Sequence[Buffer]) -> PrimFunc:
        used = _used(folded)
        buffers = {_handle(b): b for b in sharing((*self._constants.values(), *made), used)}
        return self._func.replace(
            params=tuple(buffers),
            body=self._body(folded, made),
            buffer_map=frozendict(buffers),
            attrs=frozendict({**self._attributes(), "global_symbol": f"{self._func.name}_constants"}),
        )

    def _attributes(self) -> dict[str, object]:
        return {k: v for k, v in self._func.attrs.items() if k not in (CONSTANT, BY_NUMBER)}

    def _body(self, stmts: Sequence[Stmt], elsewhere: Sequence[Buffer]) -> BlockRealize:
        """The root block with some of its statements, and the buffers that these use, but for those that live ``elsewhere``."""
        used = _used(stmts)
        allocated = tuple(b for b in sharing(self._root.alloc_buffers, used) if b not in elsewhere)
        assert isinstance(self._func.body, BlockRealize)
        return self._func.body.replace(block=self._root.replace(alloc_buffers=allocated, body=seq(stmts)))


def _used(stmts: Iterable[Stmt]) -> frozenset[Var]:
    return frozenset[Var]().union(*map(free_in, stmts))


def _handle(buffer: Buffer) -> Var:
    return Var(f"{buffer.name}_handle", HANDLE)


def _title(stmt: Stmt) -> str:
    """A statement by its blocks."""
    names = [n.name for n in walk(stmt) if isinstance(n, Block)]
    return f"block `{names[0]}`" if names else "a statement without a block"
