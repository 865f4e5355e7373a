"""What a pass is: a named function over modules, and how passes are defined, configured and chained."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from .. import extension
from ..checked import checked
from ..function import IRModule, PrimFunc
from ..names import near_names
from ..visit import with_recursion_limit

Program = TypeVar("Program", PrimFunc, IRModule)


class Pass:
    """A program transformation, called with an IRModule or a PrimFunc and returning the same kind.

    ``name`` identifies it in ``tir.lower(insert={"after:<name>": …})`` and in dumps. ``configured(**options)`` is the
    pass with options fixed.

    >>> import tir
    >>> unroll = tir.transform.unroll_loop.configured(max_copies=64)
    >>> unroll.name, unroll
    ('unroll_loop', tir.transform.unroll_loop.configured(max_copies=64))
    """

    def __init__(self, name: str, fn: Callable[..., PrimFunc], options: dict[str, Any] | None = None, doc: str = ""):
        self.name = name
        self.fn = fn
        self.options = dict(options or {})
        self.__name__ = name
        self.__doc__ = doc or fn.__doc__

    @with_recursion_limit
    def __call__(self, program: Program, **options: Any) -> Program:
        chosen = {**self.options, **options}
        if isinstance(program, PrimFunc):
            return self.fn(program, **chosen)
        return IRModule.of(program).map_functions(lambda func: self.fn(func, **chosen))

    def configured(self, **options: Any) -> Pass:
        return Pass(self.name, self.fn, {**self.options, **options}, self.__doc__ or "")

    def __reduce__(self) -> tuple[Any, ...]:
        """By name: the pass that is registered there, with the same options."""
        return _registered, (self.name, self.options)

    def __repr__(self) -> str:
        given = ", ".join(f"{k}={v!r}" for k, v in self.options.items())
        return f"tir.transform.{self.name}" + (f".configured({given})" if given else "")


PASSES: dict[str, Pass] = {}


def _registered(name: str, options: dict[str, Any]) -> Pass:
    return find(name).configured(**options)


def func_pass(fn: Callable[..., PrimFunc]) -> Pass:
    """Make ``fn(func, **options) -> func`` a pass over modules, registered under its name.

    >>> @func_pass
    ... def do_nothing(func):
    ...     return func
    >>> PASSES.pop("do_nothing")
    tir.transform.do_nothing
    """
    made = Pass(fn.__name__, fn)
    PASSES[made.name] = made
    return made


class ModulePass(Pass):
    """A pass over a whole module, which may add functions; a single function is taken as a module of one.

    >>> import tir
    >>> tir.transform.split_host_device.name, isinstance(tir.transform.split_host_device, tir.transform.ModulePass)
    ('split_host_device', True)
    """

    @with_recursion_limit
    def __call__(self, program: Any, **options: Any) -> Any:
        return self.fn(IRModule.of(program), **{**self.options, **options})

    def configured(self, **options: Any) -> ModulePass:
        return ModulePass(self.name, self.fn, {**self.options, **options}, self.__doc__ or "")


def module_pass(fn: Callable[..., Any]) -> ModulePass:
    """Make ``fn(mod, **options) -> mod`` a pass, registered under its name.

    >>> from tir.transform.passes import PASSES, module_pass
    >>> @module_pass
    ... def only_main(mod):
    ...     return mod.subset(["main"])
    >>> PASSES.pop("only_main")
    tir.transform.only_main
    """
    made = ModulePass(fn.__name__, fn)
    PASSES[made.name] = made
    return made


@checked
def find(name: str) -> Pass:
    """The registered pass ``name``. Raises ``KeyError`` with near matches.

    >>> import tir
    >>> tir.transform.find("simplify") is tir.transform.simplify
    True
    """
    if name not in PASSES:
        extension.load(extension.PASSES)
    if name not in PASSES:
        near, fails = ", ".join(near_names(name, sorted(PASSES))), extension.missing(extension.PASSES)
        raise KeyError(f"no pass is named {name!r}; there is {near}{fails}")
    return PASSES[name]


class Sequential:
    """Passes run in order; callable like a pass.

    >>> import tir
    >>> both = tir.transform.Sequential([tir.transform.simplify, tir.transform.remove_no_op])
    >>> list(both(tir.IRModule.of(tir.library.rows.row_sum(4, 8))))
    ['main']
    """

    @checked
    def __init__(self, passes: Iterable[Callable[[Any], Any]], name: str = "sequential"):
        self.passes = tuple(passes)
        self.name = name

    def __call__(self, program: Program) -> Program:
        for step in self.passes:
            program = step(program)
        return program
