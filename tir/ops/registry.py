"""The table of operators: each a function from tensors to tensors, with a NumPy meaning and cases to judge it by.

A file of this package whose functions have ``@operator`` is found by itself, as are modules that an installed package
names in the entry point group ``tir.operators``.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Real
from types import MappingProxyType
from typing import Any, ParamSpec, TypeVar

from .. import Expr, extension
from ..extension import checked
from ..te import Tensor, TensorExpressionError, error, requirements, user_place, users_errors
from .cases import Argument, Case, arg, case, example
from .contract import Contract
from .element_places import chosen
from .spelling import respelled

__all__ = ["Argument", "Case", "Operator", "arg", "attributes", "case", "complete", "find", "operator", "operators"]

P = ParamSpec("P")
R = TypeVar("R")

_TOLERANCE = 16.0


@dataclass(frozen=True, eq=False)
class Operator:
    """An operator: ``function`` from tensors to a tensor, or to a tuple of them.

    ``name`` is dotted for one of a namespace (``nn.conv2d``); ``aliases`` are other names of it, as complete.
    ``contract`` says the shapes of its tensors; where no text can, ``unstated`` says why. ``reference`` takes NumPy arrays, those of floats as float64, and the attributes of the call; ``tolerance`` is how far
    a result may be off, in units of the last place of the coarsest float type in the call, at 1 or at the value if that
    is larger.
    """

    name: str
    function: Callable[..., Any]
    section: str
    reference: Callable[..., Any]
    aliases: tuple[str, ...]
    cases: tuple[Case, ...]
    tolerance: float
    contract: Contract | None = None
    unstated: str = ""

    @property
    def tensors(self) -> tuple[str, ...]:
        """The parameters that are tensors."""
        return tensors_of(self.signature)

    @functools.cached_property
    def signature(self) -> inspect.Signature:
        """The parameters of the function."""
        return inspect.signature(self.function)

    @property
    def summary(self) -> str:
        """The first line of the docstring."""
        return (inspect.getdoc(self.function) or "").partition("\n")[0]

    def __repr__(self) -> str:
        return f"Operator({self.name})"


class complete:
    """A reference that is given every parameter of its operator, in order: those that a call leaves out as the operator's
    defaults, so that the reference need not have them too."""

    def __init__(self, function: Callable[..., Any]):
        self.function = function

    def of(self, signature: inspect.Signature) -> Callable[..., Any]:
        """The reference of an operator of this signature."""

        def reference(*args: Any, **attributes: Any) -> Any:
            given = signature.bind(*args, **attributes)
            given.apply_defaults()
            return self.function(*given.args, **given.kwargs)

        return reference


OPERATORS: dict[str, Operator] = {}
_NAMES: dict[str, Operator] = {}  # aliases too


@checked
def operator(
    *,
    section: str,
    reference: Callable[..., Any] | complete,
    cases: Iterable[Case],
    shapes: str | None = None,
    unstated: str = "",
    gives: tuple[int, ...] | list[tuple[int, ...]] | None = None,
    aliases: Sequence[str] = (),
    tolerance: float | None = None,
    namespace: str = "",
    name: str | None = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Add a function to the table, under its own name or ``name``, in ``namespace`` (``"nn"``) or at the top.

    The parameters that are annotated ``te.Tensor``, ``bool``, ``int``, ``float``, ``str``, ``Sequence[float]`` or ``Literal["a", "b"]`` (or
    one of these or None) are checked to be that, and tensors to have the ``shapes`` of a contract (:mod:`tir.ops.contract`); errors that the function raises show the
    call and the user's line. A docstring without an example gets the contract and the first case without symbolic sizes, which ``gives`` a shape, or a list of them for several results. For the rest see :class:`Operator`.

    Raises ``ValueError`` for a name that is taken, for no cases, and for a name that the function's file has.

    >>> import numpy as np
    >>> from tir import ops, te
    >>> from tir.ops.registry import forget
    >>> @operator(section="elementwise", reference=lambda x: 2 * x, cases=[case(arg((3,), "float32"))], namespace="mine")
    ... def twice(x: te.Tensor) -> te.Tensor:
    ...     "Two times ``x``."
    ...     return te.compute(x.shape, lambda *i: x[i] * 2.0, name="twice")
    >>> ops.mine.twice(te.placeholder((4,)))
    Tensor(twice, (4,), float32)
    >>> forget("mine.twice")
    """

    def register(function: Callable[P, R]) -> Callable[P, R]:
        def qualified(short: str) -> str:
            return f"{namespace}.{short}" if namespace else short

        full = qualified(name or function.__name__)
        contract = None if shapes is None else Contract(shapes)
        signature, judged = inspect.signature(function), tuple(cases)
        if contract is not None and len(contract.arguments) != len(tensors_of(signature)):
            raise ValueError(f"the contract of operator {full} is not of its tensors: {shapes}")
        if judged and (contract or gives is not None) and ">>>" not in (doc := function.__doc__ or ">>>"):
            stated = f"Shapes: ``{shapes}``.\n\n" if shapes else ""
            function.__doc__ = f"{inspect.cleandoc(doc)}\n\n{stated}{example(full, judged, gives)}\n"
        made = Operator(
            full,
            _checked(full, function, signature, contract),
            section,
            reference.of(signature) if isinstance(reference, complete) else reference,
            tuple(map(qualified, aliases)),
            judged,
            _TOLERANCE if tolerance is None else float(tolerance),
            contract,
            unstated,
        )
        _add(made)
        return made.function

    return register


