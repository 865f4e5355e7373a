"""Calling a model: inputs by position and by name, results, workspaces."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from codegen.module import Module

from ..dtype import DType
from ..errors import RunError
from ..names import did_you_mean
from .arrays import arrays_of, memory, mismatch
from .sizes import Extent, Size, number, symbols


def give_back() -> None:
    """Give memory that was freed back to the system, where the C library keeps it: glibc does, the more the larger arrays were."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


@dataclass(frozen=True)
class Parameter:
    """An input or a result of a model."""

    name: str
    shape: tuple[Extent, ...]
    dtype: DType

    def at(self, values: Mapping[str, int]) -> Parameter:
        """The parameter with numbers for symbols."""
        return Parameter(self.name, tuple(number(s, values) for s in self.shape), self.dtype)

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}{list(self.shape)}"


class Sized(NamedTuple):
    """What depends only on the shapes of a call's arrays: the values of the symbols by name, the bytes of a workspace, the results."""

    shapes: tuple[tuple[int, ...], ...]
    values: dict[str, int]
    nbytes: int
    outputs: tuple[Parameter, ...]


class Model:
    """A model that runs: ``model(x, …)`` by position or by name gives its result, or a tuple of several.

    ``inputs`` and ``outputs`` have name, shape and type; ``module`` is the module, whose ``main`` takes inputs, results, the
    weights, a workspace and the values of symbols, and ``kernels`` the names of those that it calls, in order; ``specialised`` is for models whose inputs act as
    attributes (:class:`tir.importers.specialised.SpecialisedModel`). Threads may call it at once: each call has a workspace of its own.

    ``state`` are tensors that calls update in place, such as the keys and values that a transformer has seen: a call is given arrays for
    them, ``model(x, state=memory)``, which :meth:`new_state` makes. Calls at once need one each.
    """

    specialised: tuple[dict[str, Any], ...] = ()

    def __init__(
        self,
        inputs: Sequence[Parameter],
        outputs: Sequence[Parameter],
        module: Module,
        weights: np.ndarray,
        workspace_bytes: Extent,
        kernels: Sequence[str],
        state: Sequence[Parameter] = (),
    ):
        self._symbols = symbols(s for p in (*inputs, *state) for s in p.shape)
        self.state = tuple(state)
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.module = module
        self.kernels = tuple(kernels)
        self.workspace_bytes = workspace_bytes
        self.weights = weights
        self._idle: list[Any] = []  # workspaces that no call uses; pop and append are atomic
        self._set: dict[str, Any] = {}
        self._last: tuple[Any, ...] | None = None
        self._sized: Sized | None = None  # of the last call
        self.place = arrays_of(module)

    def __getstate__(self) -> dict[str, Any]:
        """All but what calls leave: workspaces, inputs that were set, results."""
        return {**self.__dict__, "_idle": [], "_set": {}, "_last": None, "_sized": None, "place": None}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Unpickled arrays begin anywhere; weights begin at a multiple of the alignment."""
        weights = memory(state["weights"].nbytes)[: state["weights"].nbytes]
        weights[:] = state["weights"].view(np.uint8)
        self.__dict__.update({**state, "weights": weights, "place": arrays_of(state["module"])})

    def __call__(
        self, /, *args: Any, out: Any = None, state: Mapping[str, np.ndarray] | None = None, **named: Any
    ) -> Any:
        """Run it on arrays (NumPy, torch, DLPack). ``out`` is an array for the result, or a sequence of one each; ``state`` has the
        arrays that are updated. Where the model was compiled for a GPU, arrays of the host are copied to the device, and results back;
        if an input is on the device, the results stay there, as ``out`` and ``state`` must.

        Raises ``RunError`` for a wrong number or name of arguments, and for an array of another type or shape.
        """
        arrays = self.arrays(args, named)
        updated = self.updated(state, arrays)
        sized = self.sized(arrays, updated)
        made = self._results(out, (*arrays, *updated), sized.outputs)
        with self.workspace(sized.nbytes) as work:
            self.module["main"](*arrays, *made, *updated, self.place.held(self.weights), work, *sized.values.values())
        if out is not None:
            return out
        given_here = set(map(id, (*args, *named.values())))
        stays = any(id(a) in given_here for a in arrays)  # an input was used where it is
        given = [self.place.result(p, a, stays) for p, a in zip(self.outputs, made)]
        return given[0] if len(given) == 1 else tuple(given)

    def arrays(self, args: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        """The inputs of a call as compact arrays, in order. Raises ``RunError`` as the call does."""
        return [self.place.input(p, a) for p, a in zip(self.inputs, inputs_in_order(self.inputs, args, named))]

    def sized(self, arrays: Sequence[Any], state: Sequence[Any] = ()) -> Sized:
        """What the shapes of the arrays of a call decide. Raises ``RunError`` for arrays whose sizes do not agree, and for a symbol that
        would not be at least 1, or has a value that an operator cannot have."""
        given = (*arrays, *state)
        shapes = tuple(a.shape for a in given) if self._symbols else ()
        made = self._sized
        if made is not None and made.shapes == shapes:
            return made
        found = solved(list(zip((*self.inputs, *self.state), given))) if self._symbols else {}
        values = {name: found[name] for name in self._symbols}
        try:
            nbytes = self.module["workspace_bytes"](*values.values()) if values else number(self.workspace_bytes, {})
        except RunError as error:
            shown = ", ".join(f"{name} = {value}" for name, value in found.items())
            raise RunError(f"{error}; the arrays of the call have {shown}") from None
        self._sized = made = Sized(shapes, values, nbytes, tuple(p.at(values) for p in self.outputs))
        return made

    def new_state(self, **sizes: int) -> dict[str, Any]:
        """Arrays of zeros for what calls update, by name; ``sizes`` are the values of symbols in their shapes."""
        missing = [n for n in symbols(s for p in self.state for s in p.shape) if n not in sizes]
        if missing:
            raise RunError(f"the size of the state depends on {missing[0]}: new_state({missing[0]}=128)")
        return {p.name: self.place.zeros(p.at(sizes)) for p in self.state}

    def updated(self, state: Mapping[str, Any] | None, inputs: Sequence[Any] = ()) -> list[Any]:
        """The arrays of a state, in order. Raises ``RunError`` for one that is missing, has another type or shape, cannot be written,
        or shares memory with another or an input."""
        given = state or {}
        names = [p.name for p in self.state]
        if unknown := [name for name in given if name not in names]:
            raise RunError(f"the model has no state {unknown[0]!r}{did_you_mean(unknown[0], names)}")
        for parameter in self.state:
            if given.get(parameter.name) is None:
                raise RunError(f"no array was given for state {parameter}; model.new_state() makes those for state=")
        arrays = [given[name] for name in names]
        self._require_own(inputs, {f"state {p}": (p, a) for p, a in zip(self.state, arrays)})
        return arrays

    def _require_own(self, inputs: Sequence[Any], written: Mapping[str, tuple[Parameter, Any]]) -> None:
        """Raise ``RunError`` for an array that is to be written, but has another type or shape than its parameter, cannot be, or shares memory with
        another or an input."""
        read = [self.place.seen(p, a) for p, a in zip((*self.inputs, *self.state), inputs)]
        seen = {what: self.place.seen(*each) for what, each in written.items()}
        for what, (parameter, _) in written.items():
            array = seen[what]
            if array is None or not (array.flags.c_contiguous and array.flags.writeable):
                raise RunError(f"{what} is no {self.place.what}")
            if wrong := mismatch(parameter, array):
                raise RunError(f"{what}: {wrong}")
            others = [*read, *(a for other, a in seen.items() if other != what)]
            if any(np.may_share_memory(array, other) for other in others if other is not None):
                raise RunError(f"{what} shares memory with another argument; give it memory of its own")

    def _results(self, out: Any, inputs: Sequence[Any], outputs: Sequence[Parameter]) -> list[Any]:
        if out is None:
            return [self.place.empty(p) for p in outputs]
        several: list[Any] = list(out) if isinstance(out, (list, tuple)) else [out]
        if len(several) != len(outputs):
            raise RunError(f"out has {len(several)} arrays; the model has {len(outputs)} results")
        self._require_own(inputs, {f"out for {p}": (p, a) for p, a in zip(outputs, several)})
        return several

    @contextmanager
    def workspace(self, nbytes: int) -> Iterator[Any]:
        """Memory that a call may use, of the bytes that :meth:`sized` finds, at least one."""
        nbytes = max(nbytes, 1)
        work = self._idle.pop() if self._idle else self.place.bytes(nbytes)
        if work.nbytes < nbytes:
            work = self.place.bytes(nbytes)
        try:
            yield work if work.nbytes == nbytes else self.place.part(work, 0, (nbytes,), np.dtype(np.uint8))
        finally:
            self._idle.append(work)

    def set_input(self, name: str | int | None = None, value: Any = None, **named: Any) -> None:
        """Keep an input, by name or number, or several by name, for :meth:`run`. Raises ``RunError`` as a call does."""
        given = {**({} if name is None else {name: value}), **named}
        for key, array in given.items():
            if not isinstance(key, int):
                _require_input(self.inputs, key)
            elif not 0 <= key < len(self.inputs):
                raise RunError(f"the model has {len(self.inputs)} inputs, counted from 0; there is no input {key}")
            parameter = self.inputs[key] if isinstance(key, int) else next(p for p in self.inputs if p.name == key)
            self._set[parameter.name] = self.place.input(parameter, array)

    def run(self, state: Mapping[str, np.ndarray] | None = None, **named: Any) -> None:
        """Run it on the inputs that were set and those given by name; :meth:`get_output` gives the results."""
        self.set_input(**named)
        made = self(**self._set, state=state)
        self._last = made if isinstance(made, tuple) else (made,)

    def get_output(self, which: int | str = 0) -> np.ndarray:
        """A result of the last :meth:`run`, by number or name. Raises ``RunError`` before the first, and for one that is not
        there."""
        if self._last is None:
            raise RunError("the model has not run yet: call run()")
        names = [p.name for p in self.outputs]
        at = names.index(which) if which in names else which
        if not isinstance(at, int) or not 0 <= at < len(names):
            raise RunError(f"the model has no result {which!r}; it has {', '.join(names)}, counted from 0")
        return self._last[at]

    def __repr__(self) -> str:
        takes, makes = (", ".join(map(str, each)) for each in (self.inputs, self.outputs))
        return f"{type(self).__name__}({takes} -> {makes}; {len(self.kernels)} kernels, {self.module.target})"


def inputs_in_order(inputs: Sequence[Parameter], args: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
    """What a call gives by position and by name, in the order of the inputs. Raises ``RunError`` for a wrong number or name."""
    if not named and len(args) == len(inputs):
        return list(args)
    names = [p.name for p in inputs]
    shown = ", ".join(map(str, inputs)) or "no inputs"
    if len(args) > len(names):
        raise RunError(f"{len(args)} inputs were given; the model takes {len(names)}: {shown}")
    given = dict(zip(names, args))
    for name, value in named.items():
        _require_input(inputs, name)
        if name in given:
            raise RunError(f"input {name!r} was given twice, by position and by name")
        given[name] = value
    if missing := [name for name in names if name not in given]:
        raise RunError(f"no value was given for input {', '.join(map(repr, missing))}; the model takes {shown}")
    return [given[name] for name in names]


def _require_input(inputs: Sequence[Parameter], name: str) -> None:
    names = [p.name for p in inputs]
    if name not in names:
        shown = ", ".join(map(str, inputs)) or "no inputs"
        raise RunError(f"the model has no input {name!r}{did_you_mean(name, names)}; it takes {shown}")


def solved(given: Sequence[tuple[Parameter, np.ndarray]]) -> dict[str, int]:
    """The values of the symbols in the shapes of parameters, for the arrays that are given. Raises ``RunError`` as :meth:`Model.sized`."""
    found: dict[str, int] = {}
    said: dict[str, str] = {}  # of each symbol: the input and the size that gave its value
    sizes = [
        (s, int(n), p, axis)
        for p, a in given
        for axis, (s, n) in enumerate(zip(p.shape, a.shape))
        if isinstance(s, Size)
    ]
    for wanted, size, parameter, axis in sorted(sizes, key=lambda each: len(each[0].names) + len(each[0].form.terms)):
        where = f"size {axis} of input {parameter.name}, which is {size}"
        left = [name for name in wanted.names if name not in found]
        if len(left) == 1:
            (name,) = left
            zero, one = (wanted.at({**found, name: n}) for n in (0, 1))
            found[name] = (size - zero) // (one - zero) if one != zero else 0
            said[name] = where
            if found[name] < 1:
                raise RunError(
                    f"input {parameter}: the size {name} would be {found[name]}, by {where}; sizes are at least 1"
                )
        if left[1:] or wanted.at(found) != size:
            before = ", ".join(f"{n} = {found[n]} by {said[n]}" for n in wanted.names if n in found)
            raise RunError(f"input {parameter}: {wanted} is {size} by {where}, and not so with {before}")
    return found
