"""Stubs for editors and type checkers: of the namespace ``T`` as kernels see it
(tir.pyi), and of what ``import tir`` gives (``__init__.pyi`` of the package), most of which loads when first used.

At run time ``T.grid`` gives the parser a description of loops; in a kernel its value is the loop variables. The stub has
what a kernel sees: signatures come from the functions, the meaning of what they return from ``SEEN_AS``.
"""

from __future__ import annotations

import ast
import inspect
import itertools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import tir as package
from tir import op
from tir.dtype import CLASSIC
from tir.script import tir as dialect
from tir.script import tir_operators
from tir.script.tir_types import DataType
from tir.small_floats import SMALL_FLOATS

STUB = Path(dialect.__file__).with_suffix(".pyi")
PACKAGE_STUB = Path(package.__file__).with_suffix(".pyi")

# what a function returns -> what that is in a kernel
SEEN_AS = {
    "Expr": "Value",
    "_e.Var": "Value",
    "_e.IntImm": "Value",
    "_e.FloatImm": "Value",
    "_f.AllocateFrame": "Scoped",
    "_f.AssertFrame": "AbstractContextManager[None]",
    "_f.AttrFrame": "AbstractContextManager[None]",
    "_f.BlockFrame": "AbstractContextManager[None]",
    "_f.BufferSpec": "Buffer",
    "_f.Directive": "None",
    "_f.EnvThread": "Value",
    "_f.Evaluated": "None",
    "_f.InitFrame": "AbstractContextManager[None]",
    "_f.LaunchFrame": "Scoped",
    "_f.LetFrame": "Scoped",
    "_f.LoopFrame": "Iterable[Any]",
    "_f.RealizeFrame": "AbstractContextManager[None]",
    "_f.StoreFrame": "None",
    "_IterVar": "IterVar",
    "_Range": "_Range",
    "_e.CommReducer": "CommReducer",
    "str": "str",
    "Any": "Any",
}
_LANES = (1, 2, 3, 4, 8, 16, 32, 64, 128)
_BINARY = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "and", "or", "xor"]
_COMPARISONS = ["lt", "le", "gt", "ge"]
_BUFFER = inspect.signature(type(dialect.Buffer).__call__)

PACKAGE_HEADER = '''"""Made by ``python -m tests.tools.generated``; do not edit."""

# ruff: noqa
# fmt: off
'''
HEADER = '''"""Made by ``python -m tests.tools.generated``; do not edit."""

# ruff: noqa
# fmt: off
import builtins
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Generic, NoReturn, TypeAlias, TypeVar, overload

from ..buffer import Buffer as _Buffer
from ..buffer import IterVar, Range as _Range
from ..expr import CommReducer, Expr, StringImm as StringImm
from ..expr import Var as _Var
from ..function import PrimFunc

_T = TypeVar("_T")
PrimExpr = Expr

class Value(Expr):
    """A scalar or a vector of a kernel: a loop variable, a parameter, an element of a buffer, what is computed of them."""
    def __init__(self, value: Any = ..., storage_scope: str = ..., *, is_size_var: builtins.bool = ...) -> None: ...
    def __index__(self) -> int: ...  # range(n) in a kernel is a loop
'''

