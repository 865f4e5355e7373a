"""A kernel PrimFunc as CUDA C."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import prod

from tir.aliases import overlapping, parameter_pointers
from tir.buffer import Range
from tir.dtype import DType
from tir.errors import BuildError
from tir.expr import Expr, IntImm, Var
from tir.function import PrimFunc
from tir.launches import bytes_of
from tir.levels import LANES, LAUNCH_AXES, THREAD_AXES
from tir.stmt import Allocate, AttrStmt
from tir.transform.engines import engine_memory
from tir.transform.layout import element_count
from tir.visit import walk

from . import expr, hopper, matrix, memory, ops, stmt  # noqa: F401  (they fill the tables)
from .generator import LOCAL, Generator, finished
from .memory import Place
from .prelude import prelude
from .promises import promises
from .tensor_map import MapParameter
from .types import c_type

_CLUSTER = "tir.cluster"


@dataclass(frozen=True)
class KernelText:
    """A kernel's text and the facts that its launch needs.

    ``functions``: inline functions and types made for it, by name. ``alignments``: the bytes to which each parameter's
    address must be aligned for vector accesses (1 for scalars). ``threads``: of a block, if constant. ``shared``,
    ``dynamic``: bytes of static and dynamic shared memory. ``maps``: the parameters after ``params``.
    ``cluster``: its blocks along each axis.
    """

    name: str
    text: str
    helpers: tuple[str, ...]
    functions: tuple[tuple[str, str], ...]
    params: tuple[DType, ...]
    alignments: tuple[int, ...]
    threads: int | None
    dynamic: int
    maps: tuple[MapParameter, ...] = ()
    cluster: tuple[int, ...] = (1, 1, 1)


def emit_kernel(func: PrimFunc, name: str, fast_math: bool = False) -> KernelText:
    """The CUDA C of one kernel. Raises ``BuildError`` for what has no CUDA spelling."""
    extents = _extents(func)
    threads = element_count([extents.get(a, IntImm(1)) for a in THREAD_AXES])
    g = Generator(name, fast_math, warps=-(-(threads or 1024) // 32))
    g.analyzer.note_aliases(overlapping(func))
    symbol = g.symbol
    promised = promises(func)
    params = []
    pointers = parameter_pointers(func)
    for p in pointers:
        hint = g.name(p, p.name)
        if p.dtype.is_handle:
            element = p.pointer_dtype or DType("void")
            params.append(f"{promised[p].declares(expr.declare_type(g, element))} {hint}")
            g.pointers[p] = Place(hint, element, "global", const=promised[p].const, constant=promised[p].restrict)
        else:
            params.append(f"const {expr.declare_type(g, p.dtype)} {hint}")
    _thread_axes(g, func)
    matrix.find_fragments(g, func.body)
    hopper.find_registers(g, func.body)
    g.engines = engine_memory(func.body)
    cluster = _cluster(g, func)
    g.cluster = prod(cluster)
    g.stmt(func.body)
    params += [f"const __grid_constant__ {g.need('tensor_map')} {hint}" for hint, _ in g.maps.values()]
    bounds = f" __launch_bounds__({threads})" if threads else ""
    bounds += f" __cluster_dims__({', '.join(map(str, cluster))})" if _CLUSTER in func.attrs else ""
    head = f'extern "C" __global__ void{bounds} {symbol}('
    one_line = head + ", ".join(params) + ") {"
    if len(one_line) - one_line.count(LOCAL) > 120:
        one_line = head + "\n    " + ",\n    ".join(params) + ") {"
    body = "\n".join(g.lines)
    text = finished("\n\n".join([*g.statics, f"{one_line}\n{body}\n}}\n"]))
    alignments = tuple(g.pointers[p].aligned if p in g.pointers else 1 for p in pointers)
    return KernelText(
        symbol,
        text,
        tuple(g.helpers),
        tuple(g.functions.items()),
        tuple(p.dtype for p in pointers),
        alignments,
        threads,
        _dynamic(func),
        tuple(MapParameter.of(call, name, {*pointers}) for _, call in g.maps.values()),
        cluster,
    )


def _cluster(g: Generator, func: PrimFunc) -> tuple[int, ...]:
    """The blocks of a cluster along x, y and z, from the function's attribute."""
    given = func.attrs.get(_CLUSTER, (1,))
    numbers = tuple(getattr(n, "value", n) for n in given) if isinstance(given, (list, tuple)) else ()
    whole = 1 <= len(numbers) <= 3 and all(isinstance(n, int) and n > 0 for n in numbers)
    if not whole or prod(numbers) > 8:
        raise g.error(
            f'the attribute "{_CLUSTER}" is {list(numbers) or given!r}; it is the blocks of a cluster along x, y and z, at most 8 in all'
        )
    return (*numbers, 1, 1)[:3]


def _thread_axes(g: Generator, func: PrimFunc) -> None:
    """Declare every thread axis as a constant at the top, under the name that the schedule gave it."""
    seen: dict[Var, None] = {}
    for node in walk(func.body):
        tag = getattr(node.node, "thread_tag", "") if isinstance(node, AttrStmt) else ""
        if not tag or node.attr_key != "thread_extent" or node.node.var in seen:  # type: ignore[union-attr]
            continue
        assert isinstance(node, AttrStmt)
        if tag not in LAUNCH_AXES:
            raise g.error(f"thread axis {tag!r} is left after lowering; a launch has {', '.join(LAUNCH_AXES)}")
        var = node.node.var
        seen[var] = None
        name = g.name(var, var.name)
        if tag == LANES:
            g.lane_vars.add(var)
        extent = f"  // < {node.value.value}" if isinstance(node.value, IntImm) else ""
        g.emit(f"const {c_type(var.dtype)} {name} = {tag};{extent}")
        g.analyzer.bind(var, Range(IntImm(0, var.dtype), node.value))


def _extents(func: PrimFunc) -> dict[str, Expr]:
    found: dict[str, Expr] = {}
    for node in walk(func.body):
        if isinstance(node, AttrStmt) and node.attr_key == "thread_extent":
            found.setdefault(getattr(node.node, "thread_tag", ""), node.value)
    return found


def _dynamic(func: PrimFunc) -> int:
    found = (n for n in walk(func.body) if isinstance(n, Allocate) and n.buffer_var.scope == "shared.dyn")
    return sum(map(bytes_of, found))


def source_of(kernels: list[KernelText]) -> str:
    """One compilation unit of all ``kernels``. Raises ``BuildError`` for two of one name."""
    for name, number in Counter(k.name for k in kernels).items():
        if number > 1:
            raise BuildError(f"two kernels would be called {name} in CUDA C; give one of them another name")
    helpers = dict.fromkeys(h for k in kernels for h in k.helpers)
    functions = dict(f for k in kernels for f in k.functions)
    head = prelude(helpers, functions.values())
    return "\n".join([*([head] if head else []), *(k.text for k in kernels)])
