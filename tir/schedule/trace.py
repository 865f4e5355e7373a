"""The trace of a schedule: calls in order, with their results. It replays, prints as Python, and saves as JSON."""

from __future__ import annotations

import json
import keyword
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from .. import extension
from ..arith.index_map import IndexMap, RangesMap
from ..errors import TirError
from ..expr import Expr, IntImm, Var
from ..node import frozendict, record
from ..visit import free_vars, has_load, substitute
from .handles import BlockRV, ExprRV, LoopRV
from .primitive import QUERIES, lookup
from .primitive_arguments import shown

if TYPE_CHECKING:
    from .schedule import Schedule


@record
class Entry:
    """One recorded call: arguments by parameter name, and the result (handles, integers, lists of them, or None)."""

    name: str
    args: Mapping[str, Any]
    result: Any


def results_of(value: Any) -> list[Any]:
    """The handles in a result, in order."""
    if isinstance(value, (list, tuple)):
        return [h for item in value for h in results_of(item)]
    return [value] if isinstance(value, (LoopRV, BlockRV, ExprRV)) else []


class Trace:
    """A recorded schedule. ``print(trace)`` shows it as Python.

    >>> import tir
    >>> sch = tir.Schedule(tir.library.rows.row_sum(4, 8))
    >>> sch.parallel("i")
    >>> print(sch.trace)
    def apply_trace(sch: tir.Schedule) -> None:
        sch.parallel("i")
    >>> again = tir.Schedule(tir.library.rows.row_sum(4, 8))
    >>> sch.trace.apply_to_schedule(again)
    >>> again
    Schedule of main after 1 step
    """

    def __init__(self, steps: Sequence[Entry]):
        self.steps = tuple(steps)

    @property
    def insts(self) -> tuple[Entry, ...]:
        """The recorded calls."""
        return self.steps

    def __len__(self) -> int:
        return len(self.steps)

    def __str__(self) -> str:
        return self.as_python()

    def __repr__(self) -> str:
        return f"Trace of {len(self.steps)} call{'' if len(self.steps) == 1 else 's'}"

    def _repr_html_(self) -> str:
        from ..script.highlight import to_html

        return to_html(self.as_python())

    def show(self) -> None:
        """Print the record as Python."""
        print(self.as_python())

    def as_python(self, name: str = "apply_trace") -> str:
        """A function that applies the trace to a schedule of the same (or a similar) program, whose symbolic sizes in arguments
        it takes by their names.

        Queries (``get_loops`` …) whose results no later call uses are left out. Raises ``TirError`` when an argument has no
        Python spelling.
        """
        steps = _used(self.steps, QUERIES.__contains__)
        writer = _Writer(v.name for step in steps for v in _sizes_in(step.args))
        lines = [f"def {name}(sch: tir.Schedule) -> None:"]
        lines += [f"    {line}" for step in steps for line in writer.lines(step)] or ["    pass"]
        return "\n".join(lines) + "\n"

    def apply_to_schedule(self, sch: Schedule, remove_postproc: bool = False, decision_provider: Any = None) -> None:
        """Replay on ``sch``. ``decision_provider(entry, args, decision)`` may override the decision of a sampling step.

        Raises ``ScheduleError`` if a step is refused; the steps before it stay applied.
        """
        replay_steps(self._before_postproc() if remove_postproc else self.steps, sch, {}, decision_provider)

    def replay(self, mod: Any, **options: Any) -> Schedule:
        """A new schedule of ``mod`` with the record applied; ``options`` as for ``Schedule``."""
        from .schedule import Schedule

        sch = Schedule(mod, **options)
        self.apply_to_schedule(sch)
        return sch

    @property
    def decisions(self) -> dict[Entry, Any]:
        """The decision of each sampling call."""
        return {s: s.args["decision"] for s in self.steps if "decision" in s.args}

    def get_decision(self, inst: Entry) -> Any:
        """The decision of a call of this trace; None if it is not a sampling call."""
        return inst.args.get("decision")

    def with_decision(self, inst: int | Entry, decision: Any, remove_postproc: bool = False) -> Trace:
        """The record with the decision of a call, or of call number ``inst``, replaced.

        ``remove_postproc``: only up to ``enter_postproc``.
        """
        steps = list(self._before_postproc() if remove_postproc else self.steps)
        number = inst if isinstance(inst, int) else next(n for n, s in enumerate(steps) if s is inst)
        entry = steps[number]
        steps[number] = Entry(entry.name, {**entry.args, "decision": decision}, entry.result)
        return Trace(steps)

    def simplified(self, remove_postproc: bool = False) -> Trace:
        """The trace without calls that change nothing and whose results no later call uses (``get_loops`` …).

        ``remove_postproc``: only up to ``enter_postproc``.
        """
        steps = self._before_postproc() if remove_postproc else self.steps
        return Trace(_used(steps, lambda name: name in QUERIES or name.startswith("sample_")))

    def _before_postproc(self) -> tuple[Entry, ...]:
        return tuple(takewhile(lambda s: s.name != "enter_postproc", self.steps))

    def as_json(self) -> list[Any]:
        """The record as plain data for ``json.dump``; raises ``TirError`` for an argument that is not."""
        numbers: dict[Any, int] = {}
        found = []
        for step in self.steps:
            args = {k: _to_json(v, numbers, step.name) for k, v in step.args.items()}
            for handle in results_of(step.result):
                numbers.setdefault(_identity(handle), len(numbers))
            found.append({"name": step.name, "args": args, "result": _to_json(step.result, numbers, step.name)})
        json.dumps(found)
        return found

    @staticmethod
    def from_json(data: Any) -> Trace:
        """The trace from the result of ``as_json`` (or its text). Raises ``TirError`` for anything else."""
        known: dict[int, Any] = {}
        try:
            items = json.loads(data) if isinstance(data, str) else data
            return Trace([_entry(item, known) for item in _checked(items, list, "the record")])
        except (ValueError, RecursionError) as error:  # no JSON, or nested without end
            raise TirError(f"this is no record of a schedule, as `as_json` gives it: {error!r}") from None

    @staticmethod
    def apply_json_to_schedule(data: Any, sch: Schedule) -> None:
        """Replay the result of ``as_json`` on ``sch``."""
        Trace.from_json(data).apply_to_schedule(sch)


