"""Kernels without Python: saved files linked into C programs, several at once, and the page that tells how."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tir
from tir.errors import BuildError, RunError
from tir.script import parse

PAGE = Path(__file__).parents[2] / "docs/aot.md"
COMPILER = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
compiles = pytest.mark.skipif(COMPILER is None, reason="no C compiler")


def run(folder: Path, program: str, *arguments: str) -> str:
    (folder / "program.c").write_text(program)
    command = [COMPILER, "-Wall", "-Werror", "program.c", *arguments, "-lm", "-o", "program"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return subprocess.run([folder / "program"], capture_output=True, text=True, check=True).stdout


def saved(folder: Path, name: str, text: str, **kwargs) -> None:
    tir.build(parse(text), **kwargs).save(folder / f"{name}.o", header=folder / f"{name}.h")


@compiles
@pytest.mark.parametrize("flags", [[], ["-fopenmp"]])
def test_the_page_tells_the_truth(tmp_path, monkeypatch, flags):
    text = PAGE.read_text(encoding="utf-8")
    python = re.search(r"^```python\n(.*?)^```", text, re.M | re.S)[1]
    program = re.search(r"^```c\n(.*?)^```", text, re.M | re.S)[1]
    printed = re.search(r"^\$ \./program\n(.*?)^```", text, re.M | re.S)[1]
    monkeypatch.setattr("tempfile.mkdtemp", lambda: str(tmp_path))
    import linecache

    linecache.cache["<aot>"] = (len(python), None, python.splitlines(True), "<aot>")
    exec(compile(python, "<aot>", "exec"), {})
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    if (
        flags
        and subprocess.run([COMPILER, *flags, "-x", "c", "-", "-o", "/dev/null"], input=b"int main(){}").returncode
    ):
        pytest.skip("the C compiler has no OpenMP")
    assert run(tmp_path, program, "kernels.o", *flags) == printed


KINDS = """
@T.prim_func
def kinds(A: T.Buffer((3,), "{0}"), B: T.Buffer((3,), "{0}"), s: T.{0}, t: T.{0}) -> T.{0}:
    for i in T.parallel(3):
        B[i] = A[i] + s + t
    return B[2]
"""


@compiles
@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "float32", "float64"]
)
def test_scalars_of_every_type_are_passed_as_c_does(tmp_path, dtype):
    saved(tmp_path, "kinds_file", KINDS.format(dtype))
    c_type = {"float32": "float", "float64": "double"}.get(dtype, f"{dtype}_t")
    program = f"""
#include <stdio.h>
#include "kinds_file.h"
int main(void) {{
    {c_type} a[3] = {{1, 2, 3}}, b[3], last;
    {c_type} big = ({c_type})-7;
    int32_t code = kinds(a, b, big, 9, &last);
    printf("%d %g %g %d\\n", code, (double)b[0], (double)last, kinds_file_error(code) == 0);
}}
"""
    assert run(tmp_path, program, "kinds_file.o") == "0 3 5 1\n"


FILL = """
@T.prim_func
def {0}(A: T.Buffer((4,), "int32"), n: T.int32):
    B = T.alloc_buffer((20000,), "int32")
    for i in T.parallel(4):
        B[i] = n
    for i in range(4):
        A[i] = B[i] + 12 // n
"""


@compiles
def test_two_files_in_one_program_and_a_function_called_main(tmp_path):
    saved(tmp_path, "first", FILL.format("main"))
    saved(tmp_path, "second", FILL.format("register"))
    program = """
#include <stdio.h>
#include "first.h"
#include "second.h"
int main(void) {
    int32_t a[4], b[4];
    int32_t codes[3] = {first(a, 3), second_register(b, 4), second_register(b, 0)};
    printf("%d %d %d %d %s\\n", codes[0], codes[1], a[3], b[3], second_error(codes[2]));
}
"""
    found = run(tmp_path, program, "first.o", "second.o")
    assert found.startswith("0 0 7 7 ") and "division by zero" in found
    command = [COMPILER, "-shared", "-o", "both.so", "first.o", "second.o", "-lm"]
    assert subprocess.run(command, cwd=tmp_path).returncode == 0
    with pytest.raises(BuildError, match=r"both\.so is no whole file of Module\.save.* linked"):
        tir.load(tmp_path / "both.so")


@compiles
def test_half_floats_are_their_bits(tmp_path):
    saved(tmp_path, "halves", KINDS.format("float16"))
    program = """
