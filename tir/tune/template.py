"""Templates: a schedule with knobs, in the manner of AutoTVM.

A template is a function that defines knobs in a configuration and schedules by their values. It is run once to learn the
knobs, and again for each configuration that is measured.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import math
import random
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..arith.divide import divisors
from ..checked import checked
from ..errors import TirError
from ..schedule import Schedule
from ..schedule.handles import LoopRV
from .drawing import Source
from .faults import Faults

TRIED = 1000  # configurations of which the first that can be scheduled is trial 0


@dataclass(frozen=True)
class Split:
    """A value of ``define_split``: ``size`` has the extents of the parts, outermost first; -1 is what is left."""

    size: tuple[int, ...]

    def apply(self, sch: Any, op: Any, axis: Any) -> list[Any]:
        """Split ``axis`` of a stage (``sch`` a stage schedule, ``op`` its tensor) or a loop of a block schedule; the
        parts, outermost first."""
        if isinstance(sch, Schedule):
            return list(sch.split(axis, [None, *self.size[1:]]))
        parts: list[Any] = []
        for k in range(1, len(self.size)):
            outer, axis = sch[op].split(axis, factor=math.prod(self.size[k:]))
            parts.append(outer)
        return [*parts, axis]


@dataclass(frozen=True)
class Reorder:
    """A value of ``define_reorder``: ``perm`` has the old place of each axis."""

    perm: tuple[int, ...]

    def apply(self, sch: Any, op: Any, axes: Sequence[Any]) -> list[Any]:
        """Put the axes in this order."""
        if len(axes) != len(self.perm):
            raise ValueError(f"the order is of {len(self.perm)} axes, and {len(axes)} were given")
        ordered = [axes[k] for k in self.perm]
        (sch if isinstance(sch, Schedule) else sch[op]).reorder(*ordered)
        return ordered


@dataclass(frozen=True)
class Annotate:
    """A value of ``define_annotate``: ``anns`` has what happens to each axis: ``vec``, ``unroll`` or ``none``."""

    anns: tuple[str, ...]

    def apply(
        self,
        sch: Any,
        op: Any,
        axes: Sequence[Any],
        axis_lens: Any = None,
        max_unroll: int | None = None,
        vec_size: Sequence[int] | None = None,
        cfg: Any = None,
        source: Any = None,
    ) -> list[Any]:
        """Annotate the axes. An axis longer than ``max_unroll`` is not unrolled, one whose length is not in ``vec_size``
        not vectorized, where ``axis_lens`` says how long they are."""
        target = sch if isinstance(sch, Schedule) else sch[op]
        lengths = list(axis_lens) if axis_lens else [None] * len(self.anns)
        for ann, axis, length in zip(self.anns, axes, lengths):
            long = length is not None and max_unroll is not None and length > max_unroll
            odd = length is not None and vec_size is not None and length not in vec_size
            if ann == "unroll" and not long:
                target.unroll(axis)
            elif ann == "vec" and not odd:
                target.vectorize(axis)
        return list(axes)


@dataclass(frozen=True)
class Knob:
    """A value of ``define_knob``."""

    val: Any


class Config:
    """The knobs of a template, and the value of each that ``wanted`` selects by number (default: the first).

    ``cfg["tile_x"]`` is a value; ``len(cfg)`` the number of configurations.

    >>> cfg = Config()
    >>> cfg.define_split("tile", 8, num_outputs=2)
    >>> cfg.define_knob("unroll", [0, 1])
    >>> len(cfg), cfg["tile"].size, cfg["unroll"].val
    (8, (-1, 1), 0)
    """

    @checked
    def __init__(self, wanted: Mapping[str, int] | None = None, is_fallback: bool = False):
        self.space_map: dict[str, list[Any]] = {}
        self.wanted = dict(wanted or {})
        self.is_fallback = is_fallback
        self.flop = 0.0
        self._own: dict[str, Any] = {}

    # ------------------------------------------------------------ definitions

    @checked
    def define_split(
        self,
        name: str,
        axis: Any,
        policy: str = "factors",
        num_outputs: int = 2,
        *,
        filter: Callable[[Split], bool] | None = None,
        max_factor: int | None = None,
        no_tail: bool = True,
        candidate: Sequence[Sequence[int]] | None = None,
        **_other: Any,
    ) -> None:
        """How an axis (or its extent) is split into ``num_outputs`` parts. ``policy``: ``factors`` (all that divide it),
        ``power2``, ``verbose`` (both), or ``candidate``, a list of sizes. ``filter`` keeps those that it is true of."""
        extent = extent_of(axis)
        if policy == "candidate":
            sizes = [tuple(map(int, one)) for one in candidate or ()]
        else:
            inner = _inner_sizes(extent, policy)
            inner = [f for f in inner if max_factor is None or f <= max_factor]
            sizes = [
                (-1, *tail)
                for tail in itertools.product(inner, repeat=num_outputs - 1)
                if math.prod(tail) <= extent and (policy != "factors" and not no_tail or extent % math.prod(tail) == 0)
            ]
        made = [Split(size) for size in sizes]
        self._define(name, [one for one in made if filter is None or filter(one)])

    @checked
    def define_knob(self, name: str, candidate: Sequence[Any]) -> None:
        """One of the values of a list: ``cfg[name].val``."""
        self._define(name, [Knob(value) for value in candidate])

    @checked
    def define_reorder(self, name: str, axes: Sequence[Any], policy: str = "all", **options: Any) -> None:
        """An order of axes. ``policy``: ``all`` orders, ``identity``, or ``candidate=[[axis, …], …]``."""
        places = range(len(axes))
        if policy == "identity":
            orders = [tuple(places)]
        elif policy == "candidate":
            at = {id(axis): k for k, axis in enumerate(axes)}
            orders = [tuple(at[id(axis)] for axis in one) for one in options["candidate"]]
        elif policy == "all":
            orders = list(itertools.permutations(places))
        else:
            raise ValueError(f"define_reorder has the policies all, identity and candidate, not {policy!r}")
        self._define(name, [Reorder(order) for order in orders])

    def define_annotate(self, name: str, axes: Sequence[Any], policy: str = "try_unroll", **_options: Any) -> None:
        """What happens to axes. ``policy``: ``unroll``, ``vec`` (all of them), ``try_unroll``, ``try_vec`` (the last one or
        none), ``try_unroll_vec`` (either)."""
        ways = {"unroll": ["unroll"], "vec": ["vec"], "try_unroll": ["none", "unroll"], "try_vec": ["none", "vec"]}
        ways["try_unroll_vec"] = ["none", "unroll", "vec"]
        if policy not in ways:
            raise ValueError(f"define_annotate has the policies {', '.join(ways)}, not {policy!r}")
        if policy in ("unroll", "vec"):
            found = [Annotate((policy,) * len(axes))]
        else:
            found = [Annotate((*("none" for _ in axes[1:]), way)) for way in ways[policy]]
        self._define(name, found)

    def _define(self, name: str, values: list[Any]) -> None:
        if not values:
            raise TirError(f"knob {name} has no value: its filter, or the extent of its axis, leaves none")
        self.space_map[name] = values

    def chosen(self, wanted: Mapping[str, int]) -> Config:
        """The configuration of these knobs that ``wanted`` selects."""
        made = Config(wanted)
        made.space_map = self.space_map
        return made

    # ------------------------------------------------------------ use

    def __getitem__(self, name: str) -> Any:
        if name in self._own:
            return self._own[name]
        if name not in self.space_map:
            raise KeyError(f"no knob {name!r} is defined; there are {', '.join(self.space_map) or 'none'}")
        values = self.space_map[name]
        return values[min(self.wanted.get(name, 0), len(values) - 1)]

    def __setitem__(self, name: str, value: Any) -> None:
        self._own[name] = value

    def __contains__(self, name: str) -> bool:
        return name in self._own or name in self.space_map

    def __len__(self) -> int:
        return math.prod(len(values) for values in self.space_map.values())

    def fallback_split(self, name: str, constraints: Sequence[int]) -> None:
        """Choose the split whose parts are nearest to ``constraints`` from below; -1 is free."""
        fitting = [
            one for one in self.space_map[name] if all(c < 0 or s <= c for s, c in zip(one.size[1:], constraints[1:]))
        ]
        self[name] = max(fitting or self.space_map[name], key=lambda one: math.prod(one.size[1:]))

    def axis(self, axis: Any) -> Any:
        """``axis`` itself."""
        return axis

    def add_flop(self, flop: float) -> None:
        """Count operations, for the callbacks that show rates."""
        self.flop += float(flop)

    def valid(self) -> bool:
        """Every configuration that is run is valid."""
        return True

    def __repr__(self) -> str:
        if not self.wanted and not self._own and not self.is_fallback:
            rows = (f"  {name}: {len(values)} values, the first {values[0]}" for name, values in self.space_map.items())
            return "\n".join([f"{len(self)} configurations of", *rows])
        chosen = ", ".join(f"{name}={self[name]}" for name in self.space_map)
        return f"[{chosen}]"


def extent_of(axis: Any) -> int:
    """The extent of an axis: an integer, or an axis of a stage. Raises ``TirError`` for one that is not constant."""
    if isinstance(axis, LoopRV):
        raise TirError(f"pass the extent of loop {axis.name}: sch.get(loop).extent")
    found = getattr(getattr(axis, "dom", None), "extent", axis)
    value = getattr(found, "value", found)
    if not isinstance(value, int):
        raise TirError(f"axis {axis} has no constant extent: {found}")
    return value


def _inner_sizes(extent: int, policy: str) -> list[int]:
    factors = divisors(extent) if extent else []
    powers = [1 << k for k in range(extent.bit_length())]
    found = {"factors": factors, "power2": powers, "verbose": sorted({*factors, *powers})}
    if policy not in found:
        raise ValueError(f"define_split has the policies factors, power2, verbose and candidate, not {policy!r}")
    return found[policy]


# ---------------------------------------------------------------- templates

_CONFIGS: list[Config] = []
_TEMPLATES: dict[str, Template] = {}
HISTORY: list[Callable[[str, tuple[Any, ...]], Mapping[str, int] | None]] = []  # where configurations are looked up


def get_config() -> Config:
    """The configuration of the template that is being run."""
    if not _CONFIGS:
        raise TirError("get_config() has a meaning inside of a template only")
    return _CONFIGS[-1]


class Template:
    """A function that schedules by a configuration. Calling it uses the best one that is known (``apply_history_best``),
    else the first value of each knob."""

    def __init__(self, name: str, function: Callable[..., Any]):
        self.name, self.function = name, function
        functools.update_wrapper(self, function)
        self._takes_config = next(iter(inspect.signature(function).parameters), "") == "cfg"

    def __call__(self, *args: Any) -> Any:
        for look in reversed(HISTORY):
            wanted = look(self.name, args)
            if wanted is not None:
                return self.run(args, Config(wanted))
        return self.run(args, Config(is_fallback=True))

    def run(self, args: Sequence[Any], config: Config) -> Any:
        """What the function returns for a configuration."""
        with _configured(config):
            return self.function(config, *args) if self._takes_config else self.function(*args)

    def schedule(self, args: Sequence[Any], config: Config) -> Schedule:
        """The block schedule of a configuration. Raises ``TirError`` for a step that is refused."""
        made = self.run(args, config)
        if isinstance(made, Schedule):
            return made
        stages, buffers = made
        return stages.to_schedule(buffers)


@contextlib.contextmanager
def _configured(config: Config) -> Generator[None, None, None]:
    _CONFIGS.append(config)
    try:
        yield
    finally:
        _CONFIGS.pop()


def template(name: Any) -> Any:
    """Make a function a template: ``@template("name")``, or ``@template`` alone.

    It returns a block schedule, or a stage schedule and its arguments. The configuration is its first parameter, if that
    is called ``cfg``, and ``get_config()``.

    >>> import tir
    >>> from tir.library import elementwise
    >>> @template
    ... def scale(cfg, n):
    ...     sch = tir.Schedule(elementwise.scale_add(n))
    ...     (loop,) = sch.get_loops(sch.get_child_blocks("root")[0])
    ...     cfg.define_split("tile", n, num_outputs=2)
    ...     _ = cfg["tile"].apply(sch, None, loop)
    ...     return sch
    >>> len(knobs_of(scale, (64,)))
    7
    """
    if isinstance(name, str):
        return lambda function: _register(name, function)
    return _register(name.__name__, name)


def _register(name: str, function: Callable[..., Any]) -> Template:
    made = _TEMPLATES[name] = Template(name, function)
    return made


def find(name: str) -> Template:
    """The template of a name. Raises ``KeyError`` naming those that there are."""
    if name not in _TEMPLATES:
        raise KeyError(f"no template {name!r}; there are {', '.join(_TEMPLATES) or 'none'}")
    return _TEMPLATES[name]


def knobs_of(one: Template, args: Sequence[Any]) -> Config:
    """The knobs of a template, from a run with the first value of each."""
    config = Config()
    one.run(args, config)
    return config


class TemplateSource(Source):
    """The schedules of a template: ``order`` is ``random`` or ``grid``."""

    def __init__(self, one: Template, args: Sequence[Any], order: str):
        self.template, self.args, self.ordered = one, tuple(args), order == "grid"
        self.space = knobs_of(one, args)
        self.wanted: dict[int, dict[str, int]] = {}  # by the identity of a schedule, which `_kept` keeps alive
        self.faults = Faults()
        self._refused: TirError | None = None  # the last
        self._kept: list[Schedule] = []
        self._drawn: set[int] = set()
        self._at = 0

    def draw(self, generator: random.Random, count: int) -> Iterator[Schedule]:
        size = len(self.space)
        for _ in range(count):
            if len(self._drawn) == size:
                return
            if self.ordered:
                number, self._at = self._at, self._at + 1
            else:
                number = generator.randrange(size)
            if number not in self._drawn:
                self._drawn.add(number)
                yield from self._made(self._config(number))

    def neighbours(self, sch: Schedule) -> Iterator[Schedule]:
        """The schedules of configurations that differ in one knob by one."""
        wanted = self.wanted.get(id(sch))
        if wanted is None or self.ordered:
            return
        for name, values in self.space.space_map.items():
            for at in (wanted[name] - 1, wanted[name] + 1):
                if 0 <= at < len(values):
                    yield from self._made({**wanted, name: at})

    def describe(self, sch: Schedule) -> list[Any] | None:
        """What the learner sees of a schedule: the numbers of its values, and the sizes of its splits."""
        wanted = self.wanted.get(id(sch))
        if wanted is None:
            return None
        found: list[Any] = []
        for name, at in wanted.items():
            value = self.space.space_map[name][at]
            found.append([abs(s) for s in value.size] if isinstance(value, Split) else at)
        return found

    def default(self) -> Schedule:
        """The first value of each knob; where a step of that is refused, the first configuration of which none is. Raises
        ``TirError`` if there is no such among the first ``TRIED``."""
        numbers = range(min(len(self.space), TRIED))
        made = next((sch for number in numbers for sch in self._made(self._config(number))), None)
        if made is None:
            raised = "".join(f"; {fault.where} raised {fault.error}" for fault in self.faults)
            raise TirError(
                f"no configuration of template {self.template.name} makes a schedule: {self._refused}{raised}"
            )
        return made

    def _config(self, number: int) -> dict[str, int]:
        wanted: dict[str, int] = {}
        for name, values in self.space.space_map.items():
            number, wanted[name] = divmod(number, len(values))
        return wanted

    def _made(self, wanted: dict[str, int]) -> Iterator[Schedule]:
        try:
            sch = self.template.schedule(self.args, Config(wanted))
        except TirError as error:
            self._refused = error
            return
        except Exception as error:
            self.faults.add(f"template {self.template.name}", error)
            return
        self.wanted[id(sch)] = wanted
        self._kept.append(sch)
        yield sch