def _add(made: Operator) -> None:
    if not made.cases:
        raise ValueError(f"operator {made.name} has no cases to judge it by")
    for name in (made.name, *made.aliases):
        if name in _NAMES:
            other = _NAMES[name]
            raise ValueError(f"the name {name} of operator {made.name} is taken by {other.name} ({_module(other)})")
        if _module(made) == f"{__package__}.{name}":
            raise ValueError(f"the file of operator {name} may not have its name: it would hide the operator")
    OPERATORS[made.name] = made
    _NAMES.update(dict.fromkeys((made.name, *made.aliases), made))


def _module(made: Operator) -> str:
    return made.function.__module__


@checked
def forget(name: str) -> None:
    """Take an operator out of the table again."""
    gone = OPERATORS.pop(find(name).name)
    for each in (gone.name, *gone.aliases):
        del _NAMES[each]


def operators() -> Mapping[str, Operator]:
    """Every operator by its name, those of installed packages too.

    >>> operators()["add"].section
    'elementwise'
    """
    extension.load(extension.OPERATORS)
    return MappingProxyType(OPERATORS)


@checked
def find(name: str) -> Operator:
    """The operator with a name or an alias. Raises ``KeyError`` with similar names for an unknown one.

    >>> find("broadcast_add").name
    'add'
    """
    if name not in _NAMES:
        extension.load(extension.OPERATORS)
    if name not in _NAMES:
        raise KeyError(f"no operator is named {name!r}{_unknown(name)}")
    return _NAMES[name]


# ---------------------------------------------------------------- names as attributes


def attributes(namespace: str = "") -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of the module of a namespace: its operators are its attributes."""
    prefix = f"{namespace}." if namespace else ""

    def names() -> list[str]:
        operators()
        return sorted({n[len(prefix) :].partition(".")[0] for n in _NAMES if n.startswith(prefix)})

    def get(name: str) -> Any:
        if name == "__all__":
            return names()
        full = prefix + name
        if name.startswith("_"):  # what tools look for in modules, and nobody mistyped
            raise AttributeError(f"there is no operator {full}")
        if full not in _NAMES and full not in _namespaces():
            extension.load(extension.OPERATORS)
        if full in _NAMES:
            return _NAMES[full].function
        if full in _namespaces():
            return Namespace(full)
        raise AttributeError(f"there is no operator {full}{_unknown(full)}")

    return get, names


def namespace(of: Any, own: Mapping[str, Any]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a module that has the names of ``of`` where it has none of its ``own``."""
    return functools.partial(getattr, of), lambda: sorted({*dir(of), *own})