#include <stdio.h>
#include "halves.h"
int main(void) {
    uint16_t a[3] = {0x3C00, 0x4000, 0x4200}, b[3], last;
    int32_t code = kinds(a, b, 0x3C00, 0x4000, &last);
    printf("%d %x\\n", code, last);
}
"""
    assert run(tmp_path, program, "halves.o") == "0 4600\n"  # 3 + 1 + 2


@compiles
def test_a_call_of_python_without_python_is_an_error(tmp_path):
    text = '@T.prim_func\ndef f(n: T.int32):\n    T.evaluate(T.call_packed("nobody", n))\n'
    saved(tmp_path, "calls", text)
    program = """
#include <stdio.h>
#include "calls.h"
int main(void) { printf("%s\\n", calls_error(f(1))); }
"""
    assert "needs Python" in run(tmp_path, program, "calls.o")


def test_names_that_would_clash_are_refused(tmp_path):
    func = parse(FILL.format("f"))
    module = tir.build(tir.IRModule({"f": func, "g": func}))
    with pytest.raises(BuildError, match="two functions would be called f in C"):
        module.save(tmp_path / "m.o")


@pytest.mark.parametrize("suffix", [".o", ".so", ".a"])
def test_a_file_under_another_name_loads(tmp_path, suffix):
    tir.build(parse(FILL.format("main"))).save(tmp_path / f"some name{suffix}")
    (tmp_path / f"some name{suffix}").rename(tmp_path / f"other{suffix}")
    a = np.zeros(4, "int32")
    tir.load(tmp_path / f"other{suffix}")(a, 3)
    assert (a == 7).all()
    with pytest.raises(RunError, match="division by zero"):
        tir.load(tmp_path / f"other{suffix}")(a, 0)


def test_an_object_that_calls_the_c_library_loads_in_a_process_without_openmp(tmp_path):
    saved(
        tmp_path,
        "cube",
        """
@T.prim_func
def cube(A: T.Buffer((300,), "float64"), B: T.Buffer((300,), "float64")):
    for i in T.parallel(300):
        B[i] = T.pow(A[i], T.float64(3))
""",
    )
    program = """
import sys, numpy, tir
a, b = numpy.linspace(0, 2, 300), numpy.zeros(300)
tir.load(sys.argv[1])(a, b)
numpy.testing.assert_allclose(b, a**3, rtol=1e-13)
"""
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "cube.o")], check=True)


@compiles
@pytest.mark.parametrize(("threads", "team"), [("openmp", "2"), ("serial", "1")])
@pytest.mark.parametrize("suffix", [".o", ".so"])
def test_a_saved_file_runs_on_the_threads_that_it_says(tmp_path, monkeypatch, threads, team, suffix):
    probe = [COMPILER, "-fopenmp", "-x", "c", "-", "-o", "/dev/null"]
    if sys.platform != "linux" or subprocess.run(probe, input=b"int main(){}", capture_output=True).returncode:
        pytest.skip("the C compiler has no OpenMP, or there is no /proc")
    tir.build(parse(FILL.format("fill"))).save(tmp_path / f"kernels{suffix}", tmp_path / "kernels.h", threads)
    assert f"threads={threads}:" in (tmp_path / "kernels.h").read_text()
    program = """
