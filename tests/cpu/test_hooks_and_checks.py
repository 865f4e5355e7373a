"""Saved files that check what they are given, take memory from the program, and tell it of errors."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tir
from tir.errors import BuildError, RunError
from tir.interp.dlpack import _DLTensor, type_code
from tir.script import parse

COMPILERS = [("cc", "-std=c99", "c"), ("c++", "-std=c++17", "c++")]

FILL = """
@T.prim_func
def fill(a: T.handle, n: T.int32) -> T.int32:
    m = T.int32()
    A = T.match_buffer(a, (m, 4), "int32")
    B = T.alloc_buffer((20000,), "int32")
    for i in T.parallel(20000):
        B[i] = n
    for i, j in T.grid(m, 4):
        A[i, j] = B[5000 * j] + 12 // n
    return B[3]
"""
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include "kernels.h"
static int taken = 0;
static void *allocate(void *context, size_t bytes, size_t alignment) {
    void *memory = 0;
    if (*(int *)context == 0) return 0;
    if (posix_memalign(&memory, alignment, bytes) || bytes < 80000) return 0;
    return ++taken, memory;
}
static void release(void *context, void *memory) {
    --taken;
    *(int *)context -= 1;
    free(memory);
}
static void handler(void *context, int32_t code, const char *message) {
    printf("%s%d %s\n", (const char *)context, code > 0, message);
}
int main(void) {
    int32_t a[8], last = 0;
    int left = 2;
    int64_t shape[2] = {2, 4}, odd[2] = {2, 5};
    char prefix[] = "! ";
    kernels_tensor t = {a, 1, 0, 2, 0, 32, 1, shape, 0, 0};
    kernels_set_error_handler(handler, prefix);
    kernels_set_allocator(allocate, release, &left);
    int32_t code = fill(a, 3, 2, &last);
    printf("%d %d\n", code, taken);
    code = fill_tensors(&t, 4, &last);
    printf("%d %d %d\n", code, last, a[7]);
    t.shape = odd;
    if (fill_tensors(&t, 4, &last) == 0 || fill(a, 0, 2, &last) == 0 || fill(0, 3, 2, &last) == 0) return 1;
    if (fill(a, 3, -1, &last) == 0 || fill((int32_t *)((char *)a + 1), 3, 1, &last) == 0) return 2;
    kernels_set_allocator(0, 0, 0);
    printf("%d %d\n", taken, left);
    left = 0;
    kernels_set_allocator(allocate, release, &left);
    if (fill(a, 3, 2, &last) == 0) return 3;
    kernels_set_allocator(0, 0, 0);
    kernels_set_error_handler(0, 0);
    if (fill(a, 0, 2, &last) == 0) return 4;
    printf("%d\n", fill(a, 3, 2, &last));
    return 0;
}
"""
PRINTED = r"""0 1
0 4 7
! 1 fill: size 1 of `A` is not `4`: it is 5, and not 4
! 1 .*division by zero.*
! 1 fill: `A` is a null pointer
! 1 fill: size 0 of `A` is negative: it is -1, and not 0
! 1 fill: `A` is not aligned to 4 bytes
0 1
! 1 .*out of memory.*
0
"""