def reshown(namespace: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator of functions that call operators: their arguments are checked, and errors show the call of the function."""
    return lambda function: _checked(
        f"{namespace}.{function.__name__}".lstrip("."), function, inspect.signature(function), None
    )


def _unknown(name: str) -> str:
    """The end of an error about the unknown operator ``name``."""
    return extension.unknown(extension.OPERATORS, name, _NAMES)


class Namespace:
    """The operators of a namespace without a file of its own, as attributes."""

    def __init__(self, name: str):
        self._name = name
        self._get, self._names = attributes(name)

    def __getattr__(self, name: str) -> Any:
        return self._get(name)

    def __dir__(self) -> list[str]:
        return self._names()

    def __repr__(self) -> str:
        return f"<operators {self._name}.*>"


def _namespaces() -> set[str]:
    return {name.rpartition(".")[0] for name in _NAMES} - {""}


# ---------------------------------------------------------------- calls


def tensors_of(signature: inspect.Signature) -> tuple[str, ...]:
    """The parameters that are annotated as tensors or operands, as one or None, or as several."""
    kinds = ("Tensor", "Operand", "Sequence[Tensor]")
    return tuple(p.name for p in signature.parameters.values() if _annotation(p).removesuffix(" | None") in kinds)


def _annotation(parameter: inspect.Parameter) -> str:
    """The annotation of a parameter without names of modules, whether the file defers annotations (PEP 563) or not: a notebook does not."""
    given = parameter.annotation
    text = given if isinstance(given, str) else inspect.formatannotation(given)
    return re.sub(r"\b[A-Za-z_]\w*\.", "", text)


def _checked(
    name: str, function: Callable[P, R], signature: inspect.Signature, contract: Contract | None
) -> Callable[P, R]:
    """``function``, whose errors show the call."""

    @functools.cache  # at the first call: of most operators there is none
    def checks() -> tuple[tuple[str, ...], dict[str, Any], list[tuple[str, bool, Callable[[str, Any], None]]]]:
        parameters = signature.parameters.values()
        required = [(p.name, p.kind is p.VAR_POSITIONAL, r) for p in parameters if (r := _requirement(p)) is not None]
        return tensors_of(signature), {p.name: p.default for p in parameters}, required

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        with _request(lambda: _call_text(name, signature, args, kwargs)):
            named = respelled(signature, kwargs)
            try:
                given = signature.bind(*args, **named).arguments
            except TypeError as exc:
                raise error(str(exc), f"{name}{_without_types(signature)}") from None
            tensors, usual, required = checks()
            for parameter, are_several, require in required:
                values = given.get(parameter, ()) if are_several else [given[parameter]] if parameter in given else []
                for value in values:
                    require(parameter, value)
            with users_errors("in its formula"), requirements():
                if contract is not None:
                    contract.check(tensors, {**usual, **given})
                return function(*args, **named)  # type: ignore[arg-type]

    return call


def _requirement(parameter: inspect.Parameter) -> Callable[[str, Any], None] | None:
    """What is asked of an argument by the annotation of its parameter; None of most."""
    annotation = _annotation(parameter)
    plain = annotation.removesuffix(" | None")
    if plain.startswith("Literal["):
        require = functools.partial(_require_word_of, ast.literal_eval(plain.removeprefix("Literal")))
    else:
        require = _REQUIREMENTS.get(plain)
    if require is None or plain == annotation:
        return require
    return lambda name, value: None if value is None else require(name, value)


def _require_tensor(name: str, value: Any) -> None:
    if not isinstance(value, Tensor):
        raise error(f"{name} is a tensor, not {described(value)}", 'te.placeholder((4,), "float32")')


def _require_number(name: str, value: Any) -> None:
    """A number of Python or NumPy, or a scalar expression."""
    if not isinstance(value, (Expr, Real)) and not (hasattr(value, "__array__") and value.ndim == 0):
        raise error(f"{name} is a number, not {described(value)}")


def _require_numbers(name: str, value: Any) -> None:
    if not isinstance(value, (list, tuple)):
        raise error(f"{name} is a list of numbers, not {described(value)}")
    for number in value:
        _require_number(f"each of {name}", number)


def _require_truth(name: str, value: Any) -> None:
    """A bool of Python or NumPy, or 0 or 1."""
    if isinstance(value, Expr) or not hasattr(value, "__index__") or value not in (False, True):
        raise error(f"{name} is True or False, not {described(value)}")


def _require_integer(name: str, value: Any) -> None:
    """An integer of Python or NumPy, or an expression."""
    if isinstance(value, (bool, Tensor)) or not (isinstance(value, Expr) or hasattr(value, "__index__")):
        raise error(f"{name} is an integer, not {described(value)}")


def _require_word(name: str, value: Any) -> None:
    if not isinstance(value, str):
        raise error(f"{name} is a string, not {described(value)}")


def _require_word_of(words: Sequence[str], name: str, value: Any) -> None:
    chosen(value, words, name)


_REQUIREMENTS = {
    "bool": _require_truth, "int": _require_integer, "str": _require_word, "Tensor": _require_tensor,
    "te.Tensor": _require_tensor, "float": _require_number, "Sequence[float]": _require_numbers,
}  # fmt: skip


def _without_types(signature: inspect.Signature) -> inspect.Signature:
    empty = inspect.Parameter.empty
    parameters = [p.replace(annotation=empty) for p in signature.parameters.values()]
    return signature.replace(parameters=parameters, return_annotation=empty)


@contextmanager
def _request(text: Callable[[], str]) -> Iterator[None]:
    """Errors about a tensor expression show what was asked: the outermost call, and where it is, unless a formula is at fault."""
    try:
        yield
    except TensorExpressionError as exc:
        exc.request = text()
        if exc.__cause__ is None:
            exc.place = user_place()
        raise


def _call_text(name: str, signature: inspect.Signature, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    names = iter(
        [
            p.name
            for p in signature.parameters.values()
            if p.kind is not p.VAR_POSITIONAL and p.kind is not p.KEYWORD_ONLY
        ]
    )
    positional = [_value_text(next(names, ""), a) for a in args]
    return f"{name}({', '.join([*positional, *(_value_text(k, v) for k, v in kwargs.items())])})"


def _value_text(name: str, value: Any) -> str:
    return f"{name}={described(value)}" if name else described(value)


def described(value: Any) -> str:
    """An argument of an operator as errors show it: of tensors and arrays their shapes and types."""
    if isinstance(value, Tensor):
        return f"{value.shape} {value.dtype}"
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{type(value).__name__} {tuple(value.shape)} {value.dtype}"
    if isinstance(value, (list, tuple)) and any(isinstance(v, Tensor) for v in value):
        return f"[{', '.join(map(described, value))}]"
    return repr(value)
