"""Operators that share a definition: a row each, for a layout or a number of dimensions, makes its function, its
docstring and its entry in the table."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .cases import Case
from .registry import operator


@dataclass(frozen=True)
class Definition:
    """What operators of several names compute: a ``function``, and its meaning in NumPy, which takes the same
    parameters by their names."""

    function: Callable[..., Any]
    reference: Callable[..., Any]
    section: str
    namespace: str

    def variant(
        self,
        called: str,
        parameters: str,
        doc: str,
        cases: Sequence[Case],
        gives: tuple[int, ...],
        *,
        shapes: str | None = None,
        unstated: str = "",
        aliases: Sequence[str] = (),
        tolerance: float | None = None,
        **values: Any,
    ) -> Callable[..., Any]:
        """Register the operator ``called`` with ``parameters`` (names of the definition's, in the order of the operator's).

        ``values`` are defaults of these parameters, and what the others are; one that is in neither has the default of the
        definition. The docstring is ``doc`` and the first of ``cases`` as an example, which ``gives`` a shape.
        """
        signature = self._signature(parameters.split(), values)
        fixed = {k: v for k, v in values.items() if k not in signature.parameters}

        def with_all(function: Callable[..., Any]) -> Callable[..., Any]:
            def call(*args: Any, **attributes: Any) -> Any:
                given = signature.bind(*args, **attributes)
                given.apply_defaults()
                return function(**fixed, **given.arguments)

            return call

        made: Any = with_all(self.function)
        made.__signature__, made.__module__, made.__doc__ = signature, self.function.__module__, doc
        made.__name__ = made.__qualname__ = called
        register = operator(
            section=self.section,
            namespace=self.namespace,
            reference=with_all(self._complete_reference()),
            cases=cases,
            shapes=shapes,
            unstated=unstated,
            gives=gives,
            aliases=aliases,
            tolerance=tolerance,
        )
        return register(made)

    def _signature(self, names: Sequence[str], values: dict[str, Any]) -> inspect.Signature:
        own = inspect.signature(self.function)
        chosen = [own.parameters[name] for name in names]
        return own.replace(parameters=[p.replace(default=values.get(p.name, p.default)) for p in chosen])

    def _complete_reference(self) -> Callable[..., Any]:
        """The reference, with the defaults of the definition."""
        usual = {p.name: p.default for p in inspect.signature(self.function).parameters.values()}
        return lambda **given: self.reference(**{**usual, **given})
