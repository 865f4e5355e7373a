"""Functions of modules without effects, as other array libraries want them: new arrays for results, and gradients.

What :mod:`tir.torch` and :mod:`tir.jax` share: which parameters a function takes and which it makes, the shapes of the
results, and how a second function is the gradient of the first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from codegen.calls import Function
from codegen.module import Module

from .buffer import Buffer
from .errors import BuildError
from .expr import Var
from .interp.arguments import evaluate
from .interp.named_arguments import parameter_names
from .visit import walk


@dataclass(frozen=True)
class Functional:
    """``function`` as one that takes ``takes`` and makes ``makes``, names of its parameters in order; those of ``mutates``,
    among the first, are updated in place.

    >>> import tir
    >>> f = Functional.of(tir.build(tir.library.elementwise.scale_add(2), "interpreter"))
    >>> f.takes, f.makes
    (('A',), ('B',))
    """

    function: Function
    takes: tuple[str, ...]
    makes: tuple[str, ...]
    mutates: tuple[str, ...] = ()

    @staticmethod
    def of(module: Module | Function, mutates: Sequence[str] = ()) -> Functional:
        """The entry function of a module, or a function. Raises ``BuildError`` for one that makes no array, whose results
        have shapes that its arguments do not determine, or that takes or returns what is neither array nor number."""
        function = module.entry if isinstance(module, Module) else module
        func, names = function.func, parameter_names(function.func)
        written = [names[k] for k in sorted(function.outputs()) if func.params[k] in func.buffer_map]
        wrong = [name for name in mutates if name not in written]
        if wrong:
            known = ", ".join(written) or "nothing"
            raise BuildError(f"{func.name}: mutates names `{wrong[0]}`, and the function writes {known}")
        made = tuple(name for name in written if name not in mutates)
        found = Functional(function, tuple(n for n in names if n not in made), made, tuple(mutates))
        found._require_operator()
        return found

    def _require_operator(self) -> None:
        func = self.function.func
        if not self.makes and not self.mutates:
            raise BuildError(
                f"{func.name} writes no array, so that nothing is left of a call: an operator makes arrays"
            )
        if func.ret_type.code != "void":
            raise BuildError(
                f"{func.name} returns a number; an operator makes arrays: write it into one of no dimensions"
            )
        for name in self.takes:
            if self.buffer(name) is None and self.parameter(name).dtype.is_handle:
                raise BuildError(f"{func.name}: `{name}` is a pointer; an operator takes arrays and numbers")
        given = {self.parameter(name) for name in self.takes if self.buffer(name) is None}
        for name in self.takes:
            buffer = self.buffer(name)
            given.update(s for s in (buffer.shape if buffer is not None else ()) if isinstance(s, Var))
        for name in self.makes:
            buffer = self.made(name)
            unknown = [v.name for s in buffer.shape for v in walk(s) if isinstance(v, Var) and v not in given]
            if unknown or buffer.strides:
                why = f"no argument gives {unknown[0]}" if unknown else "it has strides"
                raise BuildError(f"{func.name}: `{name}` cannot be made, {why}; name it in mutates, and pass it")

    def parameter(self, name: str) -> Var:
        func = self.function.func
        return func.params[parameter_names(func).index(name)]

    def buffer(self, name: str) -> Buffer | None:
        """The buffer behind a parameter; None for a number."""
        return self.function.func.buffer_map.get(self.parameter(name))

    def made(self, name: str) -> Buffer:
        return self.function.func.buffer_map[self.parameter(name)]

    def shapes(self, given: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """The shapes of what is made, from the shapes of the arrays ``given`` by name and the numbers; sizes may be symbols
        of another library."""
        values: dict[Var, Any] = {}
        for name in self.takes:
            buffer = self.buffer(name)
            if buffer is None:
                values[self.parameter(name)] = given[name]
            else:
                for size, actual in zip(buffer.shape, given[name]):
                    if isinstance(size, Var):
                        values.setdefault(size, actual)
        return [
            (*(evaluate(size, values) for size in b.shape), *((b.dtype.lanes,) if b.dtype.lanes > 1 else ()))
            for b in map(self.made, self.makes)
        ]


@dataclass(frozen=True)
class Gradient:
    """``of`` a function that makes ``grad_X`` for arrays ``X`` that the ``forward`` one takes; it takes any of what that takes
    and makes, under the same names, and ``grad_Y`` of what it makes."""

    forward: Functional
    of: Functional

    @staticmethod
    def between(forward: Functional, module: Module | Function) -> Gradient:
        """Raises ``BuildError`` for a parameter with another name."""
        of = Functional.of(module)
        name, first = of.function.func.name, forward.function.func.name
        takes = [*forward.takes, *forward.makes, *(f"grad_{y}" for y in forward.makes)]
        makes = [f"grad_{x}" for x in forward.takes if forward.buffer(x) is not None]
        for wrong, allowed in [(set(of.takes) - set(takes), takes), (set(of.makes) - set(makes), makes)]:
            if wrong:
                what = "takes" if allowed is takes else "makes"
                raise BuildError(f"{name} {what} `{min(wrong)}`; the gradient of {first} {what} {', '.join(allowed)}")
        if forward.mutates:
            raise BuildError(f"{first} updates {', '.join(forward.mutates)}: it has no gradient")
        return Gradient(forward, of)

    @property
    def keeps(self) -> list[str]:
        """What is kept from the forward call for the backward one."""
        return [name for name in self.of.takes if name in (*self.forward.takes, *self.forward.makes)]

    def arguments(self, kept: Mapping[str, Any], gradients: Sequence[Any]) -> list[Any]:
        """The arguments of the backward call, from what was kept and the gradients of what was made."""
        values = {**kept, **{f"grad_{y}": g for y, g in zip(self.forward.makes, gradients)}}
        return [values[name] for name in self.of.takes]

    def in_order(self, made: Sequence[Any], none: Any = None) -> list[Any]:
        """The gradients of what the forward call took, in order; ``none`` where there is none."""
        found = dict(zip(self.of.makes, made))
        return [found.get(f"grad_{x}", none) for x in self.forward.takes]
