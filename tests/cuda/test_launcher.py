"""A CUDA module as a C file: compiled against a driver of the test's own, it launches what Python launches."""

from __future__ import annotations

import re
import shutil
import subprocess

import numpy as np
import pytest
from test_cuda_runtime import SCALE, TWO, RecordingDriver

import tir
from codegen.cuda.device_arrays import DeviceArray
from codegen.cuda.module import _nvrtc_is_here
from tir.errors import BuildError, RunError
from tir.script import parse

COMPILER = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
pytestmark = pytest.mark.skipif(COMPILER is None or not _nvrtc_is_here(), reason="no C compiler, or no NVRTC")

CUDA_H = """
#include <stddef.h>
#include <stdint.h>
typedef enum { CUDA_SUCCESS = 0, CUDA_ERROR_INVALID_VALUE = 1, CUDA_ERROR_INVALID_CONTEXT = 201,
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209, CUDA_ERROR_INVALID_SOURCE = 300, CUDA_ERROR_UNKNOWN = 999 } CUresult;
typedef unsigned long long CUdeviceptr;
typedef struct context *CUcontext;
typedef struct module *CUmodule;
typedef struct function *CUfunction;
typedef struct stream *CUstream;
#define CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES 8
#ifdef __cplusplus
extern "C" {
#endif
CUresult cuCtxGetCurrent(CUcontext *);
CUresult cuModuleLoadData(CUmodule *, const void *);
CUresult cuModuleUnload(CUmodule);
CUresult cuModuleGetFunction(CUfunction *, CUmodule, const char *);
CUresult cuFuncSetAttribute(CUfunction, int, int);
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **,
    void **);
CUresult cuMemAllocAsync(CUdeviceptr *, size_t, CUstream);
CUresult cuMemFreeAsync(CUdeviceptr, CUstream);
CUresult cuGetErrorString(CUresult, const char **);
typedef uint64_t cuuint64_t;
typedef uint32_t cuuint32_t;
typedef struct { cuuint64_t opaque[16]; } CUtensorMap;
typedef enum { CU_TENSOR_MAP_DATA_TYPE_FLOAT16 = 6 } CUtensorMapDataType;
typedef enum { CU_TENSOR_MAP_INTERLEAVE_NONE = 0 } CUtensorMapInterleave;
typedef enum { CU_TENSOR_MAP_SWIZZLE_NONE = 0, CU_TENSOR_MAP_SWIZZLE_128B = 3 } CUtensorMapSwizzle;
typedef enum { CU_TENSOR_MAP_L2_PROMOTION_L2_128B = 2 } CUtensorMapL2promotion;
typedef enum { CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE = 0 } CUtensorMapFloatOOBfill;
CUresult cuTensorMapEncodeTiled(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *, const cuuint64_t *,
    const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
    CUtensorMapFloatOOBfill);
#ifdef __cplusplus
}
#endif
"""
DRIVER_C = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cuda.h"
static const char *const types[][2] = {@TYPES@};
static char contexts[2];
static CUdeviceptr next = 1 << 20;
static int has(const char *what) { return getenv("STUB") && strstr(getenv("STUB"), what); }
CUresult cuCtxGetCurrent(CUcontext *c) { *c = has("none") ? 0 : (CUcontext)&contexts[0]; return CUDA_SUCCESS; }
CUresult cuModuleLoadData(CUmodule *m, const void *image) {
    int elf = memcmp(image, "\x7f" "ELF", 4) == 0;
    printf("load %s\n", elf ? "cubin" : strstr((const char *)image, ".visible .entry") ? "ptx" : "nothing");
    *m = (CUmodule)image;
    return elf && has("other") ? CUDA_ERROR_NO_BINARY_FOR_GPU : CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule m) { (void)m; puts("unload"); return CUDA_SUCCESS; }
