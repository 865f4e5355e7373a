"""Names of the user beside those of the C library, of C and C++, and of the generator itself."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tir
from codegen.aot import exported
from codegen.c_names import KEYWORDS
from tir import te
from tir.errors import BuildError, ParseError, TirError
from tir.script import parse

COMPILER = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
CPLUSPLUS = next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)
compiles = pytest.mark.skipif(COMPILER is None, reason="no C compiler")

WORDS = (
    "exp erf sinf pow malloc free aligned_alloc printf main _exit GOMP_parallel new register bool _Bool asm linux NULL "
    "INT8_MAX int8_t __tir_take tir.exp llvm.exp exp.body é def 1x"
)
HOSTILE = [*WORDS.split(), "a b", "f*/ #error", "q\"'\\$"]
printable = st.text(min_size=1, max_size=8).filter(str.isprintable)
names = st.sampled_from(HOSTILE) | printable

PROGRAM = """
@T.prim_func
def f(A: T.Buffer((8,), "float64"), O: T.Buffer((8,), "float64")):
    B = T.alloc_buffer((20000,), "float64")
    for i in T.parallel(8):
        B[i] = T.exp(A[i])
    for k in T.serial(T.Cast("int32", A[0]) + 9):
        O[k] = B[k] * T.float64(2)
"""
A = np.linspace(-1, 1, 8)


def renamed(function: str, variable: str = "B") -> tir.PrimFunc:
    """The program with the name ``function``, and its local buffer and its loops under the name ``variable``."""
    func = parse(PROGRAM)

    def named(node):
        if isinstance(node, tir.Var) and node.name in ("B", "i", "k"):
            return node.replace(name=variable)
        return None

    return tir.visit.rewrite(func, named).with_attr("global_symbol", function)


def result(module, name: str) -> np.ndarray:
    out = np.zeros(8)
    module[name](A, out)
    return out


EXPECTED = result(tir.build(parse(PROGRAM), "interpreter"), "main")


def test_functions_under_every_hostile_name_compute_the_same(tmp_path):
    text = '@T.prim_func\ndef f(A: T.Buffer((8,), "float64"), O: T.Buffer((8,), "float64")):\n    O[0] = T.exp(A[0])\n'
    module = tir.build(tir.IRModule({name: parse(text).with_attr("global_symbol", name) for name in HOSTILE}))
    module.save(tmp_path / "kernels.o")
    loaded = tir.load(tmp_path / "kernels.o")
    assert list(loaded) == HOSTILE
    for name in HOSTILE:
        assert abs(result(module, name)[0] - np.exp(-1)) < 1e-12
        assert result(loaded, name)[0] == result(module, name)[0]


@settings(max_examples=4)
@given(key=names, symbol=names, variable=names)
def test_any_names_are_built_saved_and_loaded(tmp_path_factory, key, symbol, variable):
    module = tir.build(tir.IRModule({key: renamed(symbol, variable)}))
    path = tmp_path_factory.mktemp("names") / "kernels.o"
    module.save(path, header=path.with_suffix(".h"))
    np.testing.assert_allclose(result(module, key), EXPECTED, rtol=1e-12)
    np.testing.assert_array_equal(result(tir.load(path), key), result(module, key))


@pytest.mark.parametrize("name", ["exp", "sin", "erf", "asin"])
def test_a_kernel_named_after_what_it_computes_does_not_call_itself(name):
    x = te.placeholder((4,), "float64", name="A")
    y = te.compute((4,), lambda i: getattr(te, name)(x[i]), name=name)
    a, b = np.full(4, 0.5), np.zeros(4)
    tir.build(te.create_schedule(y.op), [x, y], "llvm", name=name)(a, b)
    expected = tir.build(te.create_prim_func([x, y], name), "interpreter").new(a)
    np.testing.assert_allclose(b, expected, rtol=1e-12)


def test_a_function_is_called_by_another_whatever_their_names():
    module = parse("""
@I.ir_module
class M:
    @T.prim_func(private=True)
    def exp(x: T.float64) -> T.float64:
        return T.exp(x) + T.float64(1)

    @T.prim_func
    def malloc(A: T.Buffer((8,), "float64"), O: T.Buffer((8,), "float64")):
        for i in range(8):
            O[i] = T.call_extern("float64", "exp", A[i])
