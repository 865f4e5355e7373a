"""A lowered PrimFunc as two LLVM functions: the body, and the entry that Python and other functions call.

Entry: ``i32 name(ptr args)``. ``args`` is an array of 8-byte slots: one for each parameter (the address of the first
element for a buffer, the value for a scalar), then one for each size, stride or offset that is not itself a parameter,
then, for a function that returns a value, the place of the result. It returns 0 or the code of a run-time error.
"""

from __future__ import annotations

from typing import Any

from tir.buffer import Buffer
from tir.errors import BuildError
from tir.expr import BufferLoad, Call, Expr, IntImm, Let, Var
from tir.function import IRModule, PrimFunc
from tir.stmt import BufferStore, LetStmt
from tir.visit import walk

from . import expr, memory, ops, stmt  # noqa: F401  (they fill the tables)
from .generator import Generator, Program
from .invariants import invariant_divisions
from .memory import from_memory
from .parallel import declare_runtime
from .peel import peel_first_iterations
from .scalar_replacement import promote_accumulators
from .text import FunctionText, ModuleText, symbol
from .tiles import configure_tiles
from .types import memory_bytes, memory_element, value_type, vector
from .workspace import emit_workspaces


def size_vars(func: PrimFunc) -> list[Var]:
    """The variables in shapes, strides and offsets of the parameter buffers that are no parameters themselves."""
    seen: dict[Var, None] = {}
    for buffer in func.buffers():
        parts = (*buffer.shape, *buffer.strides, *((buffer.elem_offset,) if buffer.elem_offset is not None else ()))
        for part in parts:
            for node in walk(part):
                if isinstance(node, Var) and not node.dtype.is_handle:
                    seen.setdefault(node)
    return [v for v in seen if all(v is not p for p in func.params)]


def slots_of(func: PrimFunc) -> list[Var]:
    """The variable behind each argument slot of the entry: parameters, then sizes."""
    return [*func.params, *size_vars(func)]


def written_data(func: PrimFunc) -> set[Var]:
    """Pointer variables through which the function may write."""
    written: set[Var] = set()
    for node in walk(func.body):
        if isinstance(node, BufferStore):
            written.add(node.buffer.data)
        elif isinstance(node, Call):
            if node.op == "tvm_access_ptr":
                mask = node.args[4] if len(node.args) > 4 else None
                if not isinstance(mask, IntImm) or mask.value & 2:
                    written.update(a for a in node.args[:2] if isinstance(a, Var))
                continue
            for arg in node.args:
                if isinstance(arg, Var) and arg.dtype.is_handle:
                    written.add(arg)
                elif node.op == "address_of" and isinstance(arg, BufferLoad):
                    written.add(arg.buffer.data)
    return written


def emit_module(mod: IRModule, text: ModuleText, fast_math: bool = False) -> Program:
    """Emit every function of a lowered module; errors name the function."""
    functions = {f.attrs.get("global_symbol", name): f for name, f in mod.items()}
    functions.update(mod.items())
    program = Program(text, fast_math, functions=dict(functions))
    text.used_names.update(functions)
    text.indirect = any(_loads_indirectly(func) for func in mod.functions.values())
    for name, func in mod.items():
        emit_function(program, name, func)
        alias = func.attrs.get("global_symbol", name)
        if alias != name and alias not in mod:
            text.functions.append(f"{symbol(alias)} = alias i32 (ptr), ptr {symbol(name)}")
    declare_runtime(text)
    emit_workspaces(text)
    if program.packed:
        text.globals.append("@__tir_packed = global ptr null, align 8")
    return program


def _loads_indirectly(func: PrimFunc) -> bool:
    """Whether data decides which element some load is of."""
    data: set[Var] = set()  # names of what was loaded

    def depends(e: Any) -> bool:
        return any(isinstance(n, BufferLoad) or n in data for n in walk(e))

    for node in walk(func.body):
        if isinstance(node, (LetStmt, Let)) and depends(node.value):
            data.add(node.var)
        elif isinstance(node, BufferLoad) and any(depends(index) for index in node.indices):
            return True
    return False


def emit_function(program: Program, name: str, func: PrimFunc) -> None:
    module = program.text
    body_name = module.unique(name + ".body")
    slots = slots_of(func)
    entry = FunctionText(module, name, "i32", ["ptr noalias %args"])
    passed, params = [], []
    # pointers that a let derives from parameters may overlap them, which noalias parameters allow; two parameters may
    # overlap only where the function says so
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

    out = FunctionText(module, body_name, "i32", [*params, "ptr noalias %result"], "internal")
    g = Generator(program, out, name)
    g.env = g_env
    g.nonnegative.update(v for v in size_vars(func) if v.dtype.is_int)
    if noalias and not _renames_pointers(func):
        for var in slots:
            buffer = func.buffer_map.get(var)
            if buffer is not None:
                g.owned_pointers.update((var, buffer.data))
    if func.ret_type.code != "void":
        g.returned, g.return_dtype = "%result", func.ret_type
    body = promote_accumulators(peel_first_iterations(func)).body
    g.divisions = invariant_divisions(body)
    configure_tiles(g, body)
    g.stmt(body)
    if not out.terminated:
        out.ret("i32 0")
    out.finish()


def _renames_pointers(func: PrimFunc) -> bool:
    """Whether a let gives a second name to a pointer, so that two names may mean one memory."""
    statements = walk(func.body, lambda n: not isinstance(n, Expr))
    return any(isinstance(n, LetStmt) and n.var.dtype.is_handle for n in statements) or _shared(func)


def _shared(func: PrimFunc) -> bool:
    """Whether two parameters share one data variable."""
    data = [b.data for b in func.buffers()]
    return len(set(data)) != len(data)


def buffer_alignment(buffer: Buffer) -> int:
    """Bytes to which an argument's first element is aligned: as declared, else its own size."""
    return max(buffer.data_alignment, memory_bytes(buffer.dtype.element))