@pytest.mark.parametrize(("compiler", "standard", "suffix"), COMPILERS)
@pytest.mark.parametrize("kind", [".o", ".so"])
def test_the_program_gives_memory_and_hears_of_errors_in_c_and_in_cpp(tmp_path, compiler, standard, suffix, kind):
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    tir.build(parse(FILL)).save(tmp_path / f"kernels{kind}", tmp_path / "kernels.h", checks=True)
    source = f"program.{suffix}"
    (tmp_path / source).write_text("#define _POSIX_C_SOURCE 200809L\n" * (suffix == "c") + PROGRAM)
    flags = ["-Wall", "-Wextra", "-Werror", "-pedantic", standard]
    command = [compiler, *flags, source, f"./kernels{kind}", "-lm", "-o", "program"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    done = subprocess.run(["./program"], cwd=tmp_path, capture_output=True, text=True)
    assert re.fullmatch(PRINTED, done.stdout) and done.returncode == 0, done


RUST = r"""
use std::ffi::{c_char, c_void, CStr};
#[link(name = "kernels", kind = "dylib")]
extern "C" {
    fn fill(a: *mut i32, n: i32, m: i32, result: *mut i32) -> i32;
    fn kernels_set_error_handler(
        handler: Option<extern "C" fn(*mut c_void, i32, *const c_char)>, context: *mut c_void);
}
extern "C" fn handler(_: *mut c_void, _: i32, message: *const c_char) {
    println!("{}", unsafe { CStr::from_ptr(message) }.to_str().unwrap());
}
fn main() {
    let mut a = [0i32; 8];
    let mut last = 0;
    unsafe {
        kernels_set_error_handler(Some(handler), std::ptr::null_mut());
        println!("{} {} {}", fill(a.as_mut_ptr(), 3, 2, &mut last), a[7], last);
        fill(std::ptr::null_mut(), 3, 2, &mut last);
    }
}
"""


@pytest.mark.skipif(shutil.which("rustc") is None, reason="no rustc")
def test_a_library_is_called_from_rust(tmp_path):
    tir.build(parse(FILL)).save(tmp_path / "libkernels.so", checks=True)
    (tmp_path / "program.rs").write_text(RUST.replace("kernels_set", "libkernels_set"))
    command = ["rustc", "-D", "warnings", "--edition", "2021", "-L", ".", "-C", f"link-args=-Wl,-rpath,{tmp_path}"]
    done = subprocess.run([*command, "program.rs"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    done = subprocess.run(["./program"], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "0 7 3\nfill: `A` is a null pointer\n", done.stderr


def test_names_of_what_a_file_has_besides_are_taken(tmp_path):
    for name in ("k_set_allocator", "k_set_error_handler"):
        with pytest.raises(BuildError, match=f"two functions would be called {name} in C"):
            tir.build(parse(FILL.replace("fill", name))).save(tmp_path / "k.o")
    two = tir.IRModule({"f": parse(FILL.replace("fill", "f")), "f_tensors": parse(FILL.replace("fill", "f_tensors"))})
    tir.build(two).save(tmp_path / "k.o")
    with pytest.raises(BuildError, match="two functions would be called f_tensors in C"):
        tir.build(two).save(tmp_path / "k.o", checks=True)


def test_a_program_that_calls_the_allocator_of_c_itself_is_saved(tmp_path):
    text = """
@T.prim_func
def f(A: T.Buffer((4,), "int32")):
    T.evaluate(T.call_extern("int32", "snprintf", T.int64(0), T.int64(0), "x"))
    T.evaluate(T.call_extern("int32", "free", T.int64(0)))
    A[0] = 5
"""
    tir.build(parse(text)).save(tmp_path / "f.so", checks=True)
    assert tir.load(tmp_path / "f.so").new()[0] == 5


def test_the_address_of_a_result_is_checked(tmp_path):
    text = """
@T.prim_func
def f(A: T.Buffer((4,), "int32"), k: T.int32) -> T.int64:
    T.ret(T.Cast("int64", A[k]))
"""
    tir.build(parse(text)).save(tmp_path / "f.so", checks=True)
    library, array, result = ctypes.CDLL(str(tmp_path / "f.so")), np.arange(4, dtype="int32"), ctypes.c_int64()
    library.f_error.restype = ctypes.c_char_p
    data = ctypes.c_void_p(array.ctypes.data)
    assert library.f(data, 2, ctypes.byref(result)) == 0 and result.value == 2
    assert library.f_error(library.f(data, 2, None)) == b"f: `result` is a null pointer"


STRIDED = """
@T.prim_func
def f(a: T.handle, b: T.handle, c: T.handle, k: T.int32):
    n, m, s = T.int32(), T.int64(), T.int32()
    A = T.match_buffer(a, (n, k), "float32", strides=(s, 1))
    B = T.match_buffer(b, (m, n * 2), "{dtype}")
    C = T.match_buffer(c, (n,), "float32")
    for i in range(n):
        C[i] = T.float32(1)
        for j in range(k):
            C[i] = C[i] + A[i, j]
"""


def described(array: np.ndarray, code: int, bits: int, with_strides: bool) -> _DLTensor:
    """The tensor of an array; what it refers to lives as long as it."""
    shape = (ctypes.c_int64 * array.ndim)(*array.shape)
    strides = (ctypes.c_int64 * array.ndim)(*(s // array.itemsize for s in array.strides))
    tensor = _DLTensor(array.ctypes.data, 1, 0, array.ndim, code, bits, 1, shape, strides if with_strides else None, 0)
    tensor.kept = (shape, strides, array)
    return tensor


@pytest.fixture(scope="module")
def strided(tmp_path_factory):
    folder = tmp_path_factory.mktemp("strided")
    module = tir.build(parse(STRIDED.format(dtype="int16")))
    module.save(folder / "f.so", checks=True, threads="serial")
    library = ctypes.CDLL(str(folder / "f.so"))
    library.f_error.restype = ctypes.c_char_p
    return module, library


SIZES = st.sampled_from([0, 1, 2, 3])


@settings(max_examples=100)
@given(data=st.data())
def test_tensors_are_taken_that_python_takes(strided, data):
    module, library = strided
    n, m, k = (data.draw(SIZES) for _ in "nmk")
    shapes = [(n, k), (m, n * 2), (n,)]
    arrays = []
    for shape, dtype in zip(shapes, ("float32", "int16", "float32")):
        shape = tuple(data.draw(st.sampled_from([d] * 8 + [d + 1])) for d in shape)
        shape = data.draw(st.sampled_from([shape] * 12 + [(*shape, 1), shape[1:]]))
        dtype = data.draw(st.sampled_from([dtype] * 12 + ["int32", "float64"]))
        wide = np.zeros((*shape[:-1], shape[-1] + 2) if shape else (), dtype)
        array = data.draw(st.sampled_from([np.zeros(shape, dtype)] * 6 + [wide[..., : shape[-1]] if shape else wide]))
        arrays.append(data.draw(st.sampled_from([array] * 8 + [array.T, array[::-1] if array.ndim else array])))
    if data.draw(st.integers(0, 9)) == 0 and arrays[0].ndim and arrays[0].dtype == "float32":
        arrays[2] = arrays[0].reshape(-1)[:n] if arrays[0].flags.c_contiguous else arrays[2]
    codes = [type_code(tir.dtype.DType(a.dtype.name)) for a in arrays]
    tensors = [described(a, *code, not a.flags.c_contiguous) for a, code in zip(arrays, codes)]
    code = library.f_tensors(*map(ctypes.byref, tensors), k)
    found = (library.f_error(code) or b"").decode()
    try:
        module(*arrays, k)
        wanted = ""
    except RunError as error:
        wanted = str(error)
    assert (code == 0) == (wanted == ""), (found, wanted)


def test_the_message_that_the_page_shows_is_said(tmp_path):
    text = (Path(__file__).parents[2] / "docs/aot.md").read_text(encoding="utf-8")
    shown = re.search(r"/\* (axpy: size.*) \*/", text)[1]
    program = """
@T.prim_func
def axpy(x: T.handle, y: T.handle, alpha: T.float32):
    n = T.int32()
    X = T.match_buffer(x, (n,), "float32")
    Y = T.match_buffer(y, (n,), "float32")
    for i in range(n):
        Y[i] = Y[i] + alpha * X[i]
"""
    tir.build(parse(program)).save(tmp_path / "kernels.so", checks=True)
    library, heard = ctypes.CDLL(str(tmp_path / "kernels.so")), []
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_char_p)
    handler = kind(lambda context, code, message: heard.append(message.decode()))
    library.kernels_set_error_handler(handler, None)
    x, y = (described(np.zeros(n, "float32"), 2, 32, False) for n in (5, 4))
    assert library.axpy_tensors(ctypes.byref(x), ctypes.byref(y), ctypes.c_float(0.5)) != 0
    assert heard == [shown]


def test_types_of_elements_have_the_codes_of_dlpack():
    for name in ("int8", "uint16", "int64", "float16", "float32", "float64", "bool"):
        array = np.zeros(1, name)
        capsule = array.__dlpack__()  # what it points to is gone with it
        tensor = _DLTensor.from_address(pointer(capsule))
        assert type_code(tir.dtype.DType(name)) == (tensor.code, tensor.bits)
    assert type_code(tir.dtype.DType("float8_e4m3fn")) == (10, 8)


def pointer(capsule) -> int:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return get(capsule, b"dltensor")