#include <dirent.h>
#include <stdio.h>
#include "kernels.h"
int main(void) {
    int32_t a[4];
    if (fill(a, 3) != 0) return 1;
    DIR *tasks = opendir("/proc/self/task");
    int count = -2;
    while (readdir(tasks)) ++count;
    printf("%d", count);
}
"""
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert run(tmp_path, program, f"{tmp_path}/kernels{suffix}", "-Wl,--as-needed", "-fopenmp") == team


POOL = """
#include <pthread.h>
#include <stdio.h>
#include "kernels.h"
struct call { void (*task)(void *, int32_t, int32_t); void *data; int32_t share, shares; };
static void *work(void *given) {
    struct call *c = given;
    c->task(c->data, c->share, c->shares);
    return 0;
}
static void pool(void *context, void (*task)(void *data, int32_t share, int32_t shares), void *data) {
    int32_t *state = context, shares = state[1];
    pthread_t threads[16];
    struct call calls[16];
    ++state[0];
    for (int32_t k = shares - 1; k >= 0; --k) {
        calls[k] = (struct call){task, data, k, shares};
        pthread_create(&threads[k], 0, work, &calls[k]);
    }
    for (int32_t k = 0; k < shares; ++k) pthread_join(threads[k], 0);
}
int main(void) {
    static int32_t a[7], n[7];
    for (int i = 0; i < 7; ++i) n[i] = i + 1;
    int32_t state[2] = {0, 0};
    printf("%d", shares(a, n, 7));
    for (state[1] = 1; state[1] <= 16; state[1] += 3) {
        kernels_set_pool(pool, state);
        for (int i = 0; i < 7; ++i) a[i] = -1;
        printf(" %d", shares(a, n, 7));
        for (int i = 0; i < 7; ++i) if (a[i] != 84 / n[i] + 7) printf(" wrong at %d: %d", i, a[i]);
    }
    printf(" calls %d;", state[0]);
    state[1] = 5;
    printf(" %d", shares(a, n, 0));
    n[5] = 0;
    printf(" %s;", kernels_error(shares(a, n, 7)));
    kernels_set_pool(0, 0);
    printf(" %s; calls %d", kernels_error(shares(a, n, 7)), state[0]);
}
"""
SHARES = """
@T.prim_func
def shares(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "int32")
    N = T.match_buffer(b, (n,), "int32")
    for i in T.parallel(n):
        A[i] = 84 // N[i] + n
"""


@compiles
@pytest.mark.parametrize("suffix", [".o", ".so"])
def test_the_pool_of_the_program_runs_parallel_loops(tmp_path, suffix):
    """On fewer and more threads than iterations, in any order, with errors of any share; serially without a pool."""
    tir.build(parse(SHARES)).save(tmp_path / f"kernels{suffix}", tmp_path / "kernels.h", "pool")
    found = run(tmp_path, POOL, f"{tmp_path}/kernels{suffix}", "-pthread")
    message = r"[^;]*division by zero[^;]*"
    assert re.fullmatch(rf"0 0 0 0 0 0 0 calls 6; 0 {message}; {message}; calls 8", found), found
    assert "threads=pool:" in (tmp_path / "kernels.h").read_text()
    a, n = np.zeros(7, "int32"), np.arange(1, 8, dtype="int32")
    tir.load(tmp_path / f"kernels{suffix}")(a, n)  # a module of Python has its own team
    assert (a == 84 // n + 7).all()


def test_the_name_of_the_function_that_sets_the_pool_is_taken(tmp_path):
    module = tir.build(parse(FILL.format("k_set_pool")))
    module.save(tmp_path / "k.o")
    with pytest.raises(BuildError, match="two functions would be called k_set_pool in C"):
        module.save(tmp_path / "k.o", threads="pool")


def test_threads_that_no_file_has_are_refused(tmp_path):
    with pytest.raises(BuildError, match="threads='own': a saved file has 'linked', 'openmp', 'serial', 'pool'"):
        tir.build(parse(FILL.format("f"))).save(tmp_path / "k.o", threads="own")


@compiles
@pytest.mark.skipif(shutil.which("cmake") is None, reason="no cmake")
@pytest.mark.parametrize(("suffix", "threads"), [(".o", "linked"), (".a", "openmp"), (".so", "openmp")])
def test_a_project_of_cmake_links_a_saved_file_by_its_target(tmp_path, suffix, threads):
    probe = [COMPILER, "-fopenmp", "-x", "c", "-", "-o", "/dev/null"]
    if subprocess.run(probe, input=b"int main(){}", capture_output=True).returncode:
        pytest.skip("the C compiler has no OpenMP")
    made = tmp_path / "made $here"
    (made / "include").mkdir(parents=True)
    module = tir.build(parse(FILL.format("fill")))
    module.save(made / f"k{suffix}", made / "include/k.h", threads, cmake=made / "k.cmake")
    (tmp_path / "main.c").write_text('#include "k.h"\nint main(void) { int32_t a[4]; return fill(a, 3) + a[3] - 7; }\n')
    project = (
        'cmake_minimum_required(VERSION 3.13)\nproject(p C)\ninclude("made $here/k.cmake")\nadd_executable(p main.c)\n'
    )
    (tmp_path / "CMakeLists.txt").write_text(project + "target_link_libraries(p PRIVATE k)\n")
    for command in (["cmake", "-S", ".", "-B", "build"], ["cmake", "--build", "build"], ["build/p"]):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
