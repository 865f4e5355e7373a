"""The tasks of a module: its functions, those that are the same program once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..canonical import canonical
from ..function import IRModule, PrimFunc


@dataclass(frozen=True)
class Task:
    """A program to tune: ``mod`` has one function, under the name ``main``. ``names`` are the functions of the module
    that are this program, ``weight`` how often they run in all."""

    names: tuple[str, ...]
    mod: IRModule
    weight: float
    key: str


def extract_tasks(mod: PrimFunc | IRModule, weights: Mapping[str, float] | None = None) -> list[Task]:
    """The tasks of ``mod``, in the order of its functions; ``weights`` says how often a function runs (default: 1).

    Functions that differ in names alone are one task. Raises ``KeyError`` for a weight of no function.

    >>> import tir
    >>> from tir.library import elementwise, rows
    >>> a, b = elementwise.scale_add(64), rows.softmax(8, 16)
    >>> mod = tir.IRModule.of({"first": a, "second": b, "third": a})
    >>> [(task.names, task.weight) for task in extract_tasks(mod, {"third": 4})]
    [(('first', 'third'), 5.0), (('second',), 1.0)]
    """
    module = IRModule.of(mod)
    given = dict(weights or {})
    for name in given:
        if name not in module:
            raise KeyError(f"a weight for {name!r}, which is no function of the module; it has {', '.join(module)}")
    found: dict[str, Task] = {}
    for name, func in module.items():
        one = func if len(module) == 1 else func.without_attr("global_symbol")
        key = canonical(one).key
        old = found.get(key)
        names, weight = (old.names, old.weight) if old else ((), 0.0)
        program = old.mod if old else IRModule.of(func)
        found[key] = Task((*names, name), program, weight + float(given.get(name, 1.0)), key)
    return list(found.values())
