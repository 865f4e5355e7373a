"""The single question behind every refusal: do the dependences of the program before hold in the order after?

Two instances depend when they touch one element and at least one writes it. Reduction updates of one block commute
among themselves; its ``init`` comes first. Where an index is not quasi-affine the whole dimension counts as touched;
where an order cannot be written as exact sets, the answer is "cannot prove", with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ..analysis.apart import Forms, iterations_apart
from ..analysis.dependence import Access, Unit, element_map, is_exact, time_map, units_of
from ..analysis.privacy import private_buffers
from ..analysis.radix import Digits, pairs_of, with_digits
from ..arith.sets import Formula, Names, NotAffine, sample
from ..buffer import Buffer
from ..expr import BufferLoad, Var, const
from ..function import PrimFunc
from ..stmt import Block, BlockRealize, BufferStore, For, SeqStmt, Stmt
from .witness import doubt, show_element, witness


@dataclass(frozen=True, eq=False)
class Violation:
    """Why a step would change the program: the rule, instances that prove it, and where."""

    rule: str
    witness: list[str]
    nodes: tuple[Any, ...] = ()


def cannot_prove(error: NotAffine, nodes: Sequence[Any] = ()) -> Violation:
    return Violation(f"cannot prove that the step keeps the program's meaning: {error}", [], tuple(nodes))


# ---------------------------------------------------------------- one loop


def check_parallel(
    func: PrimFunc, loop: For, kind: str = "parallel", among: Callable[[Buffer], bool] = lambda buffer: True
) -> Violation | None:
    """Whether iterations of ``loop`` are independent: no two of them touch one element, one of them writing it.

    Only buffers that ``among`` holds for are looked at.

    Buffers allocated inside the loop are each iteration's own, and so are those that could be
    (:func:`tir.analysis.privacy.private_buffers`).
    """
    try:
        return _independent(func, loop, loop, (), kind, among)
    except NotAffine as error:
        # the first reason is about the program as it is written
        split = with_digits(loop)
        for runs, digits, rough in (*([] if split is None else [(*split, False)]), (loop, (), True)):
            try:
                if _independent(func, loop, runs, digits, kind, among, rough) is None:
                    return None
            except NotAffine:
                continue
        return cannot_prove(error, [loop])


def _independent(
    func: PrimFunc,
    loop: For,
    runs: For,
    digits: Sequence[Digits],
    kind: str,
    among: Callable[[Buffer], bool],
    rough: bool = False,
) -> Violation | None:
    """``check_parallel`` on ``runs``: the loop, or all that it runs and more, with ``digits`` of fused variables told
    apart. ``rough``: with more iterations of inner loops than there are, where data decides how many; then only the
    answer that they are independent counts. Raises ``NotAffine``."""
    names = Names()
    context = _Context(func, loop, names)
    sides = [_Side(u, names) for u in units_of(runs, blocks=False)]
    for side in sides:
        side.touch(on_loops=True, rough=rough)
    forms = {id(side): Forms(side.unit) for side in sides}
    private: dict[Any, bool] = {}
    for s in sides:
        for t in sides:
            for a, b in _clashes(s, t, local=True):
                buffer = a.access.buffer
                if not among(buffer) or private.get(buffer.data):
                    continue
                if not digits and iterations_apart(forms[id(s)], a.access, forms[id(t)], b.access, loop.loop_var):
                    continue
                if buffer.data not in private:
                    private[buffer.data] = bool(private_buffers(func, loop, buffer.data))
                    if private[buffer.data]:
                        continue
                pairs = _same_element(s, a, t, b)
                for number in digits:
                    ordered = pairs_of(number, s.unit.coords, t.unit.coords, names)
                    pairs = pairs if ordered is None else pairs.intersect(ordered)
                isl = _isl()
                space = pairs.get_space()
                first = isl.Constraint.alloc_inequality(isl.LocalSpace.from_space(space))
                first = first.set_coefficient_val(isl.dim_type.in_, 0, -1)
                first = first.set_coefficient_val(isl.dim_type.out, 0, 1).set_constant_val(-1)
                found = context.restrict(pairs.add_constraint(first))
                if not found.is_empty():
                    what = {"vectorized": "vectorized", "unrolled": "unrolled", "thread_binding": "bound to threads"}
                    name, reason = loop.loop_var.name, doubt([(s.unit, a.access), (t.unit, b.access)])
                    if reason is None:
                        rule = f"loop `{name}` cannot be {what.get(kind, 'parallel')}: two of its iterations touch "
                        rule += "the same element, and one writes it"
                    else:
                        rule = f"cannot prove that iterations of loop `{name}` are independent, because {reason}"
                    return Violation(rule, witness(found, s, a, t, b, "", " as well"), (loop,))
    return None


def check_reorder(func: PrimFunc, loops: Sequence[For], new_order: Sequence[For]) -> Violation | None:
    """Whether the perfect nest ``loops`` (outermost first) may run in ``new_order``."""
    variables = [f.loop_var for f in new_order]

    def reordered(unit: Unit) -> tuple[Any, ...]:
        pending = iter(variables)
        mine = {f.loop_var for f in loops}
        return tuple(next(pending) if isinstance(t, Var) and t in mine else t for t in unit.time)

    units = units_of(loops[0])
    return _retimed(func, loops[0], units, reordered, tuple(new_order))


def check_merge(func: PrimFunc, chains: Sequence[Sequence[For]]) -> Violation | None:
    """Whether neighbouring nests may run as one: iteration by iteration, the first chain's body, then the next's."""
    units: list[Unit] = []
    place: dict[int, int] = {}
    for position, chain in enumerate(chains):
        for unit in units_of(chain[0]):
            place[id(unit)] = position
            units.append(replace(unit, time=(position, *unit.time)))
            place[id(units[-1])] = position

    def merged(unit: Unit) -> tuple[Any, ...]:
        position = place[id(unit)]
        depth = len(chains[position])
        return (*unit.time[1 : depth + 1], position, *unit.time[depth + 1 :])

    return _retimed(func, chains[0][0], units, merged, tuple(c[0] for c in chains))


def check_fission(func: PrimFunc, loop: For, cuts: Sequence[int]) -> Violation | None:
    """Whether ``loop`` may run over its body up to each cut (a position in its sequence) before it starts on the rest."""

    def distributed(unit: Unit) -> tuple[Any, ...]:
        return (sum(cut <= unit.time[1] for cut in cuts), *unit.time)

    return _retimed(func, loop, units_of(loop), distributed, (loop,))


def _retimed(func: PrimFunc, where: Stmt, units: list[Unit], retime: Any, nodes: tuple[Any, ...]) -> Violation | None:
    names = Names()
    length = max((len(u.time) for u in units), default=0) + 2
    sides = []
    try:
        for unit in units:
            by_loops = _by_loops(unit)
            side = _Side(by_loops, names)
            side.touch(on_loops=True)
            side.moments = ([unit.time], [retime(unit)])
            side.before = _loop_times(by_loops, unit.time, names, length)
            side.after = _loop_times(by_loops, side.moments[1][0], names, length)
            sides.append(side)
        return _compare(sides, _Context(func, where, names), nodes)
    except NotAffine as error:
        return cannot_prove(error, nodes)


def _by_loops(unit: Unit) -> Unit:
    """``unit`` with its runs told apart by the loops around it."""
    loops = tuple(v for v, _, _ in unit.loops)
    inner = tuple((v, e) for v, e in zip(unit.coords, unit.values) if v not in set(loops))
    return replace(unit, coords=loops, values=loops, inner=inner)


def _same_loops(a: Unit, b: Unit) -> bool:
    """Whether two units have the same loops, in the same order, and say the same of them."""
    said = [(*(part for loop in u.loops for part in loop), *u.values, *u.guards) for u in (a, b)]
    return len(a.loops) == len(b.loops) and len(said[0]) == len(said[1]) and all(x is y for x, y in zip(*said))


def _loop_times(unit: Unit, time: tuple[Any, ...], names: Names, length: int) -> Any:
    formula = Formula(names)
    moments = [formula.var(t) if isinstance(t, Var) else str(t) for t in time]
    moments += ["0"] * (length - len(moments))
    return formula.map([names.of(v) for v in unit.coords], moments)


def check_coverage(func: PrimFunc, buffer: Buffer) -> Violation | None:
    """Whether every read of ``buffer`` is of an element some earlier instance wrote."""
    try:
        return _covered(func, buffer)
    except NotAffine as error:
        return cannot_prove(error)


def _covered(func: PrimFunc, buffer: Buffer) -> Violation | None:
    """``check_coverage``. Raises ``NotAffine``."""
    names = Names()
    sides = []
    units = [u for u in units_of(func.body) if any(a.buffer.data is buffer.data for a in u.accesses)]
    length = max((len(u.time) for u in units), default=0)
    for unit in units:
        side = _Side(unit, names, fresh=True)
        side.before = time_map(unit, names, length, side.dims)
        if not side.before.is_single_valued():
            # each run has to find what it reads: they are told apart by the loops
            side = _Side(_by_loops(unit), names, fresh=True)
            side.on_loops = True
            side.before = time_map(side.unit, names, length, side.dims)
        side.touch(side.on_loops)
        if any(w.access.buffer is buffer and not is_exact(unit, w.access) for w in side.writes):
            return Violation(
                f"cannot prove that `{buffer.name}` is written before it is read: data decides where "
                f"`{unit.name}` writes", [], (unit.node,),
            )  # fmt: skip
        sides.append(side)
    context = _Context(func, func.body, names)
    for t in sides:
        for b in t.reads:
            if b.access.buffer is not buffer:
                continue
            bare = b.map.intersect_domain(t.before.domain())
            for s in sides:
                for a in s.writes:
                    if a.access.buffer is buffer:
                        made = t.before.lex_gt_map(s.before).intersect_range(s.before.domain()).apply_range(a.map)
                        bare = bare.subtract(made)
            bare = context.restrict(bare)
            if not bare.is_empty():
                point = sample(bare.wrap()) or []
                n = len(t.unit.coords)
                read = f"{t.show(point[:n])} reads {show_element(b.access, point[n:])}, which nothing wrote before"
                return Violation(f"an element of `{buffer.name}` would be read without having been written",
                                 [read], (t.unit.node,))  # fmt: skip
    return None


# ---------------------------------------------------------------- two programs


def check(
    before: PrimFunc, after: PrimFunc, mapping: Mapping[str, Any] | None = None, *, whole: bool = False
) -> Violation | None:
    """Whether ``after`` runs the block instances of ``before`` in an order that keeps every dependence.

    Instances are told apart by block name and iterator values. ``mapping`` says where a block of ``after`` comes
    from: a block name, or (name, "init" or "update") for a reduction taken apart. A block may run an instance more
    than once where that repeats the same values; an instance whose result nobody reads may be left out. ``whole``
    compares all of both, not just the smallest part that differs: for a step that moves work between iterations of a
    loop that it does not change.

    A block that loops repeat (none of its iterators names them) and that reads nothing it writes makes the same values
    each time: how often it does so is no part of the meaning.
    """
    found = _check(before, after, mapping or {}, whole, False)
    if found is None or not _repeats(before, after):
        return found
    return _check(before, after, mapping or {}, whole, True) and found


def _repeats(*funcs: PrimFunc) -> bool:
    """Whether a block is repeated by loops, to the same effect."""
    return any(_bare_coords(u) != len(u.coords) and _is_pure(u) for f in funcs for u in units_of(f.body))


def _bare_coords(unit: Unit) -> int:
    """How many coordinates are iterators of blocks: those after them are loops that only repeat the unit."""
    loops = {v for v, _, _ in unit.loops}
    return sum(v not in loops for v in unit.coords)


def _is_pure(unit: Unit) -> bool:
    written = {a.buffer.data for a in unit.writes()}
    opaque = not unit.writes() or not all(isinstance(a.node, (BufferLoad, BufferStore)) for a in unit.accesses)
    return isinstance(unit.node, Block) and not opaque and not any(a.buffer.data in written for a in unit.reads())


def _without_repeats(unit: Unit) -> Unit:
    count = _bare_coords(unit)
    return replace(unit, coords=unit.coords[:count], values=unit.values[:count])


def _check(before: PrimFunc, after: PrimFunc, mapping: Mapping[str, Any], whole: bool, once: bool) -> Violation | None:
    """``once``: blocks that loops repeat to the same effect are taken to run for iterator values, however often."""
    old, new = (before.body, after.body) if whole else _changed(before.body, after.body)
    if old is new:
        return None
    names = Names()
    was, now = units_of(old), units_of(new)
    pure: set[tuple[str, str]] = set()
    if once:
        pure = {u.key for u in was if _is_pure(u)} & {_origin(u, mapping) for u in now if _is_pure(u)}
        was = [_without_repeats(u) if u.key in pure else u for u in was]
        now = [_without_repeats(u) if _origin(u, mapping) in pure else u for u in now]
    length = max((len(u.time) for u in (*was, *now)), default=0)
    runs: dict[tuple[str, str], list[Unit]] = {}
    for unit in now:
        runs.setdefault(_origin(unit, mapping), []).append(unit)
    places = [runs.pop(unit.key, []) for unit in was]
    for (name, _), extra in runs.items():
        return Violation(f"block `{name}` is new: it runs what the program before did not", [], (extra[0].node,))
    sides = []

    def outside() -> set[Any]:
        return {b.data for b in before.buffer_map.values()} | _used_outside(before.body, old)

    try:
        for unit, there in _in_question(was, places, pure):
            side = _Side(unit, names, fresh=True)
            side.before = time_map(unit, names, length, side.dims)
            side.kept = _is_kept(unit, there)
            side.pure = unit.key in pure and not side.before.is_single_valued()
            if side.kept and not side.pure and not side.before.is_single_valued():
                # runs of one instance are told apart by the loops, which the step leaves alone
                side = _Side(_by_loops(unit), names, fresh=True)
                side.before = time_map(side.unit, names, length, side.dims)
                there, side.kept, side.on_loops = [_by_loops(there[0])], True, True
            side.after = _after_times(side.unit, there, side, names, length)
            side.moments = _moments(unit, there)
            side.places = tuple(u.node for u in there)
            side.touch(side.on_loops)
            sides.append(side)
        context = _Context(before, old, names)
        for side in sides:
            problem = _coverage(side, context, outside)
            if problem is not None:
                return problem
        return _compare(sides, context, ())
    except NotAffine as error:
        return cannot_prove(error)


def _is_kept(unit: Unit, there: Sequence[Unit]) -> bool:
    return len(there) == 1 and _same_loops(unit, there[0])


def _moments(unit: Unit, there: Sequence[Unit]) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    return [unit.time], [u.time for u in there]


def _in_question(
    was: Sequence[Unit], places: Sequence[list[Unit]], pure: set[tuple[str, str]]
) -> list[tuple[Unit, list[Unit]]]:
    """The units, and where they run after the step, without those that the step plainly leaves as they were: in the
    same loops, and ordered as before to all that meet them in some memory."""
    kept = [_is_kept(u, there) and u.key not in pure for u, there in zip(was, places)]
    moments = [_moments(u, there) for u, there in zip(was, places)]
    touched = [({a.buffer.data for a in u.accesses}, {a.buffer.data for a in u.writes()}) for u in was]

    def is_settled(m: int, n: int) -> bool:
        if kept[m] and kept[n] and (m == n or _same_order(moments[m], moments[n])):
            return True
        return touched[m][0].isdisjoint(touched[n][1]) and touched[n][0].isdisjoint(touched[m][1])

    chosen = [n for n in range(len(was)) if not kept[n] or not all(is_settled(m, n) for m in range(len(was)))]
    return [(was[n], places[n]) for n in chosen]


def _origin(unit: Unit, mapping: Mapping[str, Any]) -> tuple[str, str]:
    found = mapping.get(unit.name, unit.name)
    if isinstance(found, str):
        return (found, unit.part)
    name, part = found
    return (name, "" if part == "update" else part)


def _after_times(unit: Unit, there: Sequence[Unit], side: _Side, names: Names, length: int) -> Any:
    made = None
    for run in there:
        if len(run.coords) != len(unit.coords):
            run, ok = _drop_repeats(run, unit)
            if not ok:
                raise NotAffine(
                    unit.node.name, f"block `{unit.name}` is repeated by a loop that none of its iterators names"
                )
        times = time_map(run, names, length, side.dims)
        made = times if made is None else made.union(times)
    if made is None:
        return side.before.subtract(side.before)
    return made


def _drop_repeats(run: Unit, unit: Unit) -> tuple[Unit, bool]:
    """``run`` without the loops that only repeat it, when it then has the coordinates of ``unit``."""
    count = len(unit.coords)
    if len(run.coords) < count:
        return run, False
    return replace(run, coords=run.coords[:count], values=run.values[:count]), True


def _changed(old: Any, new: Any) -> tuple[Any, Any]:
    """The smallest part that differs: what is shared above it keeps its order."""
    while old is not new:
        if isinstance(old, For) and isinstance(new, For):
            same = old.loop_var is new.loop_var and old.min is new.min and old.extent is new.extent
            if not same:
                break
            old, new = old.body, new.body
        elif isinstance(old, SeqStmt) and isinstance(new, SeqStmt) and len(old.stmts) == len(new.stmts):
            differ = [(a, b) for a, b in zip(old.stmts, new.stmts) if a is not b]
            if len(differ) != 1:
                break
            old, new = differ[0]
        elif isinstance(old, BlockRealize) and isinstance(new, BlockRealize):
            a, b = old.block, new.block
            same = old.predicate is new.predicate and all(x is y for x, y in zip(old.iter_values, new.iter_values))
            same = same and len(a.iter_vars) == len(b.iter_vars) and a.init is b.init
            if not same or not _has_blocks(a) or not _has_blocks(b):
                break
            if any(x.var is not y.var for x, y in zip(a.iter_vars, b.iter_vars)):
                break
            old, new = a.body, b.body
        else:
            break
    return old, new


def _used_outside(body: Any, part: Any) -> set[Any]:
    """Pointers of the buffers that statements of ``body`` outside of ``part`` use."""
    from ..visit import walk

    if part is body:
        return set()
    around = {id(node) for node in _path(body, part)}
    found = set()
    for node in walk(body, enter=lambda n: n is not part):
        if isinstance(node, Var):
            found.add(node)
        elif isinstance(node, (BufferLoad, BufferStore)):
            found.add(node.buffer.data)
        elif isinstance(node, BlockRealize) and id(node) not in around:
            found.update(r.buffer.data for r in (*node.block.reads, *node.block.writes))
    return found


def _has_blocks(block: Block) -> bool:
    from ..visit import walk

    return any(isinstance(n, BlockRealize) for n in walk(block.body))


def _coverage(side: _Side, context: _Context, outside: Callable[[], set[Any]]) -> Violation | None:
    unit = side.unit
    if side.kept:
        return None
    if not side.pure and not side.before.is_single_valued():
        if side.before.is_equal(side.after):
            return None
        return Violation(
            f"cannot prove that the step keeps the program's meaning: block `{unit.name}` runs several times "
            "for the same iterator values", [], (unit.node,),
        )  # fmt: skip
    ran, runs = side.before.domain(), side.after.domain()
    extra = context.restrict(runs.subtract(ran))
    if not extra.is_empty():
        return Violation(
            f"block `{unit.name}` would run where it did not before",
            [f"{side.show(sample(extra) or [])} runs only afterwards"], (unit.node,),
        )  # fmt: skip
    missing = context.restrict(ran.subtract(runs))
    if not missing.is_empty() and not {a.buffer.data for a in unit.writes()}.isdisjoint(outside()):
        return Violation(
            f"block `{unit.name}` would no longer run for every iterator value",
            [f"{side.show(sample(missing) or [])} would not run"], (unit.node,),
        )  # fmt: skip
    if not side.after.is_single_valued():
        for a in side.writes:
            for b in side.reads:
                if a.access.buffer.data is b.access.buffer.data:
                    twice = context.restrict(_same_element(side, a, side, b))
                    if not twice.is_empty():
                        point = sample(twice.domain()) or []
                        return Violation(
                            f"block `{unit.name}` would run more than once, and it reads what it writes",
                            [f"{side.show(point)} reads and writes {show_element(a.access, [])}"], (unit.node,),
                        )  # fmt: skip
    return None


# ---------------------------------------------------------------- comparing


class _Touch:
    """An access and, made when asked for, the relation from instances to the elements that it touches."""

    __slots__ = ("access", "_make", "_made")

    def __init__(self, access: Access, make: Callable[[], Any]):
        self.access = access
        self._make = make
        self._made: Any = None

    @property
    def map(self) -> Any:
        """Raises ``NotAffine``."""
        if self._made is None:
            self._made = self._make()
        return self._made


class _Side:
    """A unit with its relations: what it touches, when it ran and when it will run."""

    def __init__(self, unit: Unit, names: Names, fresh: bool = False):
        self.unit = unit
        self.names = names
        self.dims = [names.of(v) for v in unit.coords]
        if fresh:
            # iterators keep their names in accesses; loops that are coordinates must not be captured by the order
            self.dims = [names.fresh(v.name) for v in unit.coords]
        self.fresh = fresh
        self.before: Any = None
        self.after: Any = None
        self.moments: tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]] = ([], [])  # the times behind the two
        self.kept = False  # the step leaves the loops around the unit, and so the order among its runs
        self.pure = False  # a further run of an instance makes the same values again
        self.on_loops = False  # the coordinates are the loops
        self.places: tuple[Any, ...] = ()
        self.reads: list[_Touch] = []
        self.writes: list[_Touch] = []

    def touch(self, on_loops: bool = False, rough: bool = False) -> None:
        dims = [self.names.of(v) for v in self.unit.coords]
        seen = set()
        for access in self.unit.accesses:
            key = (access.buffer, access.write, id(access.node))
            if key in seen:
                continue
            seen.add(key)
            make = partial(element_map, self.unit, access, self.names, dims, on_loops, rough)
            (self.writes if access.write else self.reads).append(_Touch(access, make))

    def show(self, point: Sequence[int], loops: bool = False) -> str:
        unit = self.unit
        pairs = ", ".join(f"{v.name}={x}" for v, x in zip(unit.coords, point))
        name = unit.name.split("#")[0] or "a statement"
        part = " (init)" if unit.part == "init" else ""
        return f"{name}{part} at ({pairs})"


class _Context:
    """What is known of the variables defined outside the part that is compared."""

    def __init__(self, func: PrimFunc, stmt: Any, names: Names):
        self.func, self.stmt, self.names = func, stmt, names
        self.known: Any = None

    def restrict(self, found: Any) -> Any:
        if found.is_empty():
            return found
        if self.known is None:
            self.known = self._collect()
        return found.intersect_params(self.known)

    def _collect(self) -> Any:
        formula = Formula(self.names)
        for node in _path(self.func.body, self.stmt):
            if isinstance(node, For):
                _try(formula.within, node.loop_var, node.min, node.extent)
            elif isinstance(node, BlockRealize):
                for iv, value in zip(node.block.iter_vars, node.iter_values):
                    if iv.dom is not None:
                        _try(formula.within, iv.var, iv.dom.min, iv.dom.extent)
                    _try(formula.equal, formula.var(iv.var), value)
                _try(formula.require, node.predicate)
        for buffer in self.func.buffer_map.values():
            for size in buffer.shape:
                if isinstance(size, Var):
                    _try(formula.require, size >= const(0, size.dtype))
        return formula.set([]).params()


def _try(fn: Any, *args: Any) -> None:
    try:
        fn(*args)
    except NotAffine:
        return


def _path(root: Any, target: Any) -> list[Any]:
    """The statements from ``root`` down to, not including, ``target``."""
    if root is target:
        return []
    stack: list[tuple[Any, tuple[Any, ...]]] = [(root, ())]
    while stack:
        item, above = stack.pop()
        if item is target:
            return list(above)
        body = item.block if isinstance(item, BlockRealize) else item
        for child in body.children():
            if isinstance(child, Stmt):
                stack.append((child, (*above, item)))
    return []


def _clashes(s: _Side, t: _Side, local: bool = False) -> list[tuple[_Touch, _Touch]]:
    """Pairs of touches of one memory, one of them a write."""
    found = []
    for a in (*s.writes, *s.reads):
        for b in (*t.writes, *t.reads):
            if a.access.buffer.data is not b.access.buffer.data or not (a.access.write or b.access.write):
                continue
            if local and a.access.buffer.data in s.unit.local:
                continue
            found.append((a, b))
    return found


def _same_element(s: _Side, a: _Touch, t: _Side, b: _Touch) -> Any:
    first, second = a.map, b.map
    if a.access.buffer is not b.access.buffer:
        isl = _isl()
        first = first.project_out(isl.dim_type.out, 0, first.dim(isl.dim_type.out))
        second = second.project_out(isl.dim_type.out, 0, second.dim(isl.dim_type.out))
    return first.apply_range(second.reverse())


def _compare(sides: Sequence[_Side], context: _Context, nodes: tuple[Any, ...]) -> Violation | None:
    ran = {id(s): s.before.domain() for s in sides}
    for s in sides:
        for t in sides:
            ordered: Any = None
            # of a block that is repeated it has yet to be shown that its runs make the same values
            if _order_kept(s, t) and not (s.pure or t.pure):
                continue
            for a, b in _clashes(s, t):
                if s is t and s.unit.commutes and _is_target(s.unit, a.access, b.access):
                    continue
                if s is t and _one_element_each(s, a, b):
                    continue
                if ordered is None:
                    earlier, later = _until_parted(s, t, 0)
                    ordered = earlier.lex_lt_map(later)
                    if ordered.is_empty():
                        break
                depend = _same_element(s, a, t, b).intersect(ordered)
                depend = depend.intersect_domain(ran[id(s)]).intersect_range(ran[id(t)])
                if s is t and s.pure:
                    depend = depend.subtract(_isl().Map.identity(depend.get_space()))
                elif t.pure and not a.access.write:
                    # what a repeat overwrites with the value that the reader has always seen is no change
                    depend = _unmet(depend.reverse(), t, s, 0).reverse()
                if depend.is_empty():
                    continue
                if a.access.write and not b.access.write:
                    broken = _unmet(depend, s, t)
                else:
                    earlier, later = _until_parted(s, t, 1)
                    broken = depend.intersect(earlier.lex_gt_map(later))
                broken = context.restrict(broken)
                if not broken.is_empty():
                    rule = _RULES[a.access.write, b.access.write]
                    reason = doubt([(s.unit, a.access), (t.unit, b.access)])
                    if reason is not None:
                        rule = (
                            f"cannot prove that the step keeps the program's meaning, because {reason}: "
                            + rule.replace("would", "may", 1)
                        )
                    late = " first" if b.access.write and not a.access.write else ""
                    proof = witness(broken, s, a, t, b, ", which would now run later", late)
                    places = nodes or (*s.places[:1], *(t.places[:1] if t is not s else ()))
                    return Violation(rule, proof, places)
    return None


_RULES = {
    (True, False): "a consumer would read an element not yet written",
    (False, True): "an element would be overwritten before it is read",
    (True, True): "two writes of one element would change their order",
}


def _order_kept(s: _Side, t: _Side) -> bool:
    """Whether runs of ``s`` and ``t``, whose loops the step leaves alone, are ordered as before: by the same loops that
    they share, then by which statement is first."""
    if not (s.kept and t.kept):
        return False
    return s is t or _same_order(s.moments, t.moments)


def _same_order(s: tuple[list[Any], list[Any]], t: tuple[list[Any], list[Any]]) -> bool:
    """Whether one run each, told by its times before and after, is ordered to the other by the same loops as before."""
    before, after = (_shared_order(s[p][0], t[p][0]) for p in (0, 1))
    if before is None or after is None or before[1] != after[1] or len(before[0]) != len(after[0]):
        return False
    return all(x is y for x, y in zip(before[0], after[0]))


def _shared_order(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[list[Var], bool] | None:
    """The loops two times share, and whether the first's statement comes first where they part; None where they do not."""
    shared: list[Var] = []
    for x, y in zip(a, b):
        if isinstance(x, Var) or isinstance(y, Var):
            if x is not y:
                return None
            shared.append(x)
        elif x != y:
            return shared, x < y
    return None


