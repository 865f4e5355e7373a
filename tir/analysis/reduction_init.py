"""When the init of a reduction runs (every reduction iterator at its first value), whether this precedes all updates of
the result, and for which results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from ..aliases import may_change
from ..arith import Analyzer
from ..arith.itermap import detect_iter_map
from ..arith.linear import is_index
from ..buffer import IterVar, Range
from ..errors import ScheduleError, refusal
from ..expr import EQ, LE, LT, Expr, Var, conjuncts, is_const
from ..levels import is_thread_axis, is_virtual_axis
from ..poly import Formula, Names, Relation, Undecided, decide
from ..render import short_text
from ..stmt import BlockRealize, BufferStore, For
from ..visit import substitute, uses_var, vars_in, walk
from .effects import Effect
from .index import BlockRef, LoopRef
from .reduction_forms import NotAReduction, Reduction
from .simple_blocks import elements_distinguish


def require_same_init(block: BlockRef) -> None:
    """Require an init that is the same whatever the first iteration of the reduction is: it is run without iterators of the
    reduction. Raises ``ScheduleError`` with the iterator that it uses."""
    init = block.block.init
    steps = (i.var for i in block.block.iter_vars if i.iter_type == "reduce")
    used = next((v for v in steps if init is not None and uses_var(init, v)), None)
    if used is not None:
        raise ScheduleError(
            "the init of block {0} uses reduction iterator {1}, and would run without it",
            block,
            used.name,
            legal="let the init be the same whatever the first iteration is",
        )


R = TypeVar("R")


class InitRuns:
    """The executions of the init of ``realize``, under ``loops``; its reduction is under ``inner``, a suffix of them.

    ``around`` are iterators of the blocks around with their values. ``kept`` are the loops that its spatial iterators
    use; a separate init block runs in copies of those.
    """

    def __init__(
        self, realize: BlockRealize, loops: Sequence[For], inner: Sequence[For], around: Sequence[tuple[Var, Expr]] = ()
    ):
        self.realize, self.loops, self.inner, self.around = realize, loops, inner, around
        pairs = list(zip(realize.block.iter_vars, realize.iter_values))
        self.spatial = [(i, v) for i, v in pairs if i.iter_type != "reduce"]
        self.reduce = [(i, v) for i, v in pairs if i.iter_type == "reduce"]
        used = vars_in(*(v for _, v in self.spatial))
        self.kept = [f for f in inner if f.loop_var in used]
        self.dropped = [f for f in inner if f.loop_var not in used]
        self.analyzer = Analyzer()
        for f in loops:
            self.analyzer.bind(f.loop_var, f.domain, f)

    @classmethod
    def below(cls, block: BlockRef, loop: LoopRef, realize: BlockRealize | None = None) -> InitRuns:
        """Those of ``block`` (or of a ``realize`` that replaces it) under ``loop``."""
        refs = block.loops()
        inner = [ref.node for ref in refs[refs.index(loop) :]]
        return cls(realize or block.node, [ref.node for ref in block.all_loops()], inner, _around(block))

    @classmethod
    def innermost(cls, block: BlockRef, loop: LoopRef, realize: BlockRealize) -> InitRuns:
        """Those of a ``realize`` that replaces ``block``, where ``loop`` is innermost and the only one that reduces."""
        pairs, mine = zip(realize.block.iter_vars, realize.iter_values), block.loops()
        used = vars_in(*(v for i, v in pairs if i.iter_type != "reduce"))
        others = [r.node for r in block.all_loops() if r not in mine or r.var in used]
        return cls(realize, [*others, loop.node], [loop.node], _around(block))

    def require_first(self) -> None:
        """Raise ``ScheduleError`` unless the init of each result runs in its first instance, and in no later one."""
        if self._at_start()[1]:
            return
        self._decide(self._require_first)

    def _require_first(self) -> None:
        runs, inits = self._instances(Names())
        if not runs.domain().is_subset(inits.domain()):
            raise self._never_started()

    def guards(self) -> list[Expr]:
        """Conditions on the loops around and ``kept`` under which the reduction has a first instance, which runs the
        init.

        Raises ``ScheduleError`` if the init does not run exactly once, before all updates of its result, or if no
        condition on those loops describes which results have an init.
        """
        at_start, proved = self._at_start()
        return at_start if proved else self._decide(self._exact, at_start)

    def unproved_guards(self) -> list[Expr]:
        """The conditions if the reduction starts at the first iterations of ``dropped``."""
        return self._at_start()[0]

    def _decide(self, question: Callable[..., R], *args: Any) -> R:
        """The answer of exact sets. Raises ``ScheduleError`` where they have none."""
        found = decide(question, *args)
        if isinstance(found, Undecided):
            rule = "cannot prove that the reduction of block {0} begins with its init: {1}"
            raise ScheduleError(rule, self.realize, found, nodes=[self.realize])
        return found

    def _at_start(self) -> tuple[list[Expr], bool]:
        """The conditions if the reduction starts at the first iterations of ``dropped``, and whether this holds
        syntactically."""
        start = {f.loop_var: f.min for f in self.dropped}
        parts = conjuncts(self.realize.predicate)
        firsts = [(EQ(v, i.dom.min), EQ(substitute(v, start), i.dom.min)) for i, v in self.reduce]
        later = [(first, at) for first, at in firsts if not self.analyzer.can_prove(at)]
        proved = not later and self._runs_once()
        found = []
        for part, at in (*((p, substitute(p, start)) for p in parts), *later):
            at = self.analyzer.simplify(at)
            if self.analyzer.can_prove(at):
                continue
            found.append(at)
            proved = proved and _holds_at_the_start(part, start, self.analyzer)
        return found, proved

    def _runs_once(self) -> bool:
        """Whether the values of the iterators syntactically differ between instances."""
        values = self.realize.iter_values
        moving = [f for f in self.inner if not is_const(f.extent, 1)]
        if len({f.loop_var for f in moving}.intersection(values)) == len(moving):
            return True
        one = {f.loop_var: f.min for f in self.inner if f not in moving}
        domains = {f.loop_var: f.domain for f in moving}
        return bool(detect_iter_map([substitute(v, one) for v in values], domains, check="bijective"))

    def _never_started(self) -> ScheduleError:
        """Refuse a result that is updated but not initialised: at its first update some reduction iterator is past its
        start."""
        start = {f.loop_var: f.min for f in self.inner}
        for iterator, value in self.reduce:
            if self.analyzer.can_prove(substitute(value, start) > iterator.dom.min):
                return continues(self.realize, iterator)
        return ScheduleError(
            "the init of block {0} does not run for every result: some have no update at the first value of each "
            "reduction iterator",
            self.realize,
        )

    def _formula(self, names: Names, conditions: Iterable[Expr]) -> Formula:
        made = Formula(names)
        for f in self.loops:
            made.within(f.loop_var, f.min, f.extent)
        for v, value in self.around:
            made.equal(made.var(v), value)
        for condition in conditions:
            made.require(condition)
        return made

    def _dims(self, names: Names) -> list[str]:
        return [names.of(f.loop_var) for f in self.loops if f not in self.inner]

    def _instances(self, names: Names) -> tuple[Relation, Relation]:
        """All instances, and those that run the init: from results to the loops inside. Raises ``ScheduleError`` if an
        init is not the first instance of its result."""
        around = self._dims(names)
        inner = [names.of(f.loop_var) for f in self.inner]

        def runs_of(conditions: Sequence[Expr]) -> Relation:
            """From the loops around and the spatial iterators, which identify results, to the loops inside."""
            made = self._formula(names, conditions)
            for iterator, value in self.spatial:
                made.equal(names.of(iterator.var), value)
            moments = [made.var(f.loop_var) for f in self.inner]
            return made.map([*around, *(names.of(i.var) for i, _ in self.spatial)], moments, inner)

        parts = conjuncts(self.realize.predicate)
        firsts = [EQ(v, i.dom.min) for i, v in self.reduce]
        runs, inits = runs_of(parts), runs_of([*parts, *firsts])
        # an earlier instance: one whose result another init resets, or an update that is lost
        later = runs.then(Relation.lex_before(len(inner)))
        late = inits.intersect(later)
        if not late.is_empty():
            point = late.range().sample() or []
            at = ", ".join(f"{f.loop_var.name} = {x}" for f, x in zip(self.inner, point))
            raise ScheduleError(
                "the init of block {0} runs after other updates of the same result, which it undoes",
                self.realize,
                witness=[f"it runs at {at}"],
            )
        return runs, inits

    def _exact(self, at_start: list[Expr]) -> list[Expr]:
        names = Names()
        self._instances(names)
        parts, firsts = conjuncts(self.realize.predicate), [EQ(v, i.dom.min) for i, v in self.reduce]
        kept, gone = ([f.loop_var for f in loops] for loops in (self.kept, self.dropped))
        dims, hidden = [*self._dims(names), *(names.of(v) for v in kept)], [names.of(v) for v in gone]
        ran = self._formula(names, [*parts, *firsts]).map(dims, [], hidden).domain()
        for guards in (at_start, [p for p in parts if not uses_var(p, gone)]):
            if ran.is_equal(self._formula(names, guards).map(dims, [], hidden).domain()):
                return guards
        parts = [*(v for _, v in self.reduce), *parts]
        tied = next((f for f in self.dropped if any(uses_var(p, f.loop_var) for p in parts)), self.inner[0])
        raise ScheduleError(
            "cannot hoist init of {0} before {1}: for some results the first update is not at the first iteration of {1}",
            self.realize,
            tied,
            nodes=[self.realize],
        )


def _holds_at_the_start(condition: Expr, start: Mapping[Var, Expr], analyzer: Analyzer) -> bool:
    """Whether a condition that holds in some iteration of the loops of ``start`` holds in their first one: it does not
    depend on them, or is an upper bound."""
    if not uses_var(condition, start):
        return True
    if not isinstance(condition, (LT, LE)) or uses_var(condition.b, start):
        return False
    return analyzer.can_prove(substitute(condition.a, start) <= condition.a)


def runs_first(init: Effect) -> bool:
    """Whether the first instance that touches an element which ``init`` writes runs the init, in the loops of the
    effect. False means "not shown".

    The loops that its indices do not use are at their first iterations then.
    """
    firsts = init.first or ()
    if not firsts:
        return True
    analyzer, start = Analyzer(), {}
    for var, low, extent in init.loops:
        analyzer.bind(var, Range(low, extent))
        if not any(uses_var(part, var) for index in init.indices or () for part in _parts(index)):
            start[var] = substitute(low, start)
    others = [g for g in init.guards if not any(g is f for f in firsts)]
    return all(analyzer.can_prove(substitute(f, start)) for f in firsts) and all(
        _holds_at_the_start(g, start, analyzer) for g in others
    )


def _parts(index: Any) -> tuple[Expr, ...]:
    return index if isinstance(index, tuple) else (index,)


def begins_with_init(block: BlockRef) -> bool:
    """Whether no update of ``block`` reads a result before its init has run, or there is no init."""
    steps = [(i, v) for i, v in zip(block.block.iter_vars, block.node.iter_values) if i.iter_type == "reduce"]
    reducing = [ref for ref in block.loops() if any(uses_var(v, ref.var) for _, v in steps)]
    if block.block.init is None:
        return True
    if not reducing:  # one update of each result
        return all(Analyzer().can_prove_equal(v, i.dom.min) for i, v in steps if i.dom is not None)
    return refusal(InitRuns.below(block, reducing[0]).require_first) is None


def continues(realize: BlockRealize, iterator: IterVar) -> ScheduleError:
    """The refusal of a continuation of a partitioned reduction, whose results another part initialises."""
    return ScheduleError(
        "block {0} is a continuation of a partitioned reduction: {1} starts past `{2}`",
        realize,
        iterator.var.name,
        short_text(iterator.dom.min),
        legal="this step first, and loop_partition after it",
    )


def result_guards(realize: BlockRealize, loops: Sequence[For]) -> list[Expr]:
    """The conditions, free of its reduction loops, under which the reduction of ``realize`` stores a result.

    Threads that share a reduction start their parts from the identity and store one result: this is equivalent only if
    the init runs at the first update of each result, and at no other. ``loops`` are those around the block, outermost
    first. Raises ``ScheduleError`` if the init runs late, more than once, or not at all for a result that is updated, if
    the updates decide which further ones there are, or if other threads would store the same result.
    """
    return _Results(realize, loops).guards()


def _around(block: BlockRef) -> list[tuple[Var, Expr]]:
    """The iterators of the blocks around, with their values."""
    return [pair for p in block.ancestors() if isinstance(p, BlockRef) for pair in p.bindings.items()]


class _Results:
    """Where the reduction of a block stores its results."""

    def __init__(self, realize: BlockRealize, loops: Sequence[For]):
        self.realize, self.block, self.loops = realize, realize.block, loops
        steps = [v for i, v in zip(self.block.iter_vars, realize.iter_values) if i.iter_type == "reduce"]
        moving = [f for f in loops if not is_const(f.extent, 1)]
        self.reducing = [f for f in moving if any(uses_var(v, f.loop_var) for v in steps)]
        first = loops.index(self.reducing[0]) if self.reducing else len(loops)
        self.runs = InitRuns(realize, loops, loops[first:])
        self.analyzer, self.outside = self.runs.analyzer, Analyzer()
        self.reducer = Reduction.of(self.block)
        self.start: dict[Var, Any] = {f.loop_var: f.min for f in loops if is_const(f.extent, 1)}
        for f in self.reducing:
            self.start[f.loop_var] = substitute(f.min, self.start)
        for f in loops:
            if f not in self.reducing:  # that a loop is entered says something of its extent
                self.outside.bind(f.loop_var, f.domain, f)

    def guards(self) -> list[Expr]:
        conditions = [*conjuncts(self.realize.predicate), *self._conditions_of_updates()]
        for e in (*conditions, *self.realize.iter_values):
            if may_change(e, self.block):
                raise ScheduleError(
                    "block {0} runs by `{1}`, which depends on memory that the block writes: {2} would ask before any "
                    "of the updates is made",
                    self.realize,
                    short_text(e),
                    self._loops(),
                    legal="a condition on memory that nothing in the loops writes",
                )
        at_start = [self._at_start(part) for part in conditions]
        parts = [part for part in at_start if part is not None]
        self._require_shared_by_threads()
        if len(parts) < len(at_start):
            self._require_one_writer(parts)
        if self.block.init is not None:
            self.runs.require_first()
        with self.outside.scope():
            found = []
            for guard in (*parts, *(substitute(f.extent, self.start) > 0 for f in self.reducing)):
                if not self.outside.can_prove(guard):
                    found.append(self.outside.simplify(guard))
                    self.outside.assume(guard)
        return found

    def _conditions_of_updates(self) -> list[Expr]:
        """The conditions inside of a block without an init under which it updates all of its results; an init stores
        them in any case."""
        if self.block.init is not None or isinstance(self.reducer, NotAReduction):
            return []
        first, *others = [u.guards for u in self.reducer.updates]
        shared = [g for g in first if all(any(g is h for h in guards) for guards in others)]
        return [substitute(part, self.realize.bindings) for g in shared for part in conjuncts(g)]

    @property
    def _bound(self) -> list[For]:
        return [f for f in self.loops if f.thread and not is_const(f.extent, 1)]

    def _require_shared_by_threads(self) -> None:
        """Raise ``ScheduleError`` if a bound loop that reduces is not one of threads, which alone can share a result."""
        for f in self._bound:
            if f in self.reducing and not is_thread_axis(f.thread):
                raise self._stored_by_others(f)

    def _require_one_writer(self, guards: Sequence[Expr]) -> None:
        """Raise ``ScheduleError`` if the threads of another iteration of a bound loop would store the same result, where
        one that is not updated is stored as it was under ``guards``."""
        if isinstance(self.reducer, NotAReduction):
            return
        bound = self._bound
        same = [g.a - g.b for g in guards if isinstance(g, EQ) and is_index(g.a.dtype)]
        kernel = self.loops[self.loops.index(bound[0]) :] if bound else []
        for f in (f for f in bound if f not in self.reducing and not is_virtual_axis(f.thread)):
            others = [g for g in kernel if g is not f and g not in self.reducing]
            for store in self.reducer.stores:
                element = [substitute(index, self.realize.bindings) for index in store.indices]
                if not elements_distinguish([*element, *same], f, others):
                    raise self._stored_by_others(f)

    def _stored_by_others(self, loop: For) -> ScheduleError:
        return ScheduleError(
            "block {0} reduces across threads, and every iteration of loop {1} ({2}) would store the result of the one "
            "that updates it",
            self.realize,
            loop,
            loop.thread,
            nodes=[self.realize],
            legal="a serial loop, or one whose iterations each update elements of their own",
        )

    def _at_start(self, part: Expr) -> Expr | None:
        """``part`` of the predicate at the first update; None if the result may be stored without asking it."""
        if not uses_var(part, {f.loop_var for f in self.reducing}):
            return part
        at = substitute(part, self.start)
        if self._implies(part, at):
            return at
        if self.block.init is None and self._in_bounds():
            return None  # a result that is not updated is stored as it was
        raise ScheduleError(
            "the predicate `{0}` may leave out the first update of a result of block {1} and not the others: {2} would "
            "store what the first update decides",
            short_text(part),
            self.realize,
            self._loops(),
        )

    def _implies(self, part: Expr, at: Expr) -> bool:
        if (
            isinstance(part, (LT, LE))
            and isinstance(at, (LT, LE))
            and self.analyzer.can_prove(at.a - part.a <= at.b - part.b)
        ):
            return True
        with self.analyzer.constraint(part):
            return self.analyzer.can_prove(at)

    def _in_bounds(self) -> bool:
        """Whether the elements that the block stores to exist whatever the predicate says of the reduction."""
        values = self.realize.bindings
        with self.analyzer.scope():
            for part in conjuncts(self.realize.predicate):
                if not uses_var(part, {f.loop_var for f in self.reducing}):
                    self.analyzer.assume(part)
            return all(
                self.analyzer.can_prove(substitute(index, values) >= 0)
                and self.analyzer.can_prove(substitute(index, values) < size)
                for store in walk(self.block.body)
                if isinstance(store, BufferStore)
                for index, size in zip(store.indices, store.buffer.shape)
            )

    def _loops(self) -> str:
        names = ", ".join(f"`{f.loop_var.name}`" for f in self.reducing)
        return f"loop {names}" if len(self.reducing) == 1 else f"the nest of {names}"
