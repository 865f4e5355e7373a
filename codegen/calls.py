"""What functions of every kind of module share: calls by name, results in new arrays, and their signatures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from tir.buffer import Buffer
from tir.function import PrimFunc
from tir.interp.arguments import written_positions
from tir.interp.dlpack import as_given
from tir.interp.named_arguments import in_order, output_shapes, parameter_names, split_outputs, zeros
from tir.stmt import NOP


def stub(func: PrimFunc) -> PrimFunc:
    """The function with an empty body: its signature."""
    return func.with_body(NOP)


def signature(func: PrimFunc, source: PrimFunc | None = None) -> tuple[PrimFunc, frozenset[int]]:
    """A function with an empty body, and the positions of the parameters that it may write: from the ``source`` that it was lowered from, if the
    parameters are the same."""
    return stub(func), written_positions(func if source is None or source.params != func.params else source)


def span_of(array: np.ndarray) -> tuple[int, int]:
    """Where the bytes of an array begin and end, counted from its first element: at nothing but 0 without elements."""
    if not array.size:
        return 0, 0
    steps = [(n - 1) * s for n, s in zip(array.shape, array.strides)]
    return sum(s for s in steps if s < 0), sum(s for s in steps if s > 0) + array.itemsize


class Function(ABC):
    """A function of a module. ``func`` has its signature, ``name`` is its name in the module.

    >>> import tir
    >>> function = tir.build(tir.library.elementwise.scale_add(2), "interpreter")["main"]
    >>> function, sorted(function.outputs())
    (<function scale_add(A, B)>, [1])
    """

    name: str
    func: PrimFunc

    @abstractmethod
    def __call__(self, *args: Any, **named: Any) -> Any:
        """Run it; arguments by position or by name."""

    @abstractmethod
    def outputs(self) -> frozenset[int]:
        """The positions of the parameters that it may write."""

    def prepared(self, *args: Any, **named: Any) -> Callable[[], Any]:
        """A call whose arguments are known already; where it runs once, it takes less than one that gets ready for others like it."""
        return partial(self, *args, **named)

    def copies(self, args: Sequence[Any]) -> list[Any]:
        """The arguments, arrays of the host copied to where the function can use them: on the device, if it runs there."""
        return list(args)

    def on_copies(self, *args: Any) -> Any:
        """Run it on arrays of the host, whatever it runs on: on a device, every array is copied there, and the written ones back."""
        return self(*args)

    def new(self, *args: Any, **named: Any) -> Any:
        """Call it with new arrays of zeros for what it writes, and return them: one, or a tuple in parameter order.

        ``args`` are the other arguments in order; what is given by name is used as it is, and an array so given is not
        returned. If one of them is a tensor of torch, tensors are returned. Raises ``RunError`` as a call does, and where the arguments do not determine the shape of a result.
        """
        given, made = split_outputs(self.func, self.outputs(), args, named)
        shapes = output_shapes(self.func, self._seen(given), made)
        names = parameter_names(self.func)
        results = [self._zeros(shape, self.func.buffer_map[self.func.params[k]]) for k, shape in zip(made, shapes)]
        self(*in_order(self.func, (), {**given, **{names[k]: result for k, result in zip(made, results)}}))
        types = [self.func.buffer_map[self.func.params[k]].dtype for k in made]
        found = [as_given(r, t, given.values()) if isinstance(r, np.ndarray) else r for r, t in zip(results, types)]
        return found[0] if len(found) == 1 else tuple(found)

    def _seen(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """The arguments as arrays whose shapes can be read."""
        return given

    def _zeros(self, shape: Sequence[int], buffer: Buffer) -> Any:
        return zeros(shape, buffer)

    def __repr__(self) -> str:
        return f"<function {self.func.name}({', '.join(parameter_names(self.func))})>"


class HostFunction(Function):
    """A function that ``run`` runs, given its arguments in order.

    >>> import tir
    >>> type(tir.build(tir.library.elementwise.scale_add(2), "interpreter")["main"]).__name__
    'HostFunction'
    """

    def __init__(self, name: str, func: PrimFunc, run: Callable[..., Any]):
        self.name, self.func, self._run = name, func, run

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self._run(*(in_order(self.func, args, named) if named else args))

    def outputs(self) -> frozenset[int]:
        return written_positions(self.func)
