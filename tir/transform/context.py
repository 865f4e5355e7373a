"""What a ``with PassContext(…)`` changes in the pipelines: passes left out, added, or given options."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from typing import Any

from ..checked import checked
from ..names import did_you_mean
from .passes import find
from .skip_vectorize import skip_vectorize

# passes that a program does without: it is right, and slower
OPTIONAL = (
    "common_subexpr_elim", "inject_double_buffer", "inject_ptx_async_copy", "loop_partition", "remove_no_op",
    "storage_rewrite", "unroll_loop", "vectorize_loop",
)  # fmt: skip
# passes of a phase of TVM's run before the first pass (0), or next to the last of these in the pipeline
_PHASES = {1: "before:narrow_datatype", 2: "after:unroll_loop", 3: "after:remove_no_op"}


def _boolean(key: str, value: Any) -> bool:
    if not isinstance(value, (bool, int)):
        raise TypeError(f"{key} is a bool, not {value!r}")
    return bool(value)


def _left_out(*names: str) -> Callable[[str, Any], Callable[[list[Any]], list[Any]]]:
    def read(key: str, value: Any) -> Callable[[list[Any]], list[Any]]:
        off = _boolean(key, value)
        return lambda passes: [q for p in passes for q in _without(p, names)] if off else passes

    return read


def _without(step: Any, names: Iterable[str]) -> list[Any]:
    name = getattr(step, "name", "")
    if name not in names:
        return [step]
    return [skip_vectorize] if name == "vectorize_loop" else []


def _configured(name: str, **options: tuple[str, type]) -> Callable[[str, Any], Callable[[list[Any]], list[Any]]]:
    """A dictionary of options of pass ``name``: by TVM's name, ours and its type."""

    def read(key: str, value: Any) -> Callable[[list[Any]], list[Any]]:
        if not isinstance(value, Mapping):
            raise TypeError(f"{key} is a dict with {', '.join(options)}, not {value!r}")
        chosen = {}
        for option, given in value.items():
            if option not in options:
                raise ValueError(f"{key} has no option {option!r} here; it has {', '.join(options)}")
            ours, kind = options[option]
            if not isinstance(given, int) or (kind is bool and given not in (0, 1)):
                raise TypeError(f"{option} of {key} is of type {kind.__name__}, not {given!r}")
            chosen[ours] = kind(given)
        return lambda passes: [p.configured(**chosen) if getattr(p, "name", "") == name else p for p in passes]

    return read


def _added(key: str, value: Any) -> Callable[[list[Any]], list[Any]]:
    given = value if isinstance(value, (list, tuple)) else [value]
    pairs: list[Any] = [tuple(pair) if isinstance(pair, (list, tuple)) else (pair,) for pair in given]
    for pair in pairs:
        if len(pair) != 2 or pair[0] not in (0, *_PHASES) or not callable(pair[1]):
            raise TypeError(f"{key} is a list of (phase, pass), with a phase from 0 to {max(_PHASES)}, not {value!r}")

    def apply(passes: list[Any]) -> list[Any]:
        from .pipeline import inserted

        for phase, place in _PHASES.items():
            extra = [p for at, p in pairs if at == phase]
            if extra:
                passes = inserted(passes, {place: extra})
        return [*(p for at, p in pairs if at == 0), *passes]

    return apply


# key -> what reads its value and gives the change of a pipeline
KEYS: dict[str, Callable[[str, Any], Callable[[list[Any]], list[Any]]]] = {
    "tir.UnrollLoop": _configured(
        "unroll_loop", auto_max_step=("auto_max_step", int), explicit_unroll=("explicit", bool)
    ),
    "tir.LoopPartition": _configured("loop_partition", partition_const_loop=("everything", bool)),
    "tir.add_lower_pass": _added,
    "tir.disable_cse_tir": _left_out("common_subexpr_elim"),
    "tir.disable_storage_rewrite": _left_out("storage_rewrite"),
    "tir.disable_vectorize": _left_out("vectorize_loop"),
}


class PassContext:
    """Changes how programs are lowered and built inside a ``with``, by TVM's keys.

    ``config`` knows ``tir.disable_vectorize``, ``tir.disable_storage_rewrite``, ``tir.disable_cse_tir`` (bools),
    ``tir.UnrollLoop`` (``auto_max_step``, ``explicit_unroll``), ``tir.LoopPartition`` (``partition_const_loop``) and
    ``tir.add_lower_pass``: a list of ``(phase, pass)``, run before all (0), after the program is flat (1), after loops
    are vectors and copies (2), and after what does nothing went away (3). ``disabled_pass`` leaves out passes that only
    make a program faster. ``opt_level`` is accepted and ignored: every build optimises. Contexts nest; the inner one
    comes last. Pipelines that are given as a list (``tir.lower(passes=…)``) stay as they are.

    Raises ``ValueError`` for another key, option or pass, ``TypeError`` for a value of another type.

    >>> from tir.transform import PassContext, cpu_pipeline
    >>> with PassContext(config={"tir.disable_vectorize": True}):
    ...     [p.name for p in cpu_pipeline() if "vector" in p.name]
    ['skip_vectorize']
    """

    @checked
    def __init__(
        self,
        opt_level: int = 2,
        required_pass: Iterable[str] = (),
        disabled_pass: Iterable[str] = (),
        instruments: Iterable[Any] = (),
        config: Mapping[str, Any] | None = None,
    ):
        if required_pass or instruments:
            raise ValueError(
                "required_pass and instruments are not known here: passes go in by tir.lower(insert=…), and "
                "TIR_DUMP writes every stage"
            )
        self.opt_level = opt_level
        self.config = dict(config or {})
        self._changes = [_reader(key)(key, value) for key, value in self.config.items()]
        disabled = [_optional(name) for name in disabled_pass or ()]
        if disabled:
            self._changes.append(_left_out(*disabled)("disabled_pass", True))
        self._tokens: list[Any] = []

    @staticmethod
    def current() -> PassContext:
        """The innermost context in force; one without any effect outside of all."""
        return (_ENTERED.get() or (PassContext(),))[-1]

    def __enter__(self) -> PassContext:
        self._tokens.append(_ENTERED.set((*_ENTERED.get(), self)))
        return self

    def __exit__(self, *error: object) -> None:
        _ENTERED.reset(self._tokens.pop())

    def changed(self, passes: list[Any]) -> list[Any]:
        """``passes`` as this context wants them."""
        for change in self._changes:
            passes = change(passes)
        return passes


_ENTERED: ContextVar[tuple[PassContext, ...]] = ContextVar("entered", default=())


def in_context(passes: list[Any]) -> list[Any]:
    """``passes`` as the contexts in force want them."""
    for context in _ENTERED.get():
        passes = context.changed(passes)
    return passes


def _reader(key: str) -> Callable[[str, Any], Callable[[list[Any]], list[Any]]]:
    if key not in KEYS:
        hint = did_you_mean(key, KEYS) or "."
        raise ValueError(f"there is no pass configuration {key}{hint} Known are {', '.join(KEYS)}.")
    return KEYS[key]


def _optional(name: str) -> str:
    """Our name of a pass that may be left out."""
    short = name.rpartition(".")[2]
    ours = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", short).lower().removesuffix("_tir")
    if ours not in OPTIONAL:
        raise ValueError(f"the pass {name} cannot be left out; these can: {', '.join(OPTIONAL)}")
    return find(ours).name
