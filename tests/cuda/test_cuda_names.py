"""Names of the user beside those of CUDA C, of the device's library and of the generator's helpers."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tir
from codegen.c_names import KEYWORDS
from codegen.cuda import nvrtc
from codegen.cuda.generator import Generator, finished
from codegen.cuda.kernel import emit_kernel, source_of
from codegen.cuda.module import is_kernel
from codegen.cuda.prelude import part_names
from tests.tools.gpu_operators import compile_cases
from tir.script import parse

FLOAT_FUNCTIONS = (
    "exp exp2 log log2 log10 log1p sqrt erf sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh floor ceil trunc "
    "round abs nearbyint isnan isinf isfinite"
)
OF_TWO = ("pow", "atan2", "fmod", "hypot", "copysign", "nextafter")


def source(mod: tir.IRModule) -> str:
    lowered = tir.lower(mod, target="cuda")
    return source_of([emit_kernel(f, n) for n, f in lowered.items() if is_kernel(f)])


def spelled(name: str, dtype: str) -> str:
    """The function of the device that computes an operator."""
    name = {"abs": "fabs", "nearbyint": "rint"}.get(name, name)
    return name if name.startswith("is") or dtype == "float64" else f"{name}f"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_buffer_may_have_the_name_of_the_function_that_computes_it(dtype):
    calls = {name: f"T.{name}(x[t])" for name in FLOAT_FUNCTIONS.split()} | {
        name: f"T.{name}(x[t], x[t + 1])" for name in OF_TWO
    }
    types = {name: "bool" if name.startswith("is") else dtype for name in calls}
    params = ", ".join(f'{spelled(n, dtype)}: T.Buffer((8,), "{types[n]}")' for n in calls)
    stores = "\n".join(f"        {spelled(n, dtype)}[t] = {call}" for n, call in calls.items())
    text = source(
        tir.IRModule.of(
            parse(
                f'@T.prim_func\ndef f(x: T.Buffer((9,), "{dtype}"), {params}):\n'
                f'    for t in T.thread_binding(8, thread="threadIdx.x"):\n{stores}\n'
            )
        )
    )
    nvrtc.compile_ptx(text, "sm_80")


KERNEL = """
@T.prim_func
def {f}({A}: T.Buffer((64,), "float32"), {B}: T.Buffer((64,), "float32"), {C}: T.Buffer((64,), "float16"), {n}: T.int32):
    for {t} in T.thread_binding(16, thread="threadIdx.x"):
        {S} = T.alloc_buffer((64,), "float32", scope="shared")
        {R} = T.alloc_buffer((4,), "float32", scope="local")
        for v in T.vectorized(4):
            {R}[v] = T.exp({A}[{t} * 4 + v])
        for v in T.vectorized(4):
            {S}[{t} * 4 + v] = T.max({R}[v], T.float32(0)) + T.Cast("float32", {C}[{t} * 4 + v])
        for {k} in range({n} % 4):
            {B}[{t} * 4 + {k}] = T.if_then_else(T.isnan({S}[{t}]), T.tanh({S}[{t}]), {S}[{t} * 4 + {k}] / T.float32(2))
"""


@pytest.mark.parametrize(
    "names",
    [
        "NULL expf isnan threadIdx half vec float32x4 max expf",
        "new int maximum tanhf x f_kernel __syncthreads é exp",
        "_ unsigned linux each convert template printf struct new",
    ],
)
def test_kernels_compile_under_hostile_names(names):
    chosen = dict(zip("ABCntSRkf", names.split(), strict=True))
    nvrtc.compile_ptx(source(tir.IRModule.of(parse(KERNEL.format(**chosen)))), "sm_80")


OWN = sorted({*part_names(), "expf", "isnan", "threadIdx", "x", "x_1", "A", "A_1", "A_2", "f_kernel", "I"})
own_words = st.sampled_from(OWN)
user_names = st.sampled_from([*OWN, *sorted(KEYWORDS), "NULL", "1x", "_", "__x", "a b", "é", ""]) | st.text(max_size=4)


@given(st.lists(own_words.map(lambda w: (w, "")) | user_names.map(lambda n: ("", n)), min_size=1))
def test_no_name_of_the_user_is_one_that_the_text_uses(words):
    g = Generator("f")
    unfinished = [own or g.name(name, name) for own, name in words]
    result = finished(" + ".join(f"{word}.x(1.0f, /* I */ A_1[2])" for word in unfinished)).split(" + ")
    chosen = [re.match(r"\w+", text)[0] for text in result]
    taken = {own for own, _ in words} | {"A_1"} | KEYWORDS
    for before, after, (own, _) in zip(unfinished, chosen, words, strict=True):
        assert after == own if own else after not in taken
        assert chosen[unfinished.index(before)] == after
    assert len(set(chosen)) == len(set(unfinished))
    assert all(text == f"{word}.x(1.0f, /* I */ A_1[2])" for text, word in zip(result, chosen, strict=True))


def test_two_kernels_and_their_constants_have_names_of_their_own():
    text = """
@T.prim_func
def f(O: T.Buffer((4,), "float32")):
    table = T.allocate_const([1, 2, 3, 4], "float32", [4])
    D = T.Buffer((4,), "float32", data=table)
    for t in T.thread_binding(4, thread="threadIdx.x"):
        O[t] = D[t]
"""
    functions = {name: parse(text).with_attr("global_symbol", name) for name in ("é", "è", "exp")}
    made = source(tir.IRModule(functions))
    nvrtc.compile_ptx(made, "sm_80")
    assert len(set(re.findall(r"(\w+)\(float", made))) == 3


def test_kernels_whose_names_in_c_are_one_are_refused():
    empty = tir.PrimFunc((), tir.Evaluate(tir.IntImm(0)))
    with pytest.raises(tir.BuildError, match="two kernels would be called f_kernel"):
        source_of([emit_kernel(empty, name) for name in ("f", "f_kernel")])


@pytest.mark.parametrize(
    "value", ["T.bitwise_and(A[t], A[t + 1])", "A[t] % 8", "A[t] // 3", "T.abs(A[t])", "T.bitwise_not(A[t])"]
)
def test_narrow_integers_have_their_own_type_in_c(value):
    kernel = parse(f"""
@T.prim_func
def f(A: T.Buffer((9,), "int16"), F: T.Buffer((8,), "bfloat16"), M: T.Buffer((8,), "int16")):
    for t in T.thread_binding(8, thread="threadIdx.x"):
        F[t] = T.reinterpret("bfloat16", {value})
        M[t] = T.max({value}, T.if_then_else(A[0] > T.int16(1), {value}, A[t]))
""")
    nvrtc.compile_ptx(source(tir.IRModule.of(kernel)), "sm_80")


def test_tests_of_vectors_choose_between_vectors():
    kernel = parse("""
@T.prim_func
def f(A: T.Buffer((64,), "float32"), O: T.Buffer((64,), "float32")):
    for t in T.thread_binding(8, thread="threadIdx.x"):
        for v in T.vectorized(8):
            O[t * 8 + v] = T.Select(T.isnan(A[t * 8 + v]), T.float32(1), A[t * 8 + v])
""")
    nvrtc.compile_ptx(source(tir.IRModule.of(kernel)), "sm_80")


@pytest.mark.parametrize("name", ["isnan", "atan2", "acos", "nn.batch_matmul"])
def test_operators_compile_by_their_default_schedules(name):
    compile_cases(name)