_HAND_WRITTEN = '''
_Operand: TypeAlias = Expr | float

class Scoped(Value):
    """What ``with … as x`` names, or what it is assigned to: it holds over what follows."""
    def __enter__(self) -> Value: ...
    def __exit__(self, *error: object) -> None: ...

class let(Scoped, Generic[_T]):
    def __init__(self, var: Expr, value: Any, body: Any = ...) -> None: ...

class Ptr(Value):
    def __class_getitem__(cls, item: Any) -> Any: ...

class axis:
    """Iterators of a block: ``vi = T.axis.spatial(128, i)``, ``vi, vk = T.axis.remap("SR", [i, k])``."""
    @staticmethod
    def spatial(dom: Any, binding: Any, dtype: str = ...) -> Value: ...
    @staticmethod
    def reduce(dom: Any, binding: Any, dtype: str = ...) -> Value: ...
    @staticmethod
    def scan(dom: Any, binding: Any, dtype: str = ...) -> Value: ...
    @staticmethod
    def opaque(dom: Any, binding: Any, dtype: str = ...) -> Value: ...
    @staticmethod
    def S(dom: Any, binding: Any, dtype: str = ...) -> Value: ...
    @staticmethod
    def R(dom: Any, binding: Any, dtype: str = ...) -> Value: ...
    @staticmethod
    def remap(kinds: str, bindings: Sequence[Any], dtype: str = ...) -> Any:
        """One iterator for each loop variable, S spatial or R reduce, over the loop's whole domain."""

def meta_var(value: _T) -> _T:
    """``x = T.meta_var(v)`` binds ``x`` in Python: no let is made."""

def ret(value: Any) -> NoReturn: ...

@overload
def prim_func(func: Any, *, private: builtins.bool = ..., check_well_formed: builtins.bool = ...) -> PrimFunc:
    """Make a function of the dialect a ``PrimFunc``. ``private=True`` leaves out its global symbol."""
@overload
def prim_func(*, private: builtins.bool = ..., check_well_formed: builtins.bool = ..., **options: Any) -> Callable[[Any], PrimFunc]: ...

def macro(func: Callable[..., Any] | None = ..., *, hygienic: builtins.bool = ...) -> Any:
    """Make a function of the dialect a macro: its statements are put where it is called."""
'''


def text() -> str:
    """The stub file as text."""
    parts = [HEADER, *_operators(), _HAND_WRITTEN, *_buffer(), *_grid(), *_types()]
    done = {"grid", "Buffer", "buffer", "axis", "let", "Ptr", "StringImm", "PrimExpr", "Expr", *_names(_HAND_WRITTEN)}
    for name in dir(dialect):
        value = getattr(dialect, name)
        if name in done or not callable(value) or isinstance(value, (type, DataType)):
            continue
        if getattr(value, "__module__", "") == tir_operators.__name__:
            parts += _operator(name)
        elif inspect.isfunction(value) and value.__module__.startswith("tir.script."):
            parts += _function(name, value)
    return "\n".join([*parts, ""])


def _names(stub: str) -> set[str]:
    return {line.split("(")[0].split()[-1] for line in stub.splitlines() if line.startswith("def ")}


def _operators() -> list[str]:
    lines: list[str] = []
    for name in _BINARY:
        lines += [f"    def __{side}{name}__(self, other: Any) -> Value: ..." for side in ("", "r")]
    lines += [f"    def __{name}__(self, other: Any) -> Value: ..." for name in _COMPARISONS]
    lines += [f"    def __{name}__(self) -> Value: ..." for name in ("neg", "pos", "invert")]
    return [*lines, "    def astype(self, dtype: Any) -> Value: ..."]


def _buffer() -> list[str]:
    return [
        "class Buffer(_Buffer):",
        '    """Memory of a kernel: a parameter, an allocation or a view."""',
        f"    def __init__{_signature(_BUFFER, 'None')}: ...",
        "    def __class_getitem__(cls, item: Any) -> Any: ...",
        "    def __getitem__(self, indices: Any) -> Any: ...",
        "    def __setitem__(self, indices: Any, value: Any) -> None: ...",
        "    def __getattr__(self, name: str) -> Any: ...",
        "buffer = Buffer",
        "",
    ]


def _grid() -> list[str]:
    lines = []
    for count in range(1, 9):
        value = "Any" if count == 1 else f"tuple[{', '.join(['Any'] * count)}]"
        given = ", ".join(f"e{k}: Any" for k in range(count))
        lines += ["@overload", f"def grid({given}, /) -> Iterable[{value}]: ..."]
    return [*lines, "@overload", "def grid(*extents: Any) -> Iterable[Any]: ..."]


def _types() -> list[str]:
    """Every data type is one class: as an annotation it is what a kernel has, called it makes a constant or a cast."""
    names = [name for name in dir(dialect) if isinstance(getattr(dialect, name), DataType)]
    vectors = [name for name in names if name in SMALL_FLOATS or name[-1].isdigit() and name not in CLASSIC]
    wide = ["; ".join(f"{n}x{k} = Value" for k in _LANES[1:]) for n in vectors]
    return [*(f"{n} = Value" for n in names), *wide]


