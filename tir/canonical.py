"""Programs without their names: the key under which what is known of a program is kept.

Parameters, buffers, variables, blocks and functions are renamed by position, so that two programs that differ in
names alone have one canonical program and one key.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .buffer import Buffer
from .equal import structural_digest
from .expr import Var
from .function import IRModule, PrimFunc
from .node import frozendict, once
from .stmt import Block
from .visit import rewrite_statements, substitute, walk, with_recursion_limit

LARGEST_OF_A_KIND = 8  # greater integers are sizes, which a family of programs does not tell apart


@dataclass(frozen=True)
class Canonical:
    """``mod`` is the program with names by position: ``key`` is its digest; ``family`` that of all its sizes."""

    mod: IRModule
    key: str
    family: str


@with_recursion_limit
@once
def canonical(program: PrimFunc | IRModule) -> Canonical:
    """The canonical program of ``program``, with its keys (64 hex digits, the same in every process).

    >>> import tir
    >>> text = '''
    ... @T.prim_func
    ... def f(A: T.Buffer((64,), "float32")):
    ...     for i in range(64):
    ...         with T.block("A"):
    ...             vi = T.axis.spatial(64, i)
    ...             A[vi] = T.float32(1)
    ... '''
    >>> f, g = tir.script.parse(text), tir.script.parse(text.replace("A", "X"))
    >>> canonical(f).key == canonical(g).key
    True
    >>> larger = tir.script.parse(text.replace("64", "96"))
    >>> canonical(f).key == canonical(larger).key, canonical(f).family == canonical(larger).family
    (False, True)
    """
    mod = _renamed(IRModule.of(program))
    return Canonical(mod, structural_digest(mod), structural_digest(mod, LARGEST_OF_A_KIND))


def _renamed(mod: IRModule) -> IRModule:
    names = ["main"] if len(mod) == 1 else [f"f{k}" for k in range(len(mod))]
    return mod.replace(functions=frozendict(zip(names, map(_function, mod.functions.values(), names))))


def _function(func: PrimFunc, name: str) -> PrimFunc:
    buffers = _buffers(func)
    variables = _variables(func, buffers)
    fresh = {b: substitute(b.replace(name=f"b{k}"), variables) for k, b in enumerate(buffers)}
    body = _with_named_blocks(substitute(func.body, variables, fresh), func.root)
    return PrimFunc(
        tuple(variables[p] for p in func.params),
        body,
        func.ret_type,
        frozendict({variables[p]: fresh[b] for p, b in func.buffer_map.items()}),
        frozendict({key: name if key == "global_symbol" else value for key, value in func.attrs.items()}),
    )


def _buffers(func: PrimFunc) -> list[Buffer]:
    """The buffers of a function in the order of their first mention, parameters first."""
    return list(dict.fromkeys([*func.buffers(), *(n for n in walk(func.body) if isinstance(n, Buffer))]))


def _variables(func: PrimFunc, buffers: list[Buffer]) -> dict[Var, Var]:
    """A new variable for each: parameters, then those in the parts of buffers, then those of the body."""
    parts = [part for buffer in buffers for part in buffer.children()]
    found: list[Any] = [*func.params, *(n for part in (*parts, func.body) for n in walk(part) if isinstance(n, Var))]
    parameters = len(func.params)
    return {
        var: var.replace(name=f"p{k}" if k < parameters else f"v{k - parameters}")
        for k, var in enumerate(dict.fromkeys(found))
    }


def _with_named_blocks(body: Any, root: Block | None) -> Any:
    """``body`` with its blocks called s0, s1, … in program order; the root block keeps its name."""
    kept = () if root is None else (root.name,)
    found = dict.fromkeys(n.name for n in walk(body) if isinstance(n, Block) and n.name not in kept)
    names = {name: f"s{k}" for k, name in enumerate(found)}
    return rewrite_statements(
        body, lambda n: n.replace(name=names[n.name]) if isinstance(n, Block) and n.name in names else None
    )