CUresult cuModuleGetFunction(CUfunction *f, CUmodule m, const char *name) {
    (void)m;
    *f = (CUfunction)name;
    return CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(CUfunction f, int what, int bytes) {
    printf("shared %s %d %d\n", (const char *)f, what, bytes);
    return CUDA_SUCCESS;
}
CUresult cuLaunchKernel(CUfunction f, unsigned x, unsigned y, unsigned z, unsigned a, unsigned b, unsigned c, unsigned shared,
    CUstream stream, void **arguments, void **extra) {
    (void)extra;
    printf("%s (%u, %u, %u) (%u, %u, %u) %u %d:", (const char *)f, x, y, z, a, b, c, shared, (int)(size_t)stream);
    for (size_t k = 0; k < sizeof types / sizeof *types; ++k) {
        if (strcmp(types[k][0], (const char *)f)) continue;
        for (const char *t = types[k][1]; *t; ++t, ++arguments) {
            if (*t == 'p') printf(" p%llu", *(CUdeviceptr *)*arguments);
            if (*t == 'i') printf(" %d", *(int32_t *)*arguments);
            if (*t == 'l') printf(" %lld", (long long)*(int64_t *)*arguments);
            if (*t == 'h') printf(" %d", *(uint16_t *)*arguments);
            if (*t == 'b') printf(" %d", *(uint8_t *)*arguments);
            if (*t == 'f') printf(" %g", *(float *)*arguments);
            if (*t == 'm') printf(" map%llu", (unsigned long long)((CUtensorMap *)*arguments)->opaque[0]);
        }
    }
    puts("");
    return has("fails") ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}
CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address, const cuuint64_t *shape,
    const cuuint64_t *strides, const cuuint32_t *box, const cuuint32_t *steps, CUtensorMapInterleave interleave,
    CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
    (void)interleave, (void)promotion, (void)fill;
    printf("map %d %u %zu", type, rank, (size_t)address);
    for (cuuint32_t k = 0; k < rank; ++k) printf(" %d|%u|%u", (int)shape[k], box[k], steps[k]);
    for (cuuint32_t k = 1; k < rank; ++k) printf(" %d", (int)strides[k - 1]);
    printf(" %d\n", swizzle);
    map->opaque[0] = (size_t)address;
    return has("fails") ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}