def _operator(name: str) -> list[str]:
    """With the names of its operands, where no result type may stand before them."""
    entry = op.OPS[name]
    operands = "*args: Any"
    if entry.result != "given" and entry.arity:
        operands = ", ".join([*(f"{p}: _Operand" for p in entry.parameters), "/", "*"])
    options = "dtype: Any = ..." if name in tir_operators.FLOAT else "dtype: Any = ..., annotations: Any = ..."
    return [f"def {name}({operands}, {options}) -> Value:", *prose(tir_operators.docstring(entry))]


def _function(name: str, value: Any) -> list[str]:
    """Without a docstring: editors find the one of the function in the source."""
    signature = inspect.signature(value)
    return [f"def {name}{_signature(signature, SEEN_AS[signature.return_annotation])}: ..."]


def prose(doc: str) -> list[str]:
    """The docstring of a function that no ``def`` has, where editors would find it: in one line, without examples."""
    text = " ".join(doc.partition(">>>")[0].split())
    return [f'    """{text}"""']


def _signature(signature: inspect.Signature, returns: str) -> str:
    """Types that are about expressions take any operand."""
    return signature_text(signature, _parameter_type, returns)


def signature_text(signature: inspect.Signature, kind: Callable[[inspect.Parameter], Any], returns: Any) -> str:
    """The parameters without their defaults, as in a stub, with annotations as text: ``Any`` for those that are none."""
    parameters = [
        p.replace(annotation=_Text(kind(p)), default=p.empty if p.default is p.empty else _Text("..."))
        for p in signature.parameters.values()
    ]
    return str(signature.replace(parameters=parameters, return_annotation=_Text(returns)))


def _parameter_type(p: inspect.Parameter) -> str:
    kept = ("str", "builtins.bool", "builtins.int", "builtins.float", "Sequence[Any]", "Callable[..., Any]")
    return p.annotation if p.annotation in kept or p.annotation in ("dict[str, Any]", "str | None") else "Any"


class _Text:
    """An annotation or a default that is shown as it is."""

    def __init__(self, shown: Any):
        self.shown = shown

    def __repr__(self) -> str:
        return self.shown if isinstance(self.shown, str) else "Any"


def package_text() -> str:
    """The stub of the package: each of its names, from the module that defines it."""
    called = [n for n in package._SUBMODULES if callable(getattr(package, n))]
    found = {**_imported(), **package._LAZY, **{n: ("tir", n) for n in package._SUBMODULES}}
    found |= {n: ("tir.script.tir", n) for n in sorted({*package.EXPRESSIONS, *op.OPS} - set(found)) if _in_dialect(n)}
    lines = imports((module, of, name) for name, (module, of) in found.items() if name not in called)
    lines += [line for name in called for line in _callable_package(name)]
    head = PACKAGE_HEADER + "import tir as tir\nfrom .expr import *"
    return "\n".join([head, *lines, "", "__version__: str", ""])


def imports(names: Iterable[tuple[str, str, str]]) -> list[str]:
    """A line for each module, of names as (module, name there, name here): what a stub has for others to import is named twice."""
    found: dict[str, list[str]] = {}
    for module, of, name in names:
        found.setdefault(module, []).append(f"{of} as {name}")
    return [f"from {module} import {', '.join(of)}" for module, of in found.items()]


def _callable_package(name: str) -> list[str]:
    """A package that is also the function of its name, such as ``tir.tune``: to checkers an object with that call."""
    function = getattr(getattr(package, name), name)
    kind = f"_{name.capitalize()}"
    return [
        "from typing import Any as _Any",
        f"from {function.__module__} import {name} as _{name}",
        f"class {kind}:",
        f"    __call__ = staticmethod(_{name})",
        "    def __getattr__(self, name: str) -> _Any: ...",
        f"{name}: {kind}",
    ]


def _in_dialect(name: str) -> bool:
    return name.isidentifier() and hasattr(dialect, name)


def _imported() -> dict[str, tuple[str, str]]:
    """What the package's file, and that of its nodes, import by name: name -> (module, name there)."""
    own = Path(package.__file__)
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in (own.with_name("_nodes.py"), own)]
    return {
        alias.name: ("tir." * item.level + (item.module or ""), alias.name)
        for item in itertools.chain.from_iterable(map(ast.walk, trees))
        if isinstance(item, ast.ImportFrom) and (item.level == 1 or (item.module or "").startswith("codegen"))
        for alias in item.names
        if alias.name != "*"
    }
