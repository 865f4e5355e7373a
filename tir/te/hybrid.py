"""``te.hybrid.script``: a Python function of loops and stores as an operation.

The function is rewritten to the dialect and parsed by its parser, so its errors name the user's lines; given NumPy arrays,
it runs as Python.
"""

from __future__ import annotations

import ast
import builtins
import copy
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

from .. import ir_builder
from ..buffer import Buffer, Range, decl_buffer
from ..expr import Expr, as_expr
from ..function import PrimFunc
from ..script import source as _source
from ..script.environment import Environment
from ..script.parser import Options, parse_function
from ..stmt import BlockRealize, For
from ..visit import walk
from .extern import ExternOp
from .tag import notes
from .tensor import Axis, Tensor, data_type, extents
from .user_lines import error

_OUTPUT, _SCALAR = "output_tensor", "__declare_scalar"
_SCOPES = {"share": "shared", "shared": "shared", "local": "local", "global": "global"}


@dataclass(frozen=True, eq=False, repr=False)
class HybridOp(ExternOp):
    """An operation whose loops and stores stand in the function as they are, for schedules to transform.

    ``local_buffers`` is memory of its own; ``axis`` are its loops, each before those inside of it.
    """

    local_buffers: tuple[Buffer, ...] = field(default=())
    loops: tuple[Axis, ...] = field(default=())

    def __post_init__(self) -> None:
        if not self.loops:
            found = (n for n in walk(self.body) if isinstance(n, For))
            loops = tuple(Axis(Range(n.min, n.extent), n.loop_var, "spatial") for n in found)
            object.__setattr__(self, "loops", loops)

    @property
    def axis(self) -> tuple[Axis, ...]:
        return self.loops


class HybridFunction:
    """A function of tensors, scalars and numbers: called with tensors it gives tensors, with arrays it runs as Python."""

    def __init__(self, function: FunctionType):
        self.function = function
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__

    def __call__(self, *args: Any) -> Any:
        if not any(isinstance(a, (Tensor, Expr)) for a in args):
            return self._run(args)
        parameters = self.function.__code__.co_varnames[: self.function.__code__.co_argcount]
        if len(args) != len(parameters):
            raise error(
                f"`{self.__name__}` takes {len(parameters)} arguments ({', '.join(parameters)}), not {len(args)}"
            )
        return _operation(self.function, dict(zip(parameters, args)))

    def _run(self, args: tuple[Any, ...]) -> Any:
        """As a Python function on arrays."""
        names = {**_python(), **{k: v for k, v in self.function.__globals__.items() if k not in _dialect()}}
        code = self.function.__code__
        return FunctionType(code, names, self.__name__, self.function.__defaults__, self.function.__closure__)(*args)


def script(function: Callable[..., Any]) -> HybridFunction:
    """Make a Python function of loops and stores an operation on tensors.

    Its arguments are tensors, scalars and numbers. ``c = output_tensor(shape, dtype)`` is a result, ``allocate(shape,
    dtype, scope)`` memory; a name that is assigned more than once is a scalar variable, whose first assignment declares
    its type. Loops are over ``range``, ``serial``, ``parallel``, ``vectorize``, ``unroll``, ``const_range``, or
    ``bind("threadIdx.x", n)``. ``return`` comes last. Conditions, ``assert``, arithmetic and functions of floats are
    those of the dialect.

    Raises, when it is called, ``ParseError`` with the lines for what is not in the dialect, and
    ``TensorExpressionError`` for wrong arguments and results.

    >>> from tir import te
    >>> @te.hybrid.script
    ... def outer(a, b):
    ...     c = output_tensor((a.shape[0], b.shape[0]), a.dtype)
    ...     for i in range(a.shape[0]):
    ...         for j in range(b.shape[0]):
    ...             c[i, j] = a[i] * b[j]
    ...     return c
    >>> outer(te.placeholder((4,), name="a"), te.placeholder((3,), name="b"))
    Tensor(outer, (4, 3), float32)
    """
    if not isinstance(function, FunctionType):
        raise error(f"te.hybrid.script decorates a function, not {function!r}")
    return HybridFunction(function)


Memory = Sequence[tuple[Any, Any]]  # shapes and data types


