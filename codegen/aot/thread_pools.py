"""What runs the parallel loops of a saved file: OpenMP's threads, a pool of the program, or nothing but the caller.

A loop is the call ``run(f, closure, threads, 0)``, as of OpenMP's run-time; see :mod:`codegen.llvm.parallel`.
"""

from __future__ import annotations

from ..llvm.text import symbol

THREADS = {
    "linked": "parallel loops run on OpenMP's threads if the program links its library, else serially",
    "openmp": "parallel loops run on OpenMP's threads; the program is linked with -fopenmp",
    "serial": "parallel loops run serially",
    "pool": "parallel loops run on the threads of the pool that the program sets, serially without one",
}


# The linker of a saved program finds OpenMP: with -fopenmp parallel loops run on a team of threads, without it serially.
_OPENMP = """\
declare extern_weak void @GOMP_parallel(ptr, ptr, i32, i32)
declare extern_weak i32 @omp_get_thread_num()
declare extern_weak i32 @omp_get_num_threads()
define internal void @__tir_openmp(ptr %f, ptr %data, i32 %n, i32 %flags) {
  %linked = icmp ne ptr @GOMP_parallel, null
  %thread = icmp ne ptr @omp_get_thread_num, null
  %threads = icmp ne ptr @omp_get_num_threads, null
  %both = and i1 %thread, %threads
  %all = and i1 %linked, %both
  br i1 %all, label %team, label %serial
team:
  store atomic ptr @omp_get_thread_num, ptr @__tir_thread monotonic, align 8
  store atomic ptr @omp_get_num_threads, ptr @__tir_threads monotonic, align 8
  call void @GOMP_parallel(ptr %f, ptr %data, i32 %n, i32 %flags)
  ret void
serial:
  call void @__tir_serial(ptr %f, ptr %data, i32 %n, i32 %flags)
  ret void
}
"""
# The program's own threads: a task runs the loop on a share of its iterations, which is a loop of a closure of its own.
_POOL = """\
@__tir_pool = global ptr null, align 8
@__tir_context = global ptr null, align 8
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define internal void @__tir_pooled(ptr %f, ptr %closure, i32 %n, i32 %flags) {
  %pool = load ptr, ptr @__tir_pool, align 8
  %context = load ptr, ptr @__tir_context, align 8
  %given = icmp ne ptr %pool, null
  br i1 %given, label %team, label %serial
team:
  %work = alloca [2 x ptr], align 8
  %second = getelementptr inbounds ptr, ptr %work, i64 1
  store ptr %f, ptr %work, align 8
  store ptr %closure, ptr %second, align 8
  call void %pool(ptr %context, ptr @__tir_share, ptr %work)
  ret void
serial:
  call void @__tir_serial(ptr %f, ptr %closure, i32 %n, i32 %flags)
  ret void
}
define internal void @__tir_share(ptr %work, i32 %share, i32 %shares) {
  %second = getelementptr inbounds ptr, ptr %work, i64 1
  %f = load ptr, ptr %work, align 8
  %closure = load ptr, ptr %second, align 8
  %rest.of = getelementptr inbounds i8, ptr %closure, i64 4
  %bytes = load i32, ptr %rest.of, align 4
  %own = alloca i8, i32 %bytes, align 64
  %rest.own = getelementptr inbounds i8, ptr %own, i64 4
  %first.own = getelementptr inbounds i8, ptr %own, i64 8
  %extent.own = getelementptr inbounds i8, ptr %own, i64 16
  %wide = zext i32 %bytes to i64
  %rest.bytes = sub i64 %wide, 4
  store i32 0, ptr %own, align 64
  call void @llvm.memcpy.p0.p0.i64(ptr align 4 %rest.own, ptr align 4 %rest.of, i64 %rest.bytes, i1 false)
  %k = sext i32 %share to i64
  %n = sext i32 %shares to i64
  %first = load i64, ptr %first.own, align 8
  %extent = load i64, ptr %extent.own, align 8
  %least = sdiv i64 %extent, %n
  %rest = srem i64 %extent, %n
  %before = mul i64 %least, %k
  %longer = icmp slt i64 %k, %rest
  %longer.before = select i1 %longer, i64 %k, i64 %rest
  %skipped = add i64 %before, %longer.before
  %begin = add i64 %first, %skipped
  %one = zext i1 %longer to i64
  %size = add i64 %least, %one
  store i64 %begin, ptr %first.own, align 8
  store i64 %size, ptr %extent.own, align 8
  call void %f(ptr %own)
  %code = load i32, ptr %own, align 64
  %failed = icmp ne i32 %code, 0
  br i1 %failed, label %error, label %done
error:
  store atomic i32 %code, ptr %closure monotonic, align 64
  br label %done
done:
  ret void
}
"""


def with_threads(text: str, threads: str, parallel: bool) -> str:
    """``text`` with what runs its loops; ``threads`` is one of ``THREADS``."""
    if threads == "serial":
        return text
    run = "@__tir_pooled" if threads == "pool" else "@__tir_openmp"
    text = text.replace("@__tir_parallel = global ptr @__tir_serial", f"@__tir_parallel = global ptr {run}")
    # a weak reference alone lets linkers that drop unused libraries drop OpenMP's
    strong = threads == "openmp" and parallel
    return text + (_POOL if threads == "pool" else _OPENMP.replace("extern_weak ", "") if strong else _OPENMP)


def pool_setter(name: str, prefix: str) -> str:
    """The C function ``name`` that sets the pool, in a file whose names begin with ``prefix``."""
    return f"""define void @{name}(ptr %pool, ptr %context) nounwind {{
  store ptr %context, ptr {symbol(prefix + "__tir_context")}, align 8
  store ptr %pool, ptr {symbol(prefix + "__tir_pool")}, align 8
  ret void
}}
"""


POOL_PROTOTYPE = """
/* Sets what runs the parallel loops of this file, while none of its functions runs. For each, pool(context, task, data)
 * calls task(data, share, shares) for every share from 0 to shares - 1, on any threads and in any order, and returns
 * when all calls have. shares is at least 1; the pool chooses it. A null pointer: loops run serially. */
void {}(void (*pool)(void *context, void (*task)(void *data, int32_t share, int32_t shares), void *data),
    void *context);
"""