def replay_steps(steps: Sequence[Entry], sch: Schedule, handles: dict[Any, Any], decision_provider: Any = None) -> None:
    """Replay recorded calls on ``sch``, as :meth:`Trace.apply_to_schedule` does. ``handles`` maps
    recorded handles to handles of ``sch``; it is updated in place."""
    for step in steps:
        sizes = sch.func.sizes
        args = {k: _map(v, handles, sizes) for k, v in step.args.items()}
        if decision_provider is not None and "decision" in args:
            args["decision"] = decision_provider(step, args, args["decision"])
        result = sch._apply_step(installed(step.name), args)
        for old, new in zip(results_of(step.result), results_of(result)):
            handles[_identity(old)] = new


def _used(steps: Sequence[Entry], is_idle: Callable[[str], bool]) -> list[Entry]:
    """The calls without those whose name ``is_idle`` and whose results no later call uses."""
    kept: list[Entry] = []
    live: set[Any] = set()  # handles that later calls use, and none before them gives anew
    for step in reversed(steps):
        given = {_identity(h) for h in results_of(step.result)}
        if is_idle(step.name) and live.isdisjoint(given):
            continue
        kept.append(step)
        live -= given
        live.update(_identity(h) for h in _handles_in(step.args))
    return kept[::-1]


def _handles_in(value: Any) -> list[Any]:
    """The handles in an argument, or from which it was computed."""
    if isinstance(value, Mapping):
        return [h for item in value.values() for h in _handles_in(item)]
    if isinstance(value, (list, tuple)):
        return [h for item in value for h in _handles_in(item)]
    if isinstance(value, ExprRV) and not value.is_result:
        return _handles_in(value.source[1:])
    return [value] if isinstance(value, (LoopRV, BlockRV, ExprRV)) else []