""")
    np.testing.assert_allclose(result(tir.build(module), "malloc"), np.exp(A) + 1, rtol=1e-12)


@pytest.mark.parametrize("name", ["", "a\0b", "\n", "\ud800", 5, None])
def test_a_name_that_nobody_can_read_is_refused(name):
    func = parse(PROGRAM)
    with pytest.raises((TypeError, ValueError), match="the name of a function in a module is"):
        tir.IRModule({name: func})
    with pytest.raises((TypeError, ValueError), match="the global_symbol of a function is"):
        func.with_attr("global_symbol", name)
    text = PROGRAM.replace("    B =", f'    T.func_attr({{"global_symbol": {name!r}}})\n    B =')
    with pytest.raises(ParseError, match="the global_symbol of a function is"):
        parse(text)
    x = te.placeholder((4,), name="x")
    y = te.compute((4,), lambda i: x[i], name="y")
    with pytest.raises(TirError, match="the name of a function is"):
        te.create_schedule(y.op).build([x, y], name=name)


@pytest.mark.parametrize("name", ["", "a b", "__tir_serial", "tir.f", "llvm.exp.f64"])
def test_a_call_of_what_is_no_c_function_is_refused(name):
    func = parse(
        '@T.prim_func\ndef f(A: T.Buffer((8,), "float64")):\n    A[0] = T.call_extern("float64", "sin", A[1])\n'
    )
    func = tir.visit.rewrite(func, lambda n: tir.StringImm(name) if isinstance(n, tir.StringImm) else None)
    with pytest.raises(BuildError, match="no function of the module and no C function has this name"):
        tir.build(func)


# ---------------------------------------------------------------- saved files


def symbols(*functions: str, stem: str = "kernels", external: frozenset[str] = frozenset()) -> list[str]:
    given = {f"f{k}": SimpleNamespace(func=renamed(name), written=frozenset()) for k, name in enumerate(functions)}
    return [f.symbol for f in exported(given, stem, external, (f"{stem}_error",))]


def test_a_saved_function_has_its_own_name_unless_a_c_program_has_it_already():
    assert symbols("axpy", "main", "_step", "a b") == ["axpy", "kernels", "_step", "a_b"]
    assert symbols("exp", "malloc", "new", "errno", "index") == [
        f"kernels_{name}" for name in ("exp", "malloc", "new", "errno", "index")
    ]
    assert symbols("mine", external=frozenset({"mine"})) == ["kernels_mine"]
    assert symbols("main", stem="new") == ["new_main"]


@pytest.mark.parametrize(
    ("functions", "stem"),
    [(["é", "è"], "kernels"), (["kernels_error"], "kernels"), (["f"], "argp"), (["main", "k"], "k")],
)
def test_names_that_would_clash_in_c_are_refused(functions, stem):
    with pytest.raises(BuildError, match="give the function another name with T.func_attr.*, or the file"):
        symbols(*functions, stem=stem)


@compiles
def test_saved_functions_do_not_take_the_place_of_the_c_library(tmp_path):
    for stem in ("first", "second"):
        module = tir.IRModule({name: renamed(name) for name in ("malloc", "free", "exp", f"{stem}_own")})
        tir.build(module).save(tmp_path / f"{stem}.o", header=tmp_path / f"{stem}.h")
    (tmp_path / "program.c").write_text("""
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "first.h"
#include "second.h"
int main(void) {
    double *a = malloc(64), *o = malloc(64);
    for (int i = 0; i < 8; ++i) a[i] = -1;
    int32_t codes = first_malloc(a, o) + second_malloc(a, o) + first_exp(a, o) + second_own(a, o);
    printf("%d %d\\n", codes, fabs(o[0] - 2 * exp(a[0])) < 1e-12);
    free(a);
}
""")
    command = [COMPILER, "-Wall", "-Werror", "program.c", "first.o", "second.o", "-lm", "-o", "program"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert subprocess.run([tmp_path / "program"], capture_output=True, text=True, check=True).stdout == "0 1\n"


HEADERS = (
    "assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdarg stddef stdint stdio "
    "stdlib string time wchar wctype"
)
PREDEFINED = "linux unix i386 __LINE__ __FILE__ _Bool __func__ _ __attribute__ int8_t uint64_t size_t NULL INT8_MAX"


def macros(standard: str) -> set[str]:
    """The macros that a C program sees which includes every header."""
    includes = "".join(f"#include <{name}.h>\n" for name in HEADERS.split())
    command = [COMPILER, f"-std={standard}", "-dM", "-E", "-"]
    done = subprocess.run(command, input=includes, capture_output=True, text=True, check=True)
    return {line.split()[1] for line in done.stdout.splitlines() if "(" not in line.split()[1]}


@compiles
def test_headers_compile_in_c_and_in_cplusplus_whatever_the_names(tmp_path):
    parameters = sorted({*KEYWORDS, *PREDEFINED.split(), *macros("c99"), *macros("gnu11"), *HOSTILE})
    handles = [tir.Var(name, "float32") for name in parameters]
    many = renamed("many").replace(params=tuple(handles), body=tir.Evaluate(tir.IntImm(0)), buffer_map={})
    functions = {name: renamed(name) for name in (*sorted(KEYWORDS), *PREDEFINED.split(), *HOSTILE) if name.isascii()}
    functions = {name: f.with_body(many.body) for name, f in functions.items()}
    unique = {f.symbol: f for f in exported_of(functions)}
    module = tir.build(tir.IRModule({"many": many, **{f.name: functions[f.name] for f in unique.values()}}))
    module.save(tmp_path / "k.o", header=tmp_path / "k.h")
    for standard in ("c99", "c11", "gnu11"):
        compiled(tmp_path, COMPILER, standard, "c", HEADERS.split())
    if CPLUSPLUS is not None:
        compiled(tmp_path, CPLUSPLUS, "c++17", "c++", [n for n in HEADERS.split() if n not in ("complex",)])


def exported_of(functions):
    """The functions, without those that have one symbol together."""
    found = {}
    for name, func in functions.items():
        (one,) = exported({name: SimpleNamespace(func=func, written=frozenset())}, "k")
        found.setdefault(one.symbol, one)
    return found.values()


def compiled(folder: Path, compiler, standard: str, language: str, headers: list[str]) -> None:
    """Compile the header alone, and with the headers of the C library before it and behind it."""
    includes = "".join(f"#include <{name}.h>\n" for name in headers)
    for text in ('#include "k.h"\n', f'#include "k.h"\n{includes}', f'{includes}#include "k.h"\n'):
        command = [compiler, f"-std={standard}", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", language, "-I."]
        done = subprocess.run([*command, "-"], cwd=folder, input=text, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[:2000]