def statements(
    name: str, inputs: Sequence[Tensor], outputs: Memory, body: Callable[..., None], memory: Memory = ()
) -> list[Tensor]:
    """Tensors made by what ``body(ib, ins, outs, own)`` emits with a builder of :mod:`tir.ir_builder`, on buffers to be read and
    written: one of each input, output, and ``memory`` of the operation's own. ``outputs`` and ``memory`` are pairs of shape and type.

    As of :func:`script`, the loops stay loops of the function, for schedules to transform. Raises ``TensorExpressionError`` for a
    shape and a type that are none.

    >>> from tir import te
    >>> def running_sum(ib, ins, outs, own):
    ...     with ib.for_range(0, 4, "i") as i:
    ...         own[0][0] = own[0][0] + ins[0][i]
    ...         outs[0][i] = own[0][0]
    >>> te.hybrid.statements("sums", [te.placeholder((4,))], [((4,), "float32")], running_sum, [((1,), "float32")])
    [Tensor(sums, (4,), float32)]
    """
    ins = [decl_buffer(t.shape, t.dtype, t.name) for t in inputs]
    outs = [_declared(name if len(outputs) == 1 else f"{name}_{n}", *spec) for n, spec in enumerate(outputs)]
    own = [_declared(f"{name}_memory", *spec) for spec in memory]
    ib = ir_builder.create()
    body(ib, *([ir_builder.BufferVar(ib, b) for b in group] for group in (ins, outs, own)))
    op = HybridOp(name, tuple(inputs), tuple(ins), tuple(outs), ib.get(), local_buffers=tuple(own), **notes())
    return list(op.outputs)


def _declared(name: str, shape: Any, dtype: Any) -> Buffer:
    return decl_buffer(extents(shape, f"`{name}`"), data_type(dtype), name)


# ---------------------------------------------------------------- from Python to an operation


def _operation(function: FunctionType, arguments: dict[str, Any]) -> Any:
    name = function.__name__
    tensors = {k: v for k, v in arguments.items() if isinstance(v, Tensor)}
    constants = {k: v for k, v in arguments.items() if k not in tensors}
    for k, v in constants.items():
        if not isinstance(v, (int, float, Expr)):
            raise error(f"argument `{k}` of `{name}` is a tensor, a scalar or a number, not {v!r}")
    source, node = _source.of_function(function)
    node, results = _rewritten(node, set(arguments), tensors, name)
    specs = {_annotation(k): _dialect()["Buffer"](t.shape, t.dtype) for k, t in tensors.items()}
    names = (specs, constants, _dialect(), _source.closure_of(function), function.__globals__, vars(builtins))
    func = parse_function(node, source, Environment(*names), Options(private=True, check_well_formed=False))
    return _op_of(func, name, tuple(tensors.values()), results)


def _op_of(func: PrimFunc, name: str, inputs: tuple[Tensor, ...], results: list[str]) -> Any:
    root = func.body.block if isinstance(func.body, BlockRealize) else None
    memory = {b.name: b for b in (root.alloc_buffers if root else ())}
    missing = [r for r in results if r not in memory]
    if missing or root is None:
        raise error(f"`{name}` returns `{', '.join(missing)}`, which no output_tensor made")
    outs = tuple(memory[r] for r in results)
    locals_ = tuple(b for b in memory.values() if b not in outs)
    op = HybridOp(name, inputs, func.buffers(), outs, root.body, local_buffers=locals_, **notes())
    return op.output(0) if len(results) == 1 else list(op.outputs)


def _annotation(parameter: str) -> str:
    return f"__type_of_{parameter}"


def _rewritten(
    node: ast.FunctionDef, parameters: set[str], tensors: Iterable[str], name: str
) -> tuple[ast.FunctionDef, list[str]]:
    """The function in the dialect, and the names of what it returns."""
    node = copy.deepcopy(node)
    node.decorator_list = []
    node.args.args = [a for a in node.args.args if a.arg in tensors]
    node.args.defaults = []
    for a in node.args.args:
        a.annotation = ast.copy_location(ast.Name(_annotation(a.arg), ast.Load()), a)
    *body, last = node.body
    if isinstance(body[0] if body else last, ast.Expr) and isinstance(getattr(body[0], "value", None), ast.Constant):
        body = body[1:]  # the docstring
    results = _results(last, name)
    node.body = _Scalars(_variables(body, parameters)).statements(body)
    return node, results


def _results(last: ast.stmt, name: str) -> list[str]:
    value = last.value if isinstance(last, ast.Return) else None
    items = value.elts if isinstance(value, ast.Tuple) else [value]
    names = [item.id for item in items if isinstance(item, ast.Name)]
    if len(names) < len(items):
        raise error(f"`{name}` ends with `return` of the names of its outputs", "return c")
    return names


