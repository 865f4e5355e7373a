"""Calling a model: inputs by position and by name, results, workspaces."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from codegen.module import Module

from ..dtype import DType
from ..errors import RunError
from ..interp.dlpack import host_array, is_array, way_out
from ..interp.numbers import array_dtype, storage_dtype
from ..names import did_you_mean
from .memory import aligned
from .sizes import Extent, Size, number, symbols


def memory(nbytes: int) -> np.ndarray:
    """Bytes of memory that begin at a multiple of the alignment; at least one."""
    raw = np.empty(nbytes + aligned(1) + 1, np.uint8)
    begin = -raw.ctypes.data % aligned(1)
    return raw[begin : begin + max(nbytes, 1)]


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
        return replace(self, shape=tuple(number(s, values) for s in self.shape))

    def empty(self) -> np.ndarray:
        """An array for it, where its sizes are numbers."""
        return np.empty(tuple(map(int, self.shape)), storage_dtype(self.dtype))

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}{list(self.shape)}"


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
        self._idle: list[np.ndarray] = []  # workspaces that no call uses; pop and append are atomic
        self._set: dict[str, Any] = {}
        self._last: tuple[Any, ...] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """All but what calls leave: workspaces, inputs that were set, results."""
        return {**self.__dict__, "_idle": [], "_set": {}, "_last": None}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Unpickled arrays begin anywhere; weights begin at a multiple of the alignment."""
        weights = memory(state["weights"].nbytes)[: state["weights"].nbytes]
        weights[:] = state["weights"].view(np.uint8)
        self.__dict__.update({**state, "weights": weights})

    def __call__(self, *args: Any, out: Any = None, state: Mapping[str, np.ndarray] | None = None, **named: Any) -> Any:
        """Run it on arrays (NumPy, torch, DLPack). ``out`` is an array for the result, or a sequence of one each; ``state`` has the
        arrays that are updated.

        Raises ``RunError`` for a wrong number or name of arguments, and for an array of another type or shape.
        """
        arrays = self.arrays(args, named)
        updated = self.updated(state, arrays)
        values = self.sizes(arrays, updated)
        made = self._results(out, (*arrays, *updated), values)
        with self.workspace(values) as work:
            self.module["main"](*arrays, *made, *updated, self.weights, work, *values.values())
        if out is not None:
            return out
        given = [a.view(array_dtype(p.dtype)) for p, a in zip(self.outputs, made)]
        return given[0] if len(given) == 1 else tuple(given)

    def arrays(self, args: Sequence[Any], named: Mapping[str, Any]) -> list[np.ndarray]:
        """The inputs of a call as compact arrays, in order. Raises ``RunError`` as the call does."""
        return [input_array(p, a) for p, a in zip(self.inputs, inputs_in_order(self.inputs, args, named))]

    def sizes(self, arrays: Sequence[np.ndarray], state: Sequence[np.ndarray] = ()) -> dict[str, int]:
        """The values of the symbols by name, read off the arrays of a call. Raises ``RunError`` for arrays whose sizes do not agree, and for a symbol that
        would not be at least 1."""
        if not self._symbols:
            return {}
        found = solved(list(zip((*self.inputs, *self.state), (*arrays, *state))))
        values = {name: found[name] for name in self._symbols}
        try:
            self._bytes(values)
        except RunError as error:
            shown = ", ".join(f"{name} = {value}" for name, value in found.items())
            raise RunError(f"{error}; the arrays of the call have {shown}") from None
        return values

    def _bytes(self, values: Mapping[str, int]) -> int:
        """The bytes of a workspace for values of the symbols. Raises ``RunError`` for values that an operator cannot have."""
        return self.module["workspace_bytes"](*values.values()) if values else number(self.workspace_bytes, {})

    def new_state(self, **sizes: int) -> dict[str, np.ndarray]:
        """Arrays of zeros for what calls update, by name; ``sizes`` are the values of symbols in their shapes."""
        missing = [n for n in symbols(s for p in self.state for s in p.shape) if n not in sizes]
        if missing:
            raise RunError(f"the size of the state depends on {missing[0]}: new_state({missing[0]}=128)")
        return {p.name: np.zeros(p.at(sizes).shape, storage_dtype(p.dtype)) for p in self.state}

    def updated(self, state: Mapping[str, np.ndarray] | None, inputs: Sequence[np.ndarray] = ()) -> list[np.ndarray]:
        """The arrays of a state, in order. Raises ``RunError`` for one that is missing, has another type or shape, cannot be written,
        or shares memory with another or an input."""
        given = state or {}
        names = [p.name for p in self.state]
        if unknown := [name for name in given if name not in names]:
            raise RunError(f"the model has no state {unknown[0]!r}{did_you_mean(unknown[0], names)}")
        for parameter in self.state:
            array = given.get(parameter.name)
            if array is None:
                raise RunError(f"no array was given for state {parameter}; model.new_state() makes those for state=")
            if not isinstance(array, np.ndarray) or not (array.flags.c_contiguous and array.flags.writeable):
                raise RunError(f"state {parameter} is no contiguous NumPy array that may be written")
            _require(f"state {parameter}", parameter, array)
            others = [*inputs, *(given[name] for name in names if name != parameter.name and name in given)]
            if any(np.may_share_memory(array, other) for other in others if isinstance(other, np.ndarray)):
                raise RunError(f"state {parameter} shares memory with another argument; give it memory of its own")
        return [given[name] for name in names]

    def _results(self, out: Any, inputs: Sequence[np.ndarray], values: Mapping[str, int]) -> list[np.ndarray]:
        outputs = [p.at(values) for p in self.outputs] if values else self.outputs
        if out is None:
            return [p.empty() for p in outputs]
        several: list[Any] = list(out) if isinstance(out, (list, tuple)) else [out]
        if len(several) != len(self.outputs):
            raise RunError(f"out has {len(several)} arrays; the model has {len(self.outputs)} results")
        for parameter, array in zip(outputs, several):
            if not isinstance(array, np.ndarray) or not (array.flags.c_contiguous and array.flags.writeable):
                raise RunError(f"out for {parameter} is no contiguous NumPy array that may be written")
            _require(f"out for {parameter}", parameter, array)
            for other in (*inputs, *(a for a in several if a is not array)):
                if np.may_share_memory(array, other):
                    raise RunError(
                        f"out for {parameter} shares memory with another argument; give it memory of its own"
                    )
        return several

    @contextmanager
    def workspace(self, values: Mapping[str, int] | None = None) -> Iterator[np.ndarray]:
        """Memory that a call may use; ``values`` are those of the symbols."""
        nbytes = max(self._bytes(values or {}), 1)
        work = self._idle.pop() if self._idle else memory(nbytes)
        if work.nbytes < nbytes:
            work = memory(nbytes)
        try:
            yield work[:nbytes]
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
            self._set[parameter.name] = input_array(parameter, array)

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


