"""A lowered PrimFunc as two LLVM functions: the body, and the entry that Python and other functions call.

Entry: ``i32 tir.name(ptr args)``. ``args`` is an array of 8-byte slots: one for each parameter (the address of the first
element for a buffer, the value for a scalar), then one for each size, stride or offset that is not itself a parameter,
then, for a function that returns a value, the address of the result. It returns 0 or the code of a run-time error.
"""

from __future__ import annotations

import math

from tir.aliases import may_alias, overlapping
from tir.annotations import ONCE
from tir.errors import BuildError
from tir.expr import BufferLoad, Cast, IntImm, Let, Var
from tir.function import IRModule, PrimFunc
from tir.progress import track
from tir.stmt import BufferStore, For, LetStmt, Stmt, While
from tir.visit import Somewhere, has_load, kinds, nodes_of, uses_var

from . import expr, memory, ops, stmt  # noqa: F401  (they fill the tables)
from .amx_tiles import configure_tiles
from .generator import Generator, Program
from .invariants import Hoisted
from .memory import from_memory
from .neighbour_loads import LINE, share_neighbours
from .parallel import PACKED, declare_runtime
from .peel import peel_first_iterations
from .scalar_replacement import promote_accumulators
from .signature import buffer_alignment, size_vars, slots_of
from .speculation import speculatable_loads
from .starts import begin_with_terms
from .text import FunctionText, ModuleText, own_name, symbol
from .types import memory_element, value_type, vector
from .workspace import emit_workspaces


def emit_module(mod: IRModule, text: ModuleText, fast_math: bool = False, like: Program | None = None) -> Program:
    """Emit every function of a lowered module; errors name the function. Errors and calls of Python have the numbers that
    they have in ``like``, the same module for another machine."""
    entries = {f.attrs.get("global_symbol", name): name for name, f in mod.items()}
    entries.update({name: name for name in mod})
    program = Program(text, fast_math, functions={name: mod[at] for name, at in entries.items()}, entries=entries)
    if like is not None:
        program.messages.extend(like.messages)
        program.packed.extend(like.packed)
    text.used_names.update(map(own_name, mod))
    text.superwords = not any(_loads_indirectly(f) or _converts_long_unsigned(f.body) for f in mod.functions.values())
    text.brief = _are_brief(mod)
    for name, func in track(mod.items(), "compiling functions", len(mod.functions)):
        emit_function(program, name, func)
    declare_runtime(text)
    emit_workspaces(text)
    if program.packed:
        text.globals.append(PACKED)
    return program


_LETS, _LOOPS = {LetStmt, Let}, {For, While}


def _loads_indirectly(func: PrimFunc) -> bool:
    """Whether the index of some load depends on loaded values."""
    indices = {i for n in nodes_of(func.body) if type(n) is BufferLoad for i in n.indices}
    data = _data_variables(func)
    return has_load(*indices) or any(uses_var(i, data) for i in indices if data)


def _data_variables(func: PrimFunc) -> set[Var]:
    """Variables bound to loaded values."""
    data: set[Var] = set()
    for n in nodes_of(func.body) if not _LETS.isdisjoint(kinds(func.body)) else ():
        if type(n) in _LETS and (
            has_load(n.value) or uses_var(n.value, data)
        ):  # a let before what uses it, which is below
            data.add(n.var)
    return data


# whether some uint64 is converted to a float: where that has the sign of a narrower integer, LLVM's superword vectorizer converts 32 bits of it
_converts_long_unsigned = Somewhere(lambda n: n.dtype.is_float and n.value.dtype.element == "uint64", Cast)

FEW = 1 << 20  # stores of a function that is called once: to optimize one takes LLVM 10 ms, and saves 2 ns of each


def _are_brief(mod: IRModule) -> bool:
    """Whether optimizing functions takes longer than it saves."""
    functions = mod.functions.values()
    return all(f.attrs.get(ONCE) for f in functions) and sum(_stores(f.body) for f in functions) <= FEW * len(functions)


def _stores(s: Stmt) -> float:
    """How many stores a statement runs; infinite where that depends on values."""
    if isinstance(s, BufferStore):
        return 1
    inside = sum(_stores(child) for child in s.children() if isinstance(child, Stmt))
    if isinstance(s, For):
        return inside * s.extent.value if isinstance(s.extent, IntImm) else math.inf
    return math.inf if isinstance(s, While) else inside


def emit_function(program: Program, name: str, func: PrimFunc) -> None:
    module = program.text
    body_name = module.unique(name, "body")
    slots = slots_of(func)
    # optsize: loops stay loops, which takes LLVM a third of the time
    brief = ["optsize"] if func.attrs.get(ONCE) else []
    # noinline: LLVM would optimise a body alone, and again where it is inlined. A call takes less than a loop does
    alone = brief if _LOOPS.isdisjoint(kinds(func.body)) else [*brief, "noinline"]
    entry = FunctionText(module, own_name(name), "i32", ["ptr noalias %args"], "", brief)
    passed, params = [], []
    # noalias allows pointers derived from a parameter by a let to overlap it; two parameters may overlap only if the
    # function's attributes say so
    noalias = bool(func.attrs.get("tir.noalias", True))
    g_env: dict[Var, str] = {}
    for k, var in enumerate(slots):
        place = entry.value(f"getelementptr inbounds i64, ptr %args, i64 {k}")
        stored = vector(memory_element(var.dtype), var.dtype.lanes)
        if var.dtype.lanes > 1:
            raise BuildError(
                f"{name}: parameter `{var.name}` is a vector ({var.dtype}); parameters are scalars or buffers"
            )
        value = entry.value(f"load {stored}, ptr {place}, align 8")
        value = from_memory(Generator(program, entry, name), value, var.dtype)
        passed.append(f"{value_type(var.dtype)} {value}")
        facts = ""
        buffer = func.buffer_map.get(var)
        if buffer is not None:
            facts = f"{' noalias' if noalias else ''} align {buffer_alignment(buffer)}"
        params.append(f"{value_type(var.dtype)}{facts} %arg{k}")
        g_env[var] = f"%arg{k}"
        if buffer is not None:
            g_env[buffer.data] = f"%arg{k}"
    place = entry.value(f"getelementptr inbounds i64, ptr %args, i64 {len(slots)}")
    code = entry.value(f"call i32 {symbol(body_name)}({', '.join([*passed, f'ptr {place}'])})")
    entry.ret(f"i32 {code}")
    entry.finish()

    out = FunctionText(module, body_name, "i32", [*params, "ptr noalias %result"], "internal", alone)
    g = Generator(program, out, name)
    g.env = g_env
    g.analyzer.note_aliases(overlapping(func))
    for var in size_vars(func):
        if var.dtype.is_int:
            g.analyzer.assume(var >= 0)
    if not may_alias(func):
        for var in slots:
            buffer = func.buffer_map.get(var)
            if buffer is not None:
                g.owned_pointers.update((var, buffer.data))
    if func.ret_type.code != "void":
        g.returned, g.return_dtype = "%result", func.ret_type
    final = promote_accumulators(begin_with_terms(peel_first_iterations(func)))
    if module.width >= 8 * LINE // 2:
        final = share_neighbours(final)
    body = final.body
    g.hoisted, g.speculatable = Hoisted.of(body), speculatable_loads(final)
    configure_tiles(g, body)
    g.stmt(body)
    if not out.terminated:
        out.ret("i32 0")
    out.finish()
