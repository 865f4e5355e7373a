"""Memory of large local buffers, reused from one call of a function to the next.

An allocation of a constant size has a slot, a global pointer. Taking memory swaps the slot with null, returning swaps
the memory in. Both are atomic, so concurrent calls are safe: one reuses the memory, the others allocate. Functions of a module
that run one after another share slots: there are as many of a size as one of them needs at once.
"""

from __future__ import annotations

from collections.abc import Collection

from .text import FunctionText, ModuleText, symbol

# All memory comes from here, and goes there; a saved file has functions of its own in its place.
ALLOCATOR = """\
define internal noalias ptr @__tir_allocate(i64 %alignment, i64 %bytes) alwaysinline nounwind {
  %memory = call noalias ptr @aligned_alloc(i64 %alignment, i64 %bytes)
  ret ptr %memory
}
define internal void @__tir_free(ptr %memory) alwaysinline nounwind {
  call void @free(ptr %memory)
  ret void
}"""
_SMALL = """\
  %made = call noalias ptr @__tir_allocate(i64 64, i64 %bytes)
  ret ptr %made"""
# with MADV_HUGEPAGE (14) Linux maps memory by pages of 2 MB, which need one TLB entry instead of 512
_PAGED, _PAGE = 1 << 19, 1 << 21
_LARGE = f"""\
  %large = icmp uge i64 %bytes, {_PAGED}
  br i1 %large, label %pages, label %lines
lines:
{_SMALL}
pages:
  %more = add i64 %bytes, {_PAGE - 1}
  %whole = and i64 %more, -{_PAGE}
  %paged = call noalias ptr @__tir_allocate(i64 {_PAGE}, i64 %whole)
  %advised = call i32 @madvise(ptr %paged, i64 %whole, i32 14)
  ret ptr %paged"""
_FUNCTIONS = """\
define internal noalias ptr @__tir_take(ptr %slot, i64 %bytes) {
  %old = atomicrmw xchg ptr %slot, ptr null acquire
  %none = icmp eq ptr %old, null
  br i1 %none, label %new, label %reuse
new:
NEW
reuse:
  ret ptr %old
}
define internal void @__tir_give(ptr %slot, ptr %memory) {
  %old = atomicrmw xchg ptr %slot, ptr %memory acq_rel
  call void @__tir_free(ptr %old)
  ret void
}"""


def allocate(out: FunctionText, rounded: str) -> str:
    """Memory of ``rounded`` bytes, aligned to a cache line; null if there is none."""
    _use_allocator(out.module)
    return out.value(f"call noalias align 64 ptr @__tir_allocate(i64 64, i64 {rounded})")


def free(out: FunctionText, pointer: str) -> None:
    """Give memory of :func:`allocate` back."""
    _use_allocator(out.module)
    out.emit(f"call void @__tir_free(ptr {pointer})")


def _use_allocator(module: ModuleText) -> None:
    if ALLOCATOR not in module.functions:
        module.functions.append(ALLOCATOR)
        module.declare("aligned_alloc", "noalias ptr", ["i64", "i64"])
        module.declare("free", "void", ["ptr"])


def workspace_slot(module: ModuleText, nbytes: int, taken: Collection[str | None], in_parallel: bool) -> str:
    """A slot of ``module`` for memory of ``nbytes`` that is none of ``taken``, of which the function holds memory; its symbol.

    The body of a parallel loop (``in_parallel``) does not know what the function round it holds: it has slots of its own.
    """
    size = nbytes if nbytes < _PAGED else -(-nbytes // _PAGE) * _PAGE
    known = module.workspaces.setdefault((size, in_parallel), [])
    for slot in known:
        if slot not in taken:
            return slot
    known.append(symbol(module.unique("workspace", str(size))))
    module.globals.append(f"{known[-1]} = internal global ptr null, align 8")
    return known[-1]


def emit_workspaces(module: ModuleText) -> None:
    """Emit the functions that take and return memory, and ``__tir_release``, which frees the kept memory."""
    if not module.workspaces:
        return
    linux = "linux" in module.triple
    _use_allocator(module)
    if linux:
        module.declare("madvise", "i32", ["ptr", "i64", "i32"])
    module.functions.append(_FUNCTIONS.replace("NEW", _LARGE if linux else _SMALL))
    calls = "\n".join(
        f"  call void @__tir_give(ptr {slot}, ptr null)" for several in module.workspaces.values() for slot in several
    )
    module.functions.append(f"define void @__tir_release() {{\n{calls}\n  ret void\n}}")
