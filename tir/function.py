"""PrimFunc and IRModule."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, Protocol

from .buffer import Buffer
from .dtype import VOID, DType
from .expr import Var
from .node import EMPTY, Node, frozendict, node
from .render import show, to_html, to_script
from .stmt import Block, BlockRealize, Stmt
from .visit import free_vars


class Printable(Node):
    """What can be printed: functions and modules."""

    __slots__ = ()

    def script(self, **options: Any) -> str:
        """The program as text in the dialect; it parses back to the same program."""
        return to_script(self, **options)

    def __str__(self) -> str:
        return self.script()

    def show(self, **options: Any) -> None:
        """Print the program, coloured in a terminal and in a notebook."""
        show(self.script(**options))

    def _repr_html_(self) -> str:
        return to_html(self.script())


@node
class PrimFunc(Printable):
    """A function over buffers and scalars.

    ``params`` are variables; a handle parameter with an entry in ``buffer_map`` stands for that buffer.
    ``attrs["global_symbol"]`` is its name. Raises ``ValueError`` for one without characters, or with one that is not
    printable.

    >>> import tir
    >>> func = tir.library.rows.row_sum(4, 8)
    >>> func.name, [p.name for p in func.params], [b.shape for b in func.buffer_map.values()]
    ('row_sum', ['A_handle', 'B_handle'], [(4, 8), (4,)])
    """

    params: tuple[Var, ...]
    body: Stmt
    ret_type: DType = VOID
    buffer_map: Any = EMPTY
    attrs: Any = EMPTY

    def __post_init__(self) -> None:
        if "global_symbol" in self.attrs:
            require_name(self.attrs["global_symbol"], "the global_symbol of a function")

    @property
    def name(self) -> str:
        """The name under which it is called, ``attrs["global_symbol"]``."""
        return self.attrs.get("global_symbol", "main")

    def __call__(self, *args: Any, **named: Any) -> NoReturn:
        """A program is no function of Python: raises ``TypeError``, which says how it is run."""
        raise TypeError(
            f"{self.name} is a program, not a function of Python: tir.build({self.name})(…) compiles and runs it"
        )

    @property
    def root(self) -> Block | None:
        """The root block, where the function is in block form."""
        return self.body.block if isinstance(self.body, BlockRealize) else None

    def buffers(self) -> tuple[Buffer, ...]:
        """Parameter buffers in parameter order."""
        return tuple(self.buffer_map[p] for p in self.params if p in self.buffer_map)

    @property
    def sizes(self) -> dict[str, Var]:
        """By name, the scalar parameters, and the variables in the shapes and strides of parameters.

        >>> import tir
        >>> from tir.script import tir as T
        >>> @T.prim_func
        ... def double(a: T.handle, b: T.handle):
        ...     n = T.int32()
        ...     A, B = T.match_buffer(a, (n, 4)), T.match_buffer(b, (n * 4,))
        ...     for i, j in T.grid(n, 4):
        ...         with T.block("B"):
        ...             vi, vj = T.axis.remap("SS", [i, j])
        ...             B[vi * 4 + vj] = A[vi, vj] * 2.0
        >>> double.sizes
        {'n': n}
        """
        parts: list[Any] = [p for p in self.params if not p.dtype.is_handle]
        parts += [e for b in self.buffers() for e in (*b.shape, *b.strides)]
        return {v.name: v for e in parts for v in free_vars(e)}

    def with_attr(self, key: str | dict[str, Any], value: Any = None) -> PrimFunc:
        new = key if isinstance(key, dict) else {key: value}
        return self.replace(attrs=frozendict({**self.attrs, **new}))

    def without_attr(self, key: str) -> PrimFunc:
        return self.replace(attrs=frozendict({k: v for k, v in self.attrs.items() if k != key}))

    def with_body(self, body: Stmt) -> PrimFunc:
        return self.updated(body=body)


def require_name(name: Any, what: str) -> None:
    """Raise ``TypeError`` for a name that is no string, ``ValueError`` for one that nobody can read."""
    if not isinstance(name, str):
        raise TypeError(f"{what} is a string, not {name!r:.60}")
    if not name.isprintable() or not name:
        raise ValueError(f"{what} is printable text of at least one character, not {name!r:.60}")


class LowersItself(Protocol):
    """A program that knows how it is lowered and built from arguments, as a schedule of stages does."""

    def lower(
        self, args: Any, name: str = ..., simple_mode: bool = ..., target: Any = ..., binds: Any = ..., **options: Any
    ) -> Any: ...

    def build(self, args: Any, target: Any = ..., target_host: Any = ..., name: str = ..., binds: Any = ...) -> Any: ...


def answered_by_program(function: Callable[..., Any]) -> Any:
    """``function(program, …)`` is ``program.<function>(…)`` for what is no function or module, but has such a method.

    Overloads of ``function`` say what it takes.
    """

    @functools.wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        own = getattr(args[0], function.__name__, None) if args and not isinstance(args[0], str) else None
        return function(*args, **named) if own is None else own(*args[1:], **named)

    return call


class HasProgram(Protocol):
    """What stands for a program: a ``Schedule``."""

    @property
    def mod(self) -> IRModule: ...


@node
class IRModule(Printable):
    """Functions by name, in order. Raises ``ValueError`` for a name without characters, or with one that is not printable.

    >>> import tir
    >>> mod = tir.IRModule({"sums": tir.library.rows.row_sum(4, 8)})
    >>> list(mod), mod["sums"].name
    (['sums'], 'row_sum')
    """

    functions: Any = EMPTY
    attrs: Any = EMPTY

    def __post_init__(self) -> None:
        for name in self.functions:
            require_name(name, "the name of a function in a module")

    @staticmethod
    def of(func_or_mod: PrimFunc | IRModule | HasProgram | dict[str, PrimFunc]) -> IRModule:
        """A module from a module (itself), a schedule (its program), a mapping, or one function (under the name ``main``).

        Raises ``TypeError`` for anything else.
        """
        if isinstance(func_or_mod, IRModule):
            return func_or_mod
        if isinstance(func_or_mod, PrimFunc):
            return IRModule(frozendict({"main": func_or_mod}))
        if isinstance(func_or_mod, dict):
            for name, func in func_or_mod.items():
                if not isinstance(name, str) or not isinstance(func, PrimFunc):
                    raise TypeError(f"a module has functions by their names, not {name!r}: {type(func).__name__}")
            return IRModule(frozendict(func_or_mod))
        held = getattr(func_or_mod, "mod", None)
        if isinstance(held, IRModule):
            return held
        made = "; tir.script.parse makes one of its text" if isinstance(func_or_mod, str) else ""
        made = "; decorate it with @T.prim_func" if callable(func_or_mod) else made
        raise TypeError(f"expected a PrimFunc or an IRModule, got {type(func_or_mod).__name__}{made}")

    @staticmethod
    def from_expr(func: PrimFunc) -> IRModule:
        """A module of one function under its own name (``global_symbol``), or ``main``."""
        return IRModule(frozendict({func.attrs.get("global_symbol") or "main": func}))

    def __getitem__(self, name: str) -> PrimFunc:
        try:
            return self.functions[name]
        except KeyError:
            raise KeyError(
                f"no function {name!r} in the module; it has {', '.join(self.functions) or 'none'}"
            ) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.functions)

    def __len__(self) -> int:
        return len(self.functions)

    def __contains__(self, name: object) -> bool:
        return name in self.functions

    def items(self) -> Any:
        return self.functions.items()

    def with_function(self, name: str, func: PrimFunc) -> IRModule:
        if self.functions.get(name) is func:
            return self
        return self.replace(functions=frozendict({**self.functions, name: func}))

    def map_functions(self, fn: Any) -> IRModule:
        """The module with ``fn`` applied to each function; itself when none changed."""
        new = {name: fn(func) for name, func in self.functions.items()}
        if all(new[name] is self.functions[name] for name in new):
            return self
        return self.replace(functions=frozendict(new))
