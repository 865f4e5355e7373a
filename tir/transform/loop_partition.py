"""Partitions loops whose guard holds for most iterations, so that the main part runs without it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import reduce
from typing import Any

from ..aliases import may_change, other_names, overlapping
from ..annotations import PARTITION_HINT
from ..arith import Analyzer
from ..arith.linear import Linear, inequality, is_index, linear
from ..buffer import Range
from ..dtype import INT32
from ..equal import structural_equal
from ..expr import (
    EQ,
    GE,
    GT,
    LT,
    NE,
    And,
    Call,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Select,
    Var,
    all_of,
    choice_parts,
    conjuncts,
    const,
    constant,
    is_const,
    max_,
    min_,
)
from ..function import PrimFunc
from ..node import frozendict
from ..stmt import NOP, For, IfThenElse, LetStmt, SeqStmt, Stmt, is_nop, seq
from ..visit import free_vars, kinds, rewrite, statements, substitute, uses_var, walk
from .passes import func_pass

Guards = list[tuple[Expr, dict[Var, Range]]]
_SPEED_KINDS = ("vectorized", "unrolled")
_GUARDS = {IfThenElse, Select, Call, Max, Min, FloorMod}  # classes of what decides, or may, how iterations differ
FAR = 1 << 30  # more than is left of any extent
WRITTEN_OUT = 4  # most iterations of strips whose rests are written out: more are as fast with conditions, and code grows as the square


def _conjuncts(condition: Expr) -> list[Expr]:
    """The parts of a conjunction, without hints."""
    found: list[Expr] = []
    for part in conjuncts(condition):
        found += _conjuncts(part.args[0]) if isinstance(part, Call) and part.op == "likely" else [part]
    return found


class _Cutter:
    """Finds, from the outermost loop inwards, the points where the guards inside stop being true."""

    def __init__(self, everything: bool, aliased: Collection[Var]):
        self.everything = everything
        self.aliased = aliased  # pointers of memory with several names
        self.analyzer = Analyzer()
        self.analyzer.note_aliases(aliased)

    def visit(self, s: Any) -> Any:
        if _GUARDS.isdisjoint(kinds(s)):
            return s
        if isinstance(s, For):
            return self.loop(s)
        if isinstance(s, SeqStmt):
            made = [self.visit(x) for x in s.stmts]
            return s if all(a is b for a, b in zip(made, s.stmts)) else seq(x for x in made if not is_nop(x))
        if isinstance(s, LetStmt):
            with self.analyzer.scope():
                self.analyzer.bind(s.var, s.value, s.body)
                return s.map_statements(self.visit)
        return s.map_statements(self.visit) if isinstance(s, Stmt) else s

    def loop(self, s: For) -> Stmt:
        if s.kind in ("serial", "parallel", *_SPEED_KINDS):
            guards = self.guards(s)
            cut = self.cut(s, guards) if guards else None
            if cut is not None:
                made = self.partitioned(s, *cut)
                if made is not None:
                    return made
        with self.analyzer.scope():
            self.analyzer.bind(s.loop_var, s.domain, s.body)
            body = self.by_number(s) if s.kind in ("serial", "parallel") else None
            body = body or self.visit(s.body)
        return s.updated(body=body)

    def partitioned(self, s: For, cut: Expr, threshold: Expr) -> Stmt | None:
        """[min, cut) and [cut, end), each partitioned again with what is then known of the guards.

        ``threshold`` is ``cut`` before it was clipped to the loop's range: the first part stays below it. None if
        that decides no guard.
        """
        simplify = self.analyzer.simplify
        parts: list[Stmt] = []
        decided = False
        for low, extent, known in (
            (s.min, simplify(cut - s.min), threshold - s.min),
            (cut, simplify(s.min + s.extent - cut), s.min + s.extent - cut),
        ):
            var = s.loop_var if low is s.min else s.loop_var.replace()
            body = s.body if var is s.loop_var else substitute(s.body, {s.loop_var: var})
            if is_const(extent, 1):
                body = substitute(body, {var: low})
            end = simplify(low + extent)
            is_rest = s.kind == "serial" and not isinstance(extent, IntImm) and self.at_most_one(low, end)
            with self.analyzer.scope():
                self.analyzer.bind(var, Range(low, simplify(known)))
                if low is cut:
                    self.analyzer.assume(var >= threshold)
                bare = _Decider(self.analyzer, self.rounded(s)).visit(body)
                decided |= bare is not body
                again = self.demanded(s) and isinstance(low, IntImm) and isinstance(extent, IntImm)
                written_out = is_rest and (
                    self.by_rest(substitute(bare, {var: low}))
                    or self.by_number(s.updated(loop_var=var, body=bare), _SPEED_KINDS)
                )
                body = written_out or (bare if again and extent.value > 1 else self.visit(bare))
            if is_nop(body):
                continue
            if is_rest:
                body = IfThenElse(simplify(low < end), substitute(body, {var: low}))
            elif not is_const(extent, 1):
                body = For(var, low, extent, s.kind, body, s.thread, s.annotations, span=s.span)
                body = self.loop(body) if again else body
                decided |= not isinstance(body, For)  # what this point alone does not decide, it does with another
                body = _without_hint(body)
            parts.append(body)
        return seq(parts) if decided else None

    def by_rest(self, tail: Stmt) -> Stmt | None:
        """What is left of full strips, written out for each number of iterations that may be left, where a loop inside would ask for
        that number in each of its iterations: a tile of rows in registers then sums as many as there are in straight code. None
        where none would."""
        asked = (
            n
            for c, _ in _asked_again(tail, {}, ("unrolled",))
            for n in walk(self.analyzer.simplify(c))
            if isinstance(n, FloorMod)
        )
        outer = set(free_vars(tail))
        rest = next((n for n in asked if isinstance(n.b, IntImm) and outer.issuperset(free_vars(n))), None)
        most = rest.b.value if rest is not None and isinstance(rest.b, IntImm) else 0
        if rest is None or not 2 < most <= WRITTEN_OUT or may_change(rest, tail, self.aliased):
            return None

        def known(count: int) -> Stmt:
            def guard(s: Any) -> Any:
                if not isinstance(s, IfThenElse):
                    return None
                simple = self.analyzer.simplify(s.condition)
                decided = rewrite(simple, lambda n: const(count, rest.dtype) if structural_equal(n, rest) else None)
                return None if decided is simple else s.replace(condition=decided)

            return self.visit(_Decider(self.analyzer).visit(rewrite(tail, guard)))

        return reduce(
            lambda less, n: IfThenElse(GE(rest, const(n, rest.dtype)), known(n), less), range(1, most), known(0)
        )

    def by_number(self, s: For, speed: Collection[str] = ("unrolled",)) -> Stmt | None:
        """The body of a loop, written out for each number of iterations of an unrolled loop inside that a guard lets pass, where a loop between
        would ask for that number in each of its iterations: a tile in registers then has as many vectors of columns as are left. None
        where none would."""
        found = self.asked_by(s, speed)
        if found is None:
            return None
        left, step, most = self.analyzer.simplify(found[0]), *found[1:]
        whole, within = Var("left", left.dtype), Var("left", left.dtype)
        body = rewrite(
            s.body,
            lambda n: _in_terms_of(n, linear(left), step, whole, within),
            lambda n: not _GUARDS.isdisjoint(kinds(n)),
        )

        def known(count: int) -> Stmt:
            low, end = (count - 1) * step if count else -FAR, count * step if count < most else FAR
            with self.analyzer.scope():
                for number, first in ((whole, low + 1), (within, low)):
                    self.analyzer.bind(number, Range(const(first, left.dtype), const(end - first + 1, left.dtype)))
                return substitute(self.visit(_Decider(self.analyzer).visit(body)), {whole: left, within: left})

        versions = ((n, GT(left, const((n - 1) * step, left.dtype))) for n in range(1, most + 1))
        none = known(0)
        return reduce(lambda less, n: IfThenElse(n[1], known(n[0]), less), versions, None if is_nop(none) else none)

    def asked_by(self, s: For, speed: Collection[str]) -> tuple[Expr, int, int] | None:
        """What is left of an extent in each iteration of ``s``, how much of it one of an unrolled loop inside takes, and of how many; None
        where no guard asks for it again and again."""
        outer = set(free_vars(s.body))
        for part, loop in _asked_again(s.body, {}, speed):
            step, rest = inequality(_undivided(part), loop.loop_var) or (0, Linear())
            used, most = rest.coefficients() or {}, constant(loop.extent) or 0
            if used.keys() <= outer and step < 0 and 2 <= most <= WRITTEN_OUT:
                left = rest.build(part.a.dtype) + 1
                return None if may_change(left, s.body, self.aliased) else (left, -step, most)
        return None

    def at_most_one(self, low: Expr, end: Expr) -> bool:
        """Whether [low, end) has one iteration at most, such as [n // 8, (n + 7) // 8): what is left of full strips."""
        if isinstance(low, FloorDiv) and isinstance(end, FloorDiv) and isinstance(low.b, IntImm):
            return is_const(end.b, low.b.value) and self.analyzer.can_prove(And(low.b > 0, end.a - low.a <= low.b))
        return self.analyzer.can_prove(end - low <= 1)

    def demanded(self, s: For) -> bool:
        """Whether the user asks for ``s`` to be partitioned, by an option of the pass or a hint."""
        return self.everything or PARTITION_HINT in s.annotations

    def cut(self, s: For, guards: Guards) -> tuple[Expr, Expr] | None:
        """The first iteration in which some guard is not certain, if it splits the loop in two; and the same before it
        was clipped to the loop's range. Of a loop whose parts are cut again, the one in the middle: then each part has half of the guards."""
        points = set[int]()
        symbolic: Expr | None = None
        known = isinstance(s.min, IntImm) and isinstance(s.extent, IntImm)
        for part, inner in guards:
            with self.analyzer.scope():
                for v, rng in inner.items():
                    self.analyzer.bind(v, rng)
                for form in (inequality(side, s.loop_var) for side in self.sides(part, s)):
                    if form is None:
                        continue
                    if known:
                        first, end = s.min.value, s.min.value + s.extent.value  # type: ignore[attr-defined]
                        points.update(
                            at for at in _thresholds(form, self.analyzer, s.kind == "vectorized") if first < at < end
                        )
                    if symbolic is None:
                        symbolic = _symbolic_threshold(form, inner, self.analyzer)
        if points:
            best = const(sorted(points)[len(points) // 2] if self.demanded(s) else min(points), s.loop_var.dtype)
            return best, best
        if symbolic is None or (known and isinstance(symbolic, IntImm)) or s.kind in _SPEED_KINDS:
            return None  # fast loops need constant extents
        end, cut = s.min + s.extent, symbolic
        if not self._at_most(cut, self.analyzer.simplify(end)):
            cut = min_(cut, end)
        if not self.analyzer.can_prove(cut >= s.min):
            cut = max_(cut, s.min)
        return self.analyzer.simplify(cut), symbolic

    def sides(self, part: Expr, s: For) -> tuple[Expr, ...]:
        """The inequalities at which ``part`` changes in ``s``: an equality has two; a remainder one or two, if it begins again so often."""
        if isinstance(part, FloorMod):
            with self.analyzer.scope():
                self.analyzer.bind(s.loop_var, s.domain)
                first, last = _quotients(part, self.analyzer)
            if first is None or last is None or last > first + 2:
                return ()
            return tuple(part.a >= quotient * part.b for quotient in range(first + 1, last + 1))
        both = isinstance(part, (EQ, NE)) and is_index(part.a.dtype)
        if both:
            return part.a <= part.b, part.a >= part.b
        return (_undivided(part) if uses_var(part, self.rounded(s)) else part,)

    def rounded(self, s: For) -> set[Var]:
        """The variables of loops in whose guards a size that is rounded up counts as that size: vectorized loops, and all if the user wants the loop cut."""
        loops = (n for n in statements(s) if isinstance(n, For))
        return {n.loop_var for n in loops if n.kind == "vectorized" or self.demanded(s)}

    def _at_most(self, a: Expr, b: Expr) -> bool:
        if isinstance(a, FloorDiv) and isinstance(b, FloorDiv):
            same = isinstance(a.b, IntImm) and isinstance(b.b, IntImm) and a.b.value == b.b.value > 0
            if same and self.analyzer.can_prove(a.a <= b.a):
                return True  # rounding down keeps the order
        return self.analyzer.can_prove(a <= b)

    def guards(self, s: For) -> Guards:
        """Parts of conditions under ``s`` that are worth eliminating, with the loops between. The parts of a loop run one after the other, so a
        parallel one is not cut where a serial one inside can be: of one iteration for each thread, each could be a part."""
        found: Guards = []
        cut_inside = set[Var]()
        demanded = self.demanded(s)
        wanted = demanded or s.kind in _SPEED_KINDS
        outer = set(free_vars(s.body))

        def add(condition: Expr, inner: dict[Var, Range]) -> None:
            for part in _conjuncts(condition):
                named = outer.union(inner).issuperset(
                    free_vars(part)
                )  # a name that is bound inside has no value before the loop
                is_own = uses_var(part, s.loop_var) and cut_inside.isdisjoint(free_vars(part))
                if named and is_own and not may_change(part, s.body, self.aliased):
                    found.append((part, inner))

        def visit(item: Any, inner: dict[Var, Range], speed: bool) -> None:
            if _GUARDS.isdisjoint(kinds(item)):
                return
            if isinstance(item, For):
                below = {**inner, item.loop_var: item.domain}
                if s.kind == "parallel" and item.kind == "serial":
                    cut_inside.add(item.loop_var)
                visit(item.body, below, speed or item.kind in _SPEED_KINDS)  # noqa: F821  (deleted only afterwards)
                return
            if isinstance(item, IfThenElse):
                likely = _likely(item.condition)
                # a guard around fast loops counts as well as one inside them
                fast = speed or any(isinstance(n, For) and n.kind in _SPEED_KINDS for n in statements(item.then_case))
                asked = (wanted or likely or fast) and item.else_case is None and not _is_start(item.condition)
                if asked or demanded:
                    add(item.condition, inner)
            for child in item.children():
                if isinstance(child, Stmt):
                    visit(child, inner, speed)  # noqa: F821  (deleted only afterwards)
                elif demanded:
                    for condition in map(_changing, walk(child)):
                        if condition is not None:
                            add(condition, inner)

        visit(s.body, {}, s.kind in _SPEED_KINDS)
        del visit  # it refers to itself, and would stay until garbage is collected
        return found


def _asked_again(item: Stmt, loops: dict[Var, For], speed: Collection[str]) -> Iterator[tuple[Expr, For]]:
    """The guards that depend on loops of the kinds ``speed`` alone and are evaluated in each iteration of a serial loop around these, with the
    innermost unrolled loop; where ``speed`` has vectorized loops, for the first lane."""
    if isinstance(item, For):
        loops = {**loops, item.loop_var: item}
    elif isinstance(item, IfThenElse):
        for part in _conjuncts(item.condition):
            used = [loop for var, loop in loops.items() if uses_var(part, var)]
            if {loop.kind for loop in used} == set(speed) and any(x.kind == "serial" for x in loops.values()):
                lanes = {loop.loop_var: loop.min for loop in used if loop.kind == "vectorized"}
                yield substitute(part, lanes), next(loop for loop in reversed(used) if loop.kind == "unrolled")
    for child in item.children():
        if isinstance(child, Stmt):
            yield from _asked_again(child, loops, speed)


def _undivided(part: Expr) -> Expr:
    """A part of a condition of whole strips, ``i < (n + 15) // 16``, as one of what these are of."""
    if not isinstance(part, LT) or not isinstance(part.b, FloorDiv) or not isinstance(part.b.b, IntImm):
        return part
    size = part.b.b
    return part.a * size + (size.value - 1) < part.b.a if size.value > 0 else part


def _in_terms_of(s: Any, left: Linear, step: int, whole: Var, within: Var) -> Any:
    """A guard or a choice that compares what is ``left`` with loops and constants: ``whole`` stands for it where these are multiples of ``step``,
    and else ``within``."""
    choice = None if isinstance(s, IfThenElse) else choice_parts(s)
    if choice is None and not isinstance(s, IfThenElse):
        return None
    parts = _conjuncts(choice[0] if choice else s.condition)
    made: list[Expr] = []
    for part in parts:
        bare = _undivided(part)
        rest = (
            linear(bare.a).minus(linear(bare.b)).add(left) if isinstance(bare, LT) and is_index(bare.a.dtype) else None
        )
        factors, known = rest.coefficients() if rest else None, left.coefficients()
        if rest is None or factors is None or known is None or not known.keys().isdisjoint(factors):
            made.append(part)
        else:
            number = within if any(n % step for n in (rest.const, *factors.values())) else whole
            made.append(rest.build(number.dtype) < number)
    if all(a is b for a, b in zip(made, parts)):
        return None
    condition = reduce(And, made)
    return s.replace(args=(condition, *s.args[1:])) if isinstance(s, Call) else s.replace(condition=condition)


def _without_hint(s: Stmt) -> Stmt:
    if not isinstance(s, For) or PARTITION_HINT not in s.annotations:
        return s
    return s.replace(annotations=frozendict({k: v for k, v in s.annotations.items() if k != PARTITION_HINT}))


def _likely(condition: Expr) -> bool:
    return any(isinstance(n, Call) and n.op == "likely" for n in walk(condition))


def _is_start(condition: Expr) -> bool:
    """An equality that selects one iteration (a reduction's init) is left to the code generator, which peels it."""
    return any(isinstance(c, EQ) for c in _conjuncts(condition))


def _sides_of(e: Any) -> tuple[Expr, Expr, Expr] | None:
    """A choice of two values as a condition and these: a selection, or the greater or lesser of two indices."""
    if isinstance(e, (Max, Min)) and is_index(e.dtype):
        return (e.a >= e.b if isinstance(e, Max) else e.a <= e.b), e.a, e.b
    return choice_parts(e)


def _changing(e: Any) -> Expr | None:
    """What is certain on one side of a point, of a choice or a remainder."""
    parts = _sides_of(e)
    return parts[0] if parts else e if isinstance(e, FloorMod) and is_index(e.dtype) else None


def _quotients(e: Any, known: Analyzer) -> tuple[int, int] | tuple[None, None]:
    """The least and the greatest of what ``e`` leaves the remainder of; None if these are not known."""
    low, high = known.bound_linear(linear(e.a))
    if low is None or high is None or not isinstance(e.b, IntImm) or e.b.value <= 0:
        return None, None
    return low // e.b.value, high // e.b.value


def _thresholds(form: tuple[int, Linear], known: Analyzer, is_vector: bool) -> list[int]:
    """The points at which, as the variable grows, the inequality starts or stops to be always, or ever, true."""
    coefficient, rest = form
    limits = [v for v in known.bound_linear(rest) if v is not None]
    if is_vector:
        limits = limits[1:]  # lanes that never run are left out; where some may, all are one vector under a mask
    if coefficient > 0:
        return [-(v // coefficient) for v in limits]
    return [v // -coefficient + 1 for v in limits]


def _symbolic_threshold(form: tuple[int, Linear], inner: Mapping[Var, Range], known: Analyzer) -> Expr | None:
    """The point at which an inequality that holds at first stops to be certain, in terms of loop invariants."""
    coefficient, rest = form
    if coefficient > 0:
        return None
    moving, fixed = rest.split(inner)
    worst = known.bound_linear(moving)[0] if moving.terms else 0
    if worst is None:
        return None
    fixed.const += worst - coefficient  # rest // size + 1 = (rest + size) // size
    dtype = next((f.dtype for factors, _ in fixed.items() for f in factors), INT32)
    return known.simplify(fixed.build(dtype) // -coefficient)


class _Decider:
    """Removes decided guards; knows the loops on the way down."""

    def __init__(self, analyzer: Analyzer, rounded: Collection[Var] = ()):
        self.analyzer = analyzer
        self.rounded = rounded

    def visit(self, s: Any) -> Any:
        if _GUARDS.isdisjoint(kinds(s)):
            return s
        if isinstance(s, For):
            with self.analyzer.scope():
                self.analyzer.bind(s.loop_var, s.domain, s.body)
                body = self.visit(s.body)
            if is_nop(body):
                return NOP
            return s.updated(body=body)
        if isinstance(s, IfThenElse):
            return self.guard(s)
        if isinstance(s, SeqStmt):
            made = [self.visit(x) for x in s.stmts]
            return s if all(a is b for a, b in zip(made, s.stmts)) else seq(x for x in made if not is_nop(x))
        if isinstance(s, Stmt):
            return s.map_children(self.visit)
        return rewrite(s, self.choice) if isinstance(s, Expr) else s

    def choice(self, e: Any) -> Expr | None:
        """The side of a decided choice, or one that asks only what is left open; others inside of it are decided, too.
        A remainder that does not begin again is a difference."""
        if isinstance(e, FloorMod) and is_index(e.dtype):
            first, last = _quotients(e, self.analyzer)
            return self.analyzer.simplify(e.a - first * e.b) if first is not None and first == last else None
        parts = _sides_of(e)
        if parts is None:
            return None
        known = self.analyzer.simplify(parts[0])
        condition = known if isinstance(known, IntImm) else self.left_open(parts[0])
        if isinstance(condition, IntImm):
            return rewrite(parts[1] if condition.value else parts[2], self.choice)
        if condition is parts[0] or isinstance(e, (Max, Min)):
            return None
        sides = [rewrite(side, self.choice) for side in parts[1:]]
        return Select(condition, *sides) if isinstance(e, Select) else e.replace(args=(condition, *sides))

    def left_open(self, condition: Expr) -> Expr:
        """A condition without the parts that hold here; itself if none of them is known to."""
        parts = _conjuncts(condition)
        plain = (_undivided(c) if uses_var(c, self.rounded) else c for c in parts)
        open_ = [c for c, bare in zip(parts, plain) if not is_const(self.analyzer.simplify(bare), 1)]
        return condition if len(open_) == len(parts) else all_of(open_)

    def guard(self, s: IfThenElse) -> Stmt:
        condition = rewrite(s.condition, lambda n: n.args[0] if isinstance(n, Call) and n.op == "likely" else None)
        simple = self.analyzer.simplify(condition)
        condition = simple if isinstance(simple, IntImm) else self.left_open(s.condition)
        if isinstance(condition, IntImm):
            taken = s.then_case if condition.value else s.else_case
            return NOP if taken is None else self.visit(taken)
        if condition is not s.condition:
            if _likely(s.condition):
                condition = Call("likely", (condition,), condition.dtype)
            s = s.replace(condition=condition)
        then_case = self.visit(s.then_case)
        other = None if s.else_case is None else self.visit(s.else_case)
        return (
            s if then_case is s.then_case and other is s.else_case else s.replace(then_case=then_case, else_case=other)
        )


@func_pass
def loop_partition(func: PrimFunc, everything: bool = False) -> PrimFunc:
    """A loop with a guard such as ``io * 16 + ii < n`` runs unguarded up to the last full iteration, then guarded; as an ``if``
    where no more than one iteration is left.

    Where a loop inside would ask in each of its iterations for how many of an unrolled loop are left, that is asked before, and there is
    straight code for each number, of strips of up to four; so it is for what is left of a panel of vectors in each iteration of a loop around,
    or of the last strip of vectors of which some are empty.

    Done where the guard is ``T.likely``, where vectorized or unrolled loops suffer from it, and for loops annotated
    ``pragma_loop_partition_hint``; with ``everything`` for every guard. In the last two cases also for equalities, for
    an ``if`` with an ``else``, for the conditions of ``T.Select`` and ``T.if_then_else``, for ``T.max`` and ``T.min`` of indices, and for
    remainders of indices that begin again once (``(i + 3) % n``).

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((10,), "float32")):
    ...     for i, j in T.grid(3, 4):
    ...         if T.likely(i * 4 + j < 10):
    ...             A[i * 4 + j] = 1.0
    ... ''')
    >>> tir.transform.loop_partition(f).body
    for i, j in T.grid(2, 4):
        A[i * 4 + j] = T.float32(1)
    for j in range(2):
        A[T.Mul(2, 4) + j] = T.float32(1)
    """
    cutter = _Cutter(everything, overlapping(func).union(*map(other_names, walk(func.body))))
    for var in dict.fromkeys(n for b in func.buffers() for size in b.shape for n in walk(size) if isinstance(n, Var)):
        cutter.analyzer.assume(var >= 0)  # a size
    return func.with_body(cutter.visit(func.body))