def installed(name: str) -> Any:
    found = lookup(name)
    if found is None:
        fails = extension.missing(extension.PRIMITIVES)
        raise TirError(f"the trace uses the primitive {shown(name)}, which is not installed here{fails}")
    return found


def _identity(handle: Any) -> Any:
    return id(handle) if isinstance(handle, ExprRV) else handle


def _sizes_in(value: Any) -> list[Var]:
    """The variables of the program in an argument."""
    if isinstance(value, Mapping):
        return [v for item in value.values() for v in _sizes_in(item)]
    if isinstance(value, (list, tuple)):
        return [v for item in value for v in _sizes_in(item)]
    if isinstance(value, RangesMap):
        return _sizes_in(value.ends)
    if isinstance(value, IndexMap):
        own = {*value.initial_indices}
        return [v for v in _sizes_in(value.final_indices) if v not in own]
    return list(free_vars(value)) if isinstance(value, Expr) else []


def _of_program(value: Any, sizes: Mapping[str, Var]) -> Any:
    """An argument, with ``sizes`` in the place of those in it that have their names."""
    values = {v: sizes[v.name] for v in _sizes_in(value) if v.name in sizes and sizes[v.name].dtype == v.dtype}
    if all(v is now for v, now in values.items()):
        return value
    if isinstance(value, RangesMap):
        return RangesMap(_of_program(value.ends, sizes))
    if isinstance(value, IndexMap):
        return value.replace(final_indices=tuple(substitute(e, values) for e in value.final_indices))
    return substitute(value, values)


def _map(value: Any, mapping: Mapping[Any, Any], sizes: Mapping[str, Var]) -> Any:
    """An argument with recorded handles replaced by the replay's, and sizes by ``sizes``; a handle that no recorded call
    returned becomes a name."""
    if isinstance(value, ExprRV):
        if value.is_result:
            return mapping.get(id(value), value)
        symbol, *operands = value.source
        a, b = (_map(o, mapping, sizes) for o in operands)
        try:
            return OPERATORS[symbol](a, b)
        except (ArithmeticError, TypeError) as error:  # another decision, or a damaged record
            raise TirError(f"the trace computes {shown(a)} {symbol} {shown(b)}: {error}") from None
    if isinstance(value, (LoopRV, BlockRV)):
        return mapping.get(value, value.name)
    if isinstance(value, (list, tuple)):
        return [_map(v, mapping, sizes) for v in value]
    return _of_program(value, sizes) if isinstance(value, (Expr, IndexMap, RangesMap)) else value


