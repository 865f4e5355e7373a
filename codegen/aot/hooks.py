"""What a program sets in a saved file: where its memory comes from, and who hears of its errors."""

from __future__ import annotations

import re

from ..llvm.text import symbol
from ..llvm.workspace import ALLOCATOR

_MEMORY = """
@__tir_allocator = internal global ptr null, align 8
@__tir_releaser = internal global ptr null, align 8
@__tir_memory = internal global ptr null, align 8
define hidden noalias ptr @__tir_allocate(i64 %alignment, i64 %bytes) nounwind {
  %allocator = load ptr, ptr @__tir_allocator, align 8
  %given = icmp ne ptr %allocator, null
  br i1 %given, label %own, label %c
own:
  %context = load ptr, ptr @__tir_memory, align 8
  %memory = call ptr %allocator(ptr %context, i64 %bytes, i64 %alignment)
  ret ptr %memory
c:
  %plain = call noalias ptr @aligned_alloc(i64 %alignment, i64 %bytes)
  ret ptr %plain
}
define hidden void @__tir_free(ptr %memory) nounwind {
  %some = icmp ne ptr %memory, null
  br i1 %some, label %release, label %done
release:
  %releaser = load ptr, ptr @__tir_releaser, align 8
  %given = icmp ne ptr %releaser, null
  br i1 %given, label %own, label %c
own:
  %context = load ptr, ptr @__tir_memory, align 8
  call void %releaser(ptr %context, ptr %memory)
  ret void
c:
  call void @free(ptr %memory)
  ret void
done:
  ret void
}
"""
_OF_C = {
    "aligned_alloc": "declare noalias ptr @aligned_alloc(i64, i64)",
    "free": "declare void @free(ptr)",
    "snprintf": "declare i32 @snprintf(ptr, i64, ptr, ...)",
}
_ELSEWHERE = "declare hidden noalias ptr @__tir_allocate(i64, i64)\ndeclare hidden void @__tir_free(ptr)"

PROTOTYPES = """
/* Sets where this file takes memory for large buffers, while none of its functions runs; memory that it kept for the next
 * call is released before. allocate(context, bytes, alignment) returns that memory, or a null pointer if there is none;
 * release(context, memory) takes it back. Null pointers: the C library. */
void {0}_set_allocator(void *(*allocate)(void *context, size_t bytes, size_t alignment),
    void (*release)(void *context, void *memory), void *context);

/* Sets what is called with each error, on the thread that called the function, before that returns the code. The message
 * is gone after the call. A null pointer: nothing. */
void {0}_set_error_handler(void (*handler)(void *context, int32_t code, const char *message), void *context);
"""


def with_allocator(texts: list[str]) -> list[str]:
    """The modules of a file, which take memory from what the program sets; the first has it."""
    first, *others = (text.replace(ALLOCATOR, "" if k == 0 else _ELSEWHERE) for k, text in enumerate(texts))
    missing = "\n".join(
        line for name, line in _OF_C.items() if not re.search(rf"^declare .*@{name}\(", first, re.MULTILINE)
    )
    return [f"{first}{_MEMORY}{missing}\n", *others]


def setters(stem: str, prefix: str, keeps: bool) -> dict[str, str]:
    """The C functions, and ``report(code, values)``, which wrappers call with each error. ``keeps``: whether the file keeps
    memory. ``values``: null, or a number that is not 0 followed by what was given and what was expected."""
    keep = f"  call void {symbol(f'{prefix}__tir_release')}()\n" if keeps else ""
    at = {name: symbol(f"{prefix}__tir_{name}") for name in ("allocator", "releaser", "memory")}
    handler, context = symbol(f"{prefix}handler"), symbol(f"{prefix}handler_context")
    allocator = f"""define void @{stem}_set_allocator(ptr %allocate, ptr %release, ptr %context) nounwind {{
{keep}  store ptr %allocate, ptr {at["allocator"]}, align 8
  store ptr %release, ptr {at["releaser"]}, align 8
  store ptr %context, ptr {at["memory"]}, align 8
  ret void
}}
"""
    errors = f"""{handler} = internal global ptr null, align 8
{context} = internal global ptr null, align 8
define void @{stem}_set_error_handler(ptr %handler, ptr %context) nounwind {{
  store ptr %context, ptr {context}, align 8
  store ptr %handler, ptr {handler}, align 8
  ret void
}}
{symbol(f"{prefix}format")} = private constant [29 x i8] c"%s: it is %lld, and not %lld\\00"
define internal void {symbol(f"{prefix}report")}(i32 %code, ptr %values) nounwind noinline cold {{
  %text = alloca [512 x i8]
  %handler = load ptr, ptr {handler}, align 8
  %context = load ptr, ptr {context}, align 8
  %none = icmp eq ptr %handler, null
  br i1 %none, label %done, label %tell
tell:
  %message = call ptr @{stem}_error(i32 %code)
  %plain = icmp eq ptr %values, null
  br i1 %plain, label %short, label %read
read:
  %flag = load i64, ptr %values, align 8
  %without = icmp eq i64 %flag, 0
  br i1 %without, label %short, label %long
short:
  call void %handler(ptr %context, i32 %code, ptr %message)
  ret void
long:
  %second = getelementptr inbounds i64, ptr %values, i64 1
  %third = getelementptr inbounds i64, ptr %values, i64 2
  %got = load i64, ptr %second, align 8
  %want = load i64, ptr %third, align 8
  %size = call i32 (ptr, i64, ptr, ...) @snprintf(ptr %text, i64 512, ptr {symbol(f"{prefix}format")}, ptr %message, i64 %got, i64 %want)
  call void %handler(ptr %context, i32 %code, ptr %text)
  ret void
done:
  ret void
}}
"""
    return {f"{stem}_set_allocator": allocator, f"{stem}_set_error_handler": errors}