CUresult cuMemAllocAsync(CUdeviceptr *p, size_t bytes, CUstream stream) {
    (void)stream;
    printf("take %zu\n", bytes);
    *p = next += 1 << 20;
    return CUDA_SUCCESS;
}
CUresult cuMemFreeAsync(CUdeviceptr p, CUstream stream) { (void)p; (void)stream; puts("give"); return CUDA_SUCCESS; }
CUresult cuGetErrorString(CUresult r, const char **text) {
    *text = "the driver's words";
    return r == CUDA_ERROR_UNKNOWN || r == CUDA_ERROR_INVALID_CONTEXT ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
"""
LETTERS = {"handle": "p", "int32": "i", "int64": "l", "float16": "h", "bool": "b", "float32": "f"}


def built(text: str):
    return tir.build(parse(text), "cuda -arch=sm_80")


def ran(folder, module, calls: str, stub: str = "", standard: str = "-std=c99") -> list[str]:
    """What a program prints that makes the ``calls`` of the functions of ``module``."""
    module.save(folder / "kernels.c", header=folder / "kernels.h")
    types = ", ".join(
        f'{{"{t.name}", "{"".join(LETTERS[str(d)] for d in t.params)}{"m" * len(t.maps)}"}}'
        for t in module.texts.values()
    )
    (folder / "cuda.h").write_text(f"#ifndef CUDA_H\n#define CUDA_H\n{CUDA_H}#endif\n")
    (folder / "driver.c").write_text(DRIVER_C.replace("@TYPES@", types))
    printed = 'const char *text = kernels_error(code); printf("%s\\n", text ? text : "fine");'
    body = "\n".join(f"    {{ int32_t code = {call}; {printed} }}" for call in calls.split(";"))
    main = f'#include <stdio.h>\n#include "kernels.h"\nint main(void) {{\n{body}\n    return 0;\n}}\n'
    (folder / "main.c").write_text(main)
    command = [COMPILER, "-Wall", "-Werror", standard, "-I.", "main.c", "kernels.c", "driver.c", "-lm", "-o", "program"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    done = subprocess.run(["./program"], cwd=folder, capture_output=True, text=True, check=True, env={"STUB": stub})
    return done.stdout.splitlines()


def from_python(module, *args) -> list[str]:
    """The launches of the same call from Python, as the test's driver prints them."""
    device = RecordingDriver()
    device.param_types = {t.name: t.params for t in module.texts.values()}
    module.use_driver(device)
    device.arch = module.arch
    held = [DeviceArray.of(a, device) if isinstance(a, np.ndarray) else a for a in args]
    module(*held, stream=7)
    names = {a.address: f"p{4096 * (k + 1)}" for k, a in enumerate(held) if isinstance(a, DeviceArray)}
    lines = []
    for launch in device.launches:
        kinds = device.param_types[launch["name"]]
        values = [names.get(v, "p*") if d.is_handle else f"{v:g}" for v, d in zip(launch["values"], kinds)]
        sizes = f"{launch['name']} {launch['grid']} {launch['block']} {launch['shared']} {launch['stream']}:"
        lines.append(" ".join([sizes, *values]))
    return lines


def launches(lines: list[str]) -> list[str]:
    inner = re.compile(r"p(?!4096\b|8192\b|12288\b)\d+")
    return [inner.sub("p*", line) for line in lines if "kernel" in line and not line.startswith("shared")]


MANY = """
@T.prim_func
def exp(a0: T.Buffer((64,), "float32"), code: T.handle, n: T.int32, stream: T.float32):
    m = T.int32()
    sizes = T.match_buffer(code, (m,), "float32")
    assert n < 9, "at most 8 \\" rounds"
    for k in range(n):
        for i in T.thread_binding((m + 3) // 4 % 1000, thread="blockIdx.y"):
            for j in T.thread_binding(64, thread="threadIdx.x"):
                with T.block("S"):
                    T.where(i * 4 + j < m)
                    a0[j] = a0[j] + sizes[i * 4 + j] * stream + T.Cast("float32", k)
        if n > 2:
            for j in T.thread_binding(32, thread="threadIdx.x"):
                a0[j] = T.float32(0)
"""
SHARED = """
@T.prim_func
def shared(A: T.Buffer((64,), "float32"), n: T.int32):
    for b in T.thread_binding(2, thread="blockIdx.z"):
        S = T.alloc_buffer((64,), "float32", scope="shared.dyn")
        for j in T.thread_binding(32, thread="threadIdx.y"):
            S[j] = A[b * 32 + j]
        for j in T.thread_binding(32, thread="threadIdx.y"):
            A[b * 32 + j] = S[31 - j] * T.Cast("float32", n)
"""


@pytest.mark.parametrize(
    ("text", "call", "args"),
    [
        (SCALE, "scale(4096, 8192, 2.5f, 5, (CUstream)7)", [np.ones((5, 64), "f4"), np.zeros((5, 64), "f4"), 2.5]),
        (SCALE, "scale(4096, 8192, 2.5f, 0, (CUstream)7)", [np.ones((0, 64), "f4"), np.zeros((0, 64), "f4"), 2.5]),
        (TWO, "two(4096, 8192, (CUstream)7)", [np.ones(128, "f4"), np.zeros(128, "f4")]),
        (MANY, "kernels_exp(4096, 8192, 3, 0.5f, 18, (CUstream)7)", [np.ones(64, "f4"), np.ones(18, "f4"), 3, 0.5]),
        (MANY, "kernels_exp(4096, 8192, 1, 0.5f, 1, (CUstream)7)", [np.ones(64, "f4"), np.ones(1, "f4"), 1, 0.5]),
        (MANY, "kernels_exp(4096, 8192, -1, 0.5f, 1, (CUstream)7)", [np.ones(64, "f4"), np.ones(1, "f4"), -1, 0.5]),
        (SHARED, "shared(4096, 3, (CUstream)7)", [np.ones(64, "f4"), 3]),
    ],
)
def test_a_c_program_launches_what_python_launches(tmp_path, text, call, args):
    module = built(text)
    lines = ran(tmp_path, module, call)
    assert lines[0] == "load cubin" and lines[-1] == "fine"
    assert launches(lines) == from_python(module, *args)
    assert lines.count("give") == sum(line.startswith("take") for line in lines) == (text == TWO)
    assert [line for line in lines if line.startswith("shared ")] == ["shared main_kernel 8 128"] * (text == SHARED)


def test_assertions_and_alignment_are_errors_with_texts(tmp_path):
    lines = ran(tmp_path, built(MANY), "kernels_exp(4096, 8192, 9, 0.5f, 1, 0);kernels_load();kernels_unload()")
    assert lines == ["load cubin", 'exp: assertion failed: at most 8 " rounds', "fine", "unload", "fine"]
    lines = ran(tmp_path, built(SCALE), "scale(4096, 8196, 2.5f, 5, 0);scale(4096, 8192, 1.0f, -4, 0)")
    assert lines[1] == "`B` of main_kernel is not aligned to 16 bytes, as its vector accesses need"
    assert lines[2] == "fine"


@pytest.mark.parametrize(
    ("stub", "lines"),
    [
        ("none", ["the driver's words"]),
        ("other", ["load cubin", "load ptx"]),
        ("fails", ["load cubin", "take 512", "main_kernel (1, 1, 1) (128, 1, 1) 0 0:", "give", "the driver's words"]),
    ],
)
def test_errors_of_the_driver_are_told_and_memory_is_given_back(tmp_path, stub, lines):
    found = [
        line.split(": ")[0] + ":" * (": " in line) for line in ran(tmp_path, built(TWO), "two(4096, 8192, 0)", stub)
    ]
    assert found[: len(lines)] == lines
    assert (found[-1] == "fine") == (stub == "other")


def test_the_header_is_one_of_cpp(tmp_path):
    if shutil.which("c++") is None:
        pytest.skip("no C++ compiler")
    built(MANY).save(tmp_path / "kernels.c")
    (tmp_path / "cuda.h").write_text(CUDA_H)
    (tmp_path / "m.cpp").write_text(
        '#include "kernels.h"\nint main() { return kernels_exp(0, 0, 1, 2.0f, 1, nullptr); }\n'
    )
    command = ["c++", "-Wall", "-Werror", "-std=c++17", "-fsyntax-only", "-I.", "m.cpp"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


MAPS = """
@T.prim_func
def f(a: T.handle, n: T.int32, B: T.Buffer((64,), "float16")):
    m = T.int32()
    A = T.match_buffer(a, (m, n), "float16")
    tx = T.launch_thread("threadIdx.x", 32)
    S = T.alloc_buffer((64, 64), "float16", scope="shared")
    T.create_barriers(1)
    T.ptx_cp_async_bulk_tensor(S.data, 0, T.tensor_map(A, (64, 64), 128), 0, 0, 0)
    T.ptx_cp_async_bulk_tensor(S.data, 0, T.tensor_map(B, (64,)), 0, 0)
"""


def test_a_c_program_makes_tensor_maps_at_each_call(tmp_path):
    module = tir.build(parse(MAPS), "cuda -arch=sm_90a")
    lines = ran(tmp_path, module, "f(4096, 24, 8192, 8, 0);f(4104, 24, 8192, 8, 0)")
    assert lines[1:5] == [
        "map 6 2 4096 24|64|1 8|64|1 48 3",
        "map 6 1 8192 64|64|1 0",
        "main_kernel (1, 1, 1) (32, 1, 1) 0 0: p4096 p8192 8 24 map4096 map8192",
        "fine",
    ]
    assert lines[5:] == ["`A` of main_kernel is not aligned to 16 bytes, as its tensor map needs"]


def test_a_tensor_map_that_the_driver_refuses_is_an_error(tmp_path):
    module = tir.build(parse(MAPS), "cuda -arch=sm_90a")
    assert ran(tmp_path, module, "f(4096, 24, 8192, 8, 0)", "fails")[2:] == ["the driver's words"]


def test_what_is_not_written_is_refused(tmp_path):
    module = built(TWO)
    with pytest.raises(BuildError, match=r"must end in \.zip, or in \.c"):
        module.save(tmp_path / "k.so")
    with pytest.raises(BuildError, match=r"a header is for what C compiles, a \.c, and not for 'k\.zip'"):
        module.save(tmp_path / "k.zip", header=tmp_path / "k.h")
    with pytest.raises(RunError, match="assertion failed"):
        from_python(built(MANY), np.ones(64, "f4"), np.ones(1, "f4"), 9, 0.5)