def _until_parted(s: _Side, t: _Side, program: int) -> tuple[Any, Any]:
    """When ``s`` and ``t`` run in a program (0 before, 1 after), just as far as needed to order them: loops that only one
    of them is in say nothing of that, and exact sets of many loops are slow."""
    isl = _isl()
    both = [(s.before, t.before), (s.after, t.after)][program]
    depth = 0
    for a in s.moments[program]:
        for b in t.moments[program]:
            depth = max(depth, _parting(a, b))
    if not depth:
        return both
    count = both[0].dim(isl.dim_type.out)
    first, second = (m.project_out(isl.dim_type.out, depth, count - depth) if depth < count else m for m in both)
    return first, second


def _parting(a: tuple[Any, ...], b: tuple[Any, ...]) -> int:
    """How many entries of two times decide which is first, whatever the loops: up to where their statements part."""
    for position, (x, y) in enumerate(zip(a, b)):
        if isinstance(x, Var) or isinstance(y, Var):
            if x is not y:
                break
        elif x != y:
            return position + 1
    return max(len(a), len(b))


def _unmet(depend: Any, s: _Side, t: _Side, program: int = 1) -> Any:
    """Flow pairs whose consumer has a run with no run of the producer before it, in a program (0 before, 1 after)."""
    producer, consumer = _until_parted(s, t, program)
    first, second = (s.after, t.after) if program else (s.before, t.before)
    if first.is_single_valued() and second.is_single_valued():
        late = depend.intersect(producer.lex_ge_map(consumer))
        never = depend.intersect_range(second.domain()).subtract_domain(first.domain())
        return late.union(never)
    isl = _isl()
    moments = depend.apply_range(consumer)
    identity = isl.Map.identity(consumer.range().get_space().map_from_set())
    unmet = moments.subtract(producer.lex_lt_map(identity))
    return depend.intersect(unmet.apply_range(consumer.reverse()))


def _is_target(unit: Unit, a: Access, b: Access) -> bool:
    written = {w.buffer.data for w in unit.writes()}
    return a.buffer.data in written and b.buffer.data in written


def _one_element_each(s: _Side, a: _Touch, b: _Touch) -> bool:
    """Whether instances plainly keep to elements of their own: indices are all the coordinates, once each."""
    coords = {id(v) for v in s.unit.coords}
    for access in (a.access, b.access):
        if access.indices is None or len(access.indices) < len(coords):
            return False
    if a.access.buffer is not b.access.buffer:
        return False
    same = [
        x
        for x, y in zip(a.access.indices or (), b.access.indices or ())
        if isinstance(x, Var) and x is y and id(x) in coords
    ]
    return len({id(v) for v in same}) == len(coords)


def _isl() -> Any:
    import islpy

    return islpy