def input_array(parameter: Parameter, given: Any) -> np.ndarray:
    """An argument as a compact array. Raises ``RunError`` for one of another type or shape."""
    if not is_array(given) and not isinstance(given, (np.generic, int, float, bool, list, tuple)):
        raise RunError(f"input {parameter}: {type(given).__name__} is no array{way_out(given)}")
    if isinstance(given, (int, float, bool, list, tuple)):
        given = np.asarray(given, storage_dtype(parameter.dtype))
    try:
        array = np.asarray(given) if isinstance(given, np.generic) else host_array(given, parameter.dtype)
    except RunError as error:
        raise RunError(f"input {parameter}: {error}") from error
    _require(f"input {parameter}", parameter, array)
    return np.require(
        array, requirements=["C", "A", "W"]
    )  # W: the module takes what it is given as if it might write it


def _require(what: str, parameter: Parameter, array: np.ndarray) -> None:
    if array.dtype not in (array_dtype(parameter.dtype), storage_dtype(parameter.dtype)):
        raise RunError(f"{what}: the array is of {array.dtype}; convert it, as by x.astype({str(parameter.dtype)!r})")
    if array.ndim != len(parameter.shape):
        raise RunError(f"{what}: the array has {array.ndim} dimensions, {list(array.shape)}")
    for axis, (size, wanted) in enumerate(zip(array.shape, parameter.shape)):
        if size != wanted and not isinstance(wanted, Size):
            raise RunError(f"{what}: the array has {list(array.shape)}: size {axis} is {array.shape[axis]}")


def solved(given: Sequence[tuple[Parameter, np.ndarray]]) -> dict[str, int]:
    """The values of the symbols in the shapes of parameters, for the arrays that are given. Raises ``RunError`` as :meth:`Model.sizes`."""
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
