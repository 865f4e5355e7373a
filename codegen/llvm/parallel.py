"""A parallel loop: its body is outlined into a function that a team of threads runs on equal shares.

The code calls the module's global function pointers ``__tir_parallel``, ``__tir_thread`` and ``__tir_threads``, which
:mod:`codegen.runtime.openmp` sets to the OpenMP run-time; initially they run the loop serially, so that the code also
works without OpenMP.
"""

from __future__ import annotations

from tir.expr import Var
from tir.stmt import For
from tir.visit import free_vars

from .amx_tiles import configure_tiles
from .generator import Generator
from .rotated_loops import counted_loop
from .text import FunctionText, ModuleText, symbol
from .types import value_type

RUNTIME = """\
define i32 @__tir_no_thread() { ret i32 0 }
define i32 @__tir_one_thread() { ret i32 1 }
define void @__tir_serial(ptr %f, ptr %data, i32 %n, i32 %flags) { call void %f(ptr %data) ret void }"""
RUNTIME_GLOBALS = (
    "@__tir_parallel = global ptr @__tir_serial, align 8",
    "@__tir_thread = global ptr @__tir_no_thread, align 8",
    "@__tir_threads = global ptr @__tir_one_thread, align 8",
    "@__tir_team = global i32 0, align 4",
)

PACKED = "@__tir_packed = global ptr null, align 8"  # what calls Python, in a module that does


def declare_runtime(module: ModuleText) -> None:
    """Emit the serial run-time and the pointers to it."""
    module.globals.extend(RUNTIME_GLOBALS)
    module.functions.append(RUNTIME)


def declared_elsewhere(text: str) -> str:
    """The assembly ``text`` of a module that is linked with another, and uses the run-time system of that."""
    for line in (*RUNTIME_GLOBALS, PACKED):
        name, _, rest = line.partition(" = global ")
        text = text.replace(line, f"{name} = external global {rest.split()[0]}, align {line.split()[-1]}")
    for line in RUNTIME.splitlines():
        text = text.replace(line, f"declare {line[len('define ') : line.index(' {')]}")
    return text


def parallel_loop(g: Generator, s: For) -> None:
    """Emit ``s``, run by a team of threads; each takes one contiguous share of the iterations."""
    out, module = g.out, g.out.module
    g.program.parallel = True
    first, extent = g.index(s.min), g.index(s.extent)
    captured = [v for v in free_vars(s.body) if v in g.env and v is not s.loop_var]
    closure = _pack(g, captured, first, extent)
    name = module.unique(g.func_name, "parallel", s.loop_var.name)
    _emit_task(g, s, name, captured)
    run = out.value("load ptr, ptr @__tir_parallel, align 8")
    team = out.value("load i32, ptr @__tir_team, align 4")
    out.emit(f"call void {run}(ptr {symbol(name)}, ptr {closure}, i32 {team}, i32 0)")
    if out.after_call:
        out.emit(out.after_call)
    g.check_code(out.value(f"load i32, ptr {closure}, align 64"))


def _offsets(captured: list[Var]) -> tuple[list[int], int]:
    """Byte offset of each captured value after the fixed fields (error code and total in 32 bits, first, extent in 64),
    and the total."""
    at, offsets = 24, []
    for var in captured:
        size = 8 if var.dtype.is_handle else max(8, 1 << (var.dtype.bytes - 1).bit_length())
        at = -(-at // size) * size
        offsets.append(at)
        at += size
    return offsets, at


def _pack(g: Generator, captured: list[Var], first: str, extent: str) -> str:
    offsets, size = _offsets(captured)
    closure = g.out.alloca("i8", size, 64)
    g.out.emit(f"store i32 0, ptr {closure}, align 64")
    fields = [(4, "i32", str(size)), (8, "i64", first), (16, "i64", extent)]
    fields += [(at, value_type(v.dtype), g.env[v]) for v, at in zip(captured, offsets)]
    for at, type_, value in fields:
        place = g.out.value(f"getelementptr inbounds i8, ptr {closure}, i64 {at}")
        g.out.emit(f"store {type_} {value}, ptr {place}, align {4 if type_ == 'i32' and at == 4 else 8}")
    return closure


def _emit_task(g: Generator, s: For, name: str, captured: list[Var]) -> None:
    """Two functions: one finds this thread's share; the other is the loop over a share, with the captured values as
    parameters, so that disjoint pointers can be noalias."""
    module, loop_type = g.out.module, value_type(s.loop_var.dtype)
    body_name = module.unique(g.func_name, "parallel", s.loop_var.name, "share")
    disjoint = all(v in g.owned_pointers for v in captured if v.dtype.is_handle)

    task = FunctionText(module, name, "void", ["ptr %closure"], "internal", g.out.attributes)
    offsets, _ = _offsets(captured)
    passed = []
    for var, at in zip(captured, offsets):
        place = task.value(f"getelementptr inbounds i8, ptr %closure, i64 {at}")
        type_ = value_type(var.dtype)
        passed.append(f"{type_} {task.value(f'load {type_}, ptr {place}, align 8')}")
    first, extent = (
        task.value(f"load i64, ptr {task.value(f'getelementptr inbounds i8, ptr %closure, i64 {at}')}, align 8")
        for at in (8, 16)
    )
    thread, threads = (
        task.value(f"zext i32 {task.value(f'call i32 {f}()')} to i64")
        for f in [task.value(f"load ptr, ptr @__tir_{w}, align 8") for w in ("thread", "threads")]
    )
    share = task.value(f"sdiv i64 {extent}, {threads}")
    rest = task.value(f"srem i64 {extent}, {threads}")
    begin = task.value(f"mul i64 {share}, {thread}")
    begin = task.value(f"add i64 {begin}, {task.intrinsic('smin', 'i64', 1, [thread, rest])}")
    begin = task.value(f"add i64 {begin}, {first}")
    longer = task.value(f"icmp slt i64 {thread}, {rest}")
    size = task.value(f"add i64 {share}, {task.value(f'zext i1 {longer} to i64')}")
    end = task.value(f"add i64 {begin}, {size}")
    if loop_type != "i64":
        begin, end = (task.value(f"trunc i64 {v} to {loop_type}") for v in (begin, end))
    args = ", ".join([*passed, f"{loop_type} {begin}", f"{loop_type} {end}"])
    code = task.value(f"call i32 {symbol(body_name)}({args})")
    failed, done = task.label("failed"), task.label("done")
    task.branch(task.value(f"icmp ne i32 {code}, 0"), failed, done)
    task.start(failed)
    task.emit(f"store atomic i32 {code}, ptr %closure monotonic, align 64")
    task.start(done)
    task.ret("void")
    task.finish()

    params = []
    for k, var in enumerate(captured):
        noalias = " noalias" if var.dtype.is_handle and disjoint else ""
        params.append(f"{value_type(var.dtype)}{noalias} %arg{k}")
    params += [f"{loop_type} %begin", f"{loop_type} %limit"]
    out = FunctionText(module, body_name, "i32", params, "internal", g.out.attributes)
    inner = Generator(g.program, out, g.func_name, in_parallel=True)
    inner.env = {var: f"%arg{k}" for k, var in enumerate(captured)}
    inner.analyzer = g.analyzer
    inner.owned_pointers = set(g.owned_pointers)
    inner.hoisted, inner.speculatable = g.hoisted, g.speculatable
    inner.streamed = g.streamed
    configure_tiles(inner, s.body)
    counted_loop(inner, s, "%begin", "%limit", [])
    if inner.streamed:
        out.emit("fence seq_cst")
    if not out.terminated:
        out.ret("i32 0")
    out.finish()