class _Writer:
    """Prints recorded calls, giving each result a variable named after what it is, and each of the program's ``sizes`` its name."""

    def __init__(self, sizes: Iterable[str]) -> None:
        self.names: dict[Any, str] = {}
        self.used: set[str] = {"sch", "tir", *sizes}
        self.sizes: dict[str, Var] = {}  # those that have been taken

    def lines(self, step: Entry) -> list[str]:
        new = {v.name: v for v in _sizes_in(step.args) if self.sizes.get(v.name) is not v}
        self.sizes.update(new)
        return [*(f'{name} = sch.func.sizes["{name}"]' for name in new), self.line(step)]

    def line(self, step: Entry) -> str:
        found = lookup(step.name)
        parts = []
        by_keyword = False
        for name, value in step.args.items():
            parameter = found.signature.parameters.get(name) if found else None
            if parameter is not None and parameter.kind is parameter.VAR_POSITIONAL:
                parts.extend(self.value(v) for v in value)
            elif parameter is None or parameter.kind is parameter.KEYWORD_ONLY or by_keyword or parts:
                by_keyword = True
                parts.append(f"{name}={self.value(value)}")
            else:
                parts.append(self.value(value))
        call = f"sch.{step.name}({', '.join(parts)})"
        if step.result is None or not results_of(step.result) and isinstance(step.result, (list, tuple)):
            return call
        return f"{self.target(step.result)} = {call}" if results_of(step.result) else call

    def target(self, result: Any) -> str:
        if isinstance(result, (list, tuple)):
            names = ", ".join(self.target(r) for r in result)
            return f"{names}," if len(result) == 1 else names
        base = re.sub(r"\W", "_", getattr(result, "name", "v")) or "v"
        if isinstance(result, BlockRV):
            base = f"block_{base}"
        name, number = base, 1
        while name in self.used or keyword.iskeyword(name):
            name, number = f"{base}_{number}" if not keyword.iskeyword(base) else f"{base}__{number}", number + 1
        known = self.names.get(_identity(result))
        if known is not None and not isinstance(result, ExprRV):
            return known
        self.used.add(name)
        self.names[_identity(result)] = name
        return name

    def value(self, value: Any) -> str:
        if isinstance(value, ExprRV):
            if value.is_result:
                return self.names.get(id(value), str(int(value)))
            symbol, a, b = value.source
            return f"({self.value(a)} {symbol} {self.value(b)})"
        if isinstance(value, (LoopRV, BlockRV)):
            return self.names.get(value) or repr(value.name)
        if isinstance(value, IntImm):
            return str(value.value) if not value.dtype.is_bool else str(bool(value.value))
        if isinstance(value, list):
            return "[" + ", ".join(self.value(v) for v in value) + "]"
        if isinstance(value, tuple):
            return "(" + ", ".join(self.value(v) for v in value) + ("," if len(value) == 1 else "") + ")"
        if isinstance(value, dict):
            return "{" + ", ".join(f"{self.value(k)}: {self.value(v)}" for k, v in value.items()) + "}"
        if isinstance(value, str):
            return json.dumps(value) if value.isascii() and value.isprintable() else repr(value)
        if hasattr(value, "as_python"):  # an index map: a lambda again
            return value.as_python()
        return str(int(value)) if isinstance(value, int) and not isinstance(value, bool) else repr(value)


def _handle_to_json(value: ExprRV | LoopRV | BlockRV, numbers: Mapping[Any, int], step: str) -> Any:
    if not isinstance(value, ExprRV):
        tag = "$loop" if isinstance(value, LoopRV) else "$block"
        return {tag: numbers.get(value, -1), "name": value.name, "func": value.func}
    if value.is_result:
        return {"$expr": numbers.get(id(value), -1), "value": int(value)}
    symbol, a, b = value.source
    return {"$op": symbol, "a": _to_json(a, numbers, step), "b": _to_json(b, numbers, step), "value": int(value)}


def _to_json(value: Any, numbers: Mapping[Any, int], step: str) -> Any:
    if isinstance(value, (ExprRV, LoopRV, BlockRV)):
        return _handle_to_json(value, numbers, step)
    if isinstance(value, IntImm):
        return value.value
    if isinstance(value, (list, tuple)):
        return [_to_json(v, numbers, step) for v in value]
    if isinstance(value, dict):
        return {str(k): _to_json(v, numbers, step) for k, v in value.items()}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    sizes = {v.name: str(v.dtype) for v in _sizes_in(value)}
    more: dict[str, Any] = {"sizes": sizes} if sizes else {}
    if isinstance(value, (IndexMap, RangesMap)):
        made = value if isinstance(value, IndexMap) else value.ends
        more |= {} if made is value else {"pairs": True}
        dtype = str(made.initial_indices[0].dtype) if made.initial_indices else "int32"
        return {"$index_map": made.as_python(), "dtype": dtype, **more}
    if isinstance(value, Expr) and not has_load(value):
        return {"$value": repr(value), **more}
    what = f"the expression `{value!r}`" if isinstance(value, Expr) else f"a {type(value).__name__}"
    raise TirError(f"{step}: {what} cannot be saved as JSON; use trace.as_python()")