def _variables(body: list[ast.stmt], parameters: set[str]) -> set[str]:
    """The names assigned more than once, or updated: scalar variables."""
    count: Counter[str] = Counter()
    for item in (n for s in body for n in ast.walk(s)):
        if isinstance(item, ast.AugAssign) and isinstance(item.target, ast.Name):
            count[item.target.id] += 2
        elif isinstance(item, ast.Assign) and isinstance(item.targets[0], ast.Name):
            count[item.targets[0].id] += 1
    return {v for v, n in count.items() if n > 1} | (count.keys() & parameters)


class _Scalars(ast.NodeTransformer):
    """Scalar variables as buffers of one element: the first assignment declares, every use is of element 0."""

    def __init__(self, variables: set[str]):
        self.variables = variables
        self.declared: set[str] = set()

    def statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        made = [self.visit(s) for s in body]
        return [s for group in made for s in (group if isinstance(group, list) else [group])]

    def visit_Assign(self, node: ast.Assign) -> Any:
        target = node.targets[0]
        if not (isinstance(target, ast.Name) and target.id in self.variables):
            return self.generic_visit(node)
        value = self.visit(node.value)
        store = ast.copy_location(ast.Assign([self._element(target, ast.Store())], value), node)
        if target.id in self.declared:
            return store
        self.declared.add(target.id)
        call = ast.Call(ast.Name(_SCALAR, ast.Load()), [copy.deepcopy(value)], [])
        made = ast.copy_location(ast.Assign([ast.Name(target.id, ast.Store())], call), node)
        return [ast.fix_missing_locations(made), ast.fix_missing_locations(store)]

    def visit_Name(self, node: ast.Name) -> Any:
        return self._element(node, node.ctx) if node.id in self.declared else node

    def _element(self, name: ast.Name, context: ast.expr_context) -> ast.expr:
        made = ast.Subscript(ast.Name(name.id, ast.Load()), ast.Constant(0), context)
        return ast.fix_missing_locations(ast.copy_location(made, name))


# ---------------------------------------------------------------- what functions may call


def _dialect() -> dict[str, Any]:
    """What the names of a hybrid function mean in the dialect."""
    from ..script import tir as T

    def allocate(shape: Any, dtype: Any = "float32", scope: str = "global") -> Any:
        if scope not in _SCOPES:
            raise TypeError(f"memory is share, local or global, not {scope!r}")
        return T.alloc_buffer(shape, dtype, scope=_SCOPES[scope])

    def bind(tag: str, extent: Any) -> Any:
        return T.thread_binding(extent, thread=tag)

    def scalar(value: Any) -> Any:
        return T.alloc_buffer((1,), as_expr(value).dtype)

    kinds = {
        "serial": T.serial,
        "parallel": T.parallel,
        "vectorize": T.vectorized,
        "unroll": T.unroll,
        "const_range": T.unroll,
    }
    functions = {name: getattr(T, name) for name in (*_FLOATS, "popcount", "power", "likely", "max", "min", "abs")}
    types = {name: getattr(T, name) for name in _TYPES}
    return {
        **kinds,
        **functions,
        **types,
        "bind": bind,
        "allocate": allocate,
        _OUTPUT: T.alloc_buffer,
        _SCALAR: scalar,
        "Buffer": T.Buffer,
    }


_FLOATS = ("exp", "log", "tanh", "sigmoid", "sqrt", "rsqrt", "sin", "cos", "floor", "ceil", "round", "trunc", "erf")
_TYPES = ("int8", "uint8", "int16", "int32", "int64", "float16", "float32", "float64")


def _python() -> dict[str, Any]:
    """What the names of a hybrid function mean in Python, on arrays."""
    import numpy as np

    from ..op import OPS

    def memory(shape: Any, dtype: Any = "float32", scope: str = "global") -> np.ndarray:
        return np.zeros(shape, dtype)

    functions = {name: OPS[name].numpy for name in (*_FLOATS, "popcount", "likely")}
    loops = dict.fromkeys(("serial", "parallel", "vectorize", "unroll", "const_range"), range)
    return {
        "__builtins__": builtins,
        **functions,
        **loops,
        **{t: getattr(np, t) for t in _TYPES},
        "power": np.power,
        "bind": lambda tag, extent: range(extent),
        "allocate": memory,
        _OUTPUT: memory,
    }


__all__ = ["HybridFunction", "HybridOp", "script", "statements"]


def __getattr__(name: str) -> Any:
    """Says what to use in the place of TVM's functions on schedules and sources."""
    instead = {
        "build": "; tir.lower(s, args) is the program of a schedule as text, and tir.build(s, args) runs it",
        "decorate": "; te.hybrid.script is the decorator",
        "source_to_op": "; te.hybrid.script makes an operation of a function that is called with tensors",
    }
    raise AttributeError(f"module 'tir.te.hybrid' has no attribute {name!r}{instead.get(name, '')}")