def _checked(value: Any, kind: type | tuple[type, ...], what: str) -> Any:
    """``value``, checked against the type that the trace requires there. Raises ``TirError`` otherwise."""
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise TirError(f"this is no record of a schedule, as `as_json` gives it: {what} is {shown(value)}")
    return value


def _part(value: Mapping[str, Any], name: str, kind: type) -> Any:
    return _checked(value.get(name), kind, f"`{name}` of {shown(value)}")


def _entry(item: Any, known: dict[int, Any]) -> Entry:
    item = _checked(item, dict, "a call")
    name, args = _part(item, "name", str), _part(item, "args", dict)
    primitive = lookup(name)
    if primitive is not None:
        primitive.require_parameters(args)
    result = _from_json(item.get("result"), known)
    for part in result if isinstance(result, list) else []:
        _checked(part, (LoopRV, BlockRV, ExprRV, type(None)), f"a result of {name}")
    return Entry(name, {k: _from_json(v, known) for k, v in args.items()}, result)


def _from_json(value: Any, known: dict[int, Any]) -> Any:
    if isinstance(value, list):
        return [_from_json(v, known) for v in value]
    if not isinstance(value, dict):
        return value
    if "$op" in value:
        if _part(value, "$op", str) not in OPERATORS:
            raise TirError(f"this is no record of a schedule: the operator {shown(value['$op'])} is none of its own")
        operands = [_from_json(value.get(side), known) for side in ("a", "b")]
        for operand in operands:
            _checked(operand, int, "an operand")
        return ExprRV(_part(value, "value", int), (value["$op"], *operands))
    if "$index_map" in value:
        made = index_map_of(_part(value, "$index_map", str), value.get("dtype", "int32"), _sizes(value))
        return RangesMap(made) if value.get("pairs") else made
    if "$value" in value:
        return function_of(f"lambda: {_part(value, '$value', str)}", _sizes(value))()
    for tag, make in (("$loop", _loop), ("$block", _block), ("$expr", _number)):
        if tag in value:
            number = _part(value, tag, int)
            if number < 0:
                return make(value)
            if number not in known:
                known[number] = make(value)
            return _checked(known[number], _HANDLES[tag], f"number {number}, said to be a {tag[1:]},")
    return {k: _from_json(v, known) for k, v in value.items()}


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
}
_HANDLES = {"$loop": LoopRV, "$block": BlockRV, "$expr": ExprRV}


def _sizes(value: Mapping[str, Any]) -> dict[str, Var]:
    """New variables for the sizes that a recorded argument names."""
    given = _checked(value.get("sizes", {}), dict, "`sizes`")
    return {name: Var(name, _checked(dtype, str, "a data type")) for name, dtype in given.items()}


def function_of(text: str, sizes: Mapping[str, Var]) -> Callable[..., Any]:
    """The function of a lambda's text, of arithmetic on its arguments and on ``sizes``. Raises ``ParseError`` for another."""
    from ..script.environment import ModuleNames
    from ..script.texts import parse_lambda

    separator = ModuleNames({"IndexMap": ModuleNames({"AXIS_SEPARATOR": IndexMap.AXIS_SEPARATOR})})
    return parse_lambda(text, {"tir": separator, **sizes})


def index_map_of(text: str, dtype: str = "int32", sizes: Mapping[str, Var] = frozendict()) -> IndexMap:
    """The index map of a lambda's text. Raises ``TirError`` for anything but arithmetic on the lambda's arguments and ``sizes``."""
    try:
        return IndexMap.from_func(function_of(text, sizes), index_dtype=dtype)
    except (TirError, ValueError, TypeError, ArithmeticError, RecursionError) as error:
        raise TirError(f"`{shown(text)}` is not an index map: {error}") from error


def _loop(value: Any) -> LoopRV:
    return LoopRV(Var(_part(value, "name", str)), _part(value, "func", str))


def _block(value: Any) -> BlockRV:
    return BlockRV(_part(value, "name", str), _part(value, "func", str))


def _number(value: Any) -> ExprRV:
    return ExprRV(_part(value, "value", int))
