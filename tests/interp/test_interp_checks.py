"""Each check of the executor and of the arguments: it fires, where it should, and says what a person needs."""

import numpy as np
import pytest

import tir
from tir.interp import run
from tir.script import parse


def f4(*shape):
    return np.zeros(shape, "f4")


def refused(text, *args, **options):
    with pytest.raises(tir.RunError) as info:
        run(parse("@T.prim_func\n" + text), *args, **options)
    return str(info.value)


def test_out_of_bounds_names_everything():
    message = refused(
        """
def f(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    for i, j in T.grid(4, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj + 1]
""",
        f4(4, 8),
        f4(4, 8),
    )
    assert "read of A[0, 8] is out of bounds: A has shape (4, 8), and index 1 must be in [0, 8)" in message
    assert 'block "B" at vi=0, vj=7, loops i=0, j=7' in message
    assert "<text>:7" in message


def test_vector_store_out_of_bounds():
    message = refused(
        'def f(A: T.Buffer((6,), "float32")):\n    for i in range(2):\n'
        "        A[i * 4 : i * 4 + 4] = T.Broadcast(T.float32(1), 4)\n",
        f4(6),
    )
    assert "write of A[4..7] is out of bounds" in message


def test_uninitialised_read():
    message = refused(
        """
def f(B: T.Buffer((4,), "float32")):
    A = T.alloc_buffer((4,))
    for i in range(3):
        with T.block("A"):
            v = T.axis.spatial(3, i)
            A[v] = T.float32(1)
    for i in range(4):
        with T.block("B"):
            v = T.axis.spatial(4, i)
            B[v] = A[v]
""",
        f4(4),
    )
    assert "read of A[3], which nothing has written yet" in message and 'block "B" at v=3' in message


@pytest.mark.parametrize("kind", ["T.parallel(4)", "T.vectorized(4)", 'T.thread_binding(4, thread="threadIdx.x")'])
def test_two_iterations_write_one_element(kind):
    text = f'def f(A: T.Buffer((4,), "float32")):\n    for i in {kind}:\n        A[i // 2] = T.float32(1)\n'
    message = refused(text, f4(4))
    assert "race on A[0]: i=0 makes a write and i=1 makes a write" in message


def test_read_and_write_race():
    message = refused(
        'def f(A: T.Buffer((5,), "float32")):\n    for i in T.parallel(4):\n        A[i] = A[i + 1]\n', f4(5)
    )
    assert "race on A[1]" in message and "read" in message and "write" in message


def test_ordered_accesses_are_no_race():
    run(
        parse("""
@T.prim_func
def f(A: T.Buffer((4, 5), "float32")):
    for k in range(3):
        for i in T.parallel(4):
            for j in range(4):
                A[i, j] = A[i, j + 1] + A[i, 0]
    for j in T.vectorized(5):
        A[0, j] = A[0, j] + A[1, j]
"""),
        f4(4, 5),
    )


def test_iterator_outside_its_domain():
    message = refused(
        """
def f(A: T.Buffer((8,), "float32")):
    for i in range(5):
        with T.block("A"):
            v = T.axis.spatial(4, i)
            A[v] = T.float32(0)
""",
        f4(8),
    )
    assert "block iterator v=4 is outside its domain [0, 4)" in message


def test_division_by_zero_and_shift():
    text = 'def f(A: T.Buffer((4,), "int32"), b: T.int32):\n    for i in range(4):\n        A[i] = A[i] {} b\n'
    assert "division by zero: 0 // 0" in refused(text.format("//"), np.zeros(4, "i4"), 0)
    assert "shift by 40 of a 32-bit integer" in refused(text.format("<<"), np.zeros(4, "i4"), 40)


def test_assertion():
    message = refused('def f(n: T.int32):\n    assert n > 3, "n is too small"\n', 2)
    assert "assertion failed: n is too small" in message


def test_access_outside_declared_region():
    text = """
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(4):
        with T.block("B"):
            v = T.axis.spatial(4, i)
            T.reads(A[v])
            T.writes(B[v])
            B[v] = A[v + 1]
"""
    run(parse("@T.prim_func" + text), f4(8), f4(8))
    message = refused(text, f4(8), f4(8), regions=True)
    assert "read of A[1] is outside the block's declared reads: A[0:1]" in message


def test_a_root_block_of_any_name_declares_no_regions():
    text = """
def f(A: T.Buffer((), "float32"), B: T.Buffer((), "float32")):
    with T.block("add"):
        B[()] = A[()] + 1.0
"""
    out = np.zeros((), "float32")
    run(parse("@T.prim_func" + text), np.ones((), "float32"), out, regions=True)
    assert out == 2


def test_barrier_is_refused():
    message = refused(
        """
def f(A: T.Buffer((8,), "float32")):
    tx = T.launch_thread("threadIdx.x", 8)
    A[tx] = T.float32(1)
    T.tvm_storage_sync("shared")
""",
        f4(8),
    )
    assert "barrier" in message and "thread_sync" in message


def test_endless_recursion():
    mod = parse("""
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((4,), "float32")):
        Module.main(A.data)
""")
    with pytest.raises(tir.RunError, match="calls nest more than"):
        run(mod, f4(4))


ADD = parse("""
@T.prim_func
def add(a: T.handle, b: T.handle, k: T.int32):
    n = T.int32()
    A = T.match_buffer(a, (n, 4), "float32")
    B = T.match_buffer(b, (n, 4), "float32")
    for i, j in T.grid(n, 4):
        B[i, j] = A[i, j] + T.Cast("float32", k)
""")


def read_only():
    array = f4(3, 4)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    "args, says",
    [
        ((f4(3, 4), f4(3, 4)), "add takes 3 arguments (A: float32 array of shape (n, 4)"),
        ((f4(3, 4), [1], 1), "argument 2 `B` of add: expected a float32 array of shape (n, 4), got list"),
        ((np.zeros((3, 4)), f4(3, 4), 1), "argument 1 `A` of add: expected dtype float32, got float64"),
        ((f4(12), f4(3, 4), 1), "argument 1 `A` of add: expected 2 dimensions"),
        ((f4(3, 5), f4(3, 4), 1), "argument 1 `A` of add: expected shape (3, 4), got (3, 5)"),
        ((f4(3, 4), f4(2, 4), 1), "argument 2 `B` of add: size 0 is 2, but `n` is 3 by argument 1 `A`"),
        ((f4(4, 3).T, f4(3, 4), 1), "expected a compact row-major array, strides (4, 1), got (1, 3)"),
        ((f4(3, 4), read_only(), 1), "argument 2 `B` of add: the function writes it, but the array is read-only"),
        ((f4(3, 4), f4(3, 4), 1.5), "argument 3 `k` of add: expected an integer (int32), got float 1.5"),
        ((f4(3, 4), f4(3, 4), 2**40), "argument 3 `k` of add: 1099511627776 does not fit int32"),
    ],
)
def test_arguments_are_refused_by_name(args, says):
    with pytest.raises(tir.RunError) as info:
        run(ADD, *args)
    assert says in str(info.value)


def test_read_only_input_and_dlpack_are_taken():
    class Tensor:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    b = f4(3, 4)
    run(ADD, read_only(), b, 2)
    assert (b == 2).all()
    c = f4(3, 4)
    run(ADD, Tensor(b), c, 1)
    assert (c == 3).all()


@pytest.mark.parametrize("axis, races", [("threadIdx.x", False), ("blockIdx.x", True), ("vthread.x", True)])
def test_a_sum_across_blocks_is_a_race(axis, races):
    """Lowering combines what the threads of one block have summed, and nothing else."""
    func = parse(f"""
@T.prim_func
def main(A: T.Buffer((4,), "float32"), S: T.Buffer((1,), "float32")):
    for k in T.thread_binding(4, thread="{axis}"):
        with T.block("S"):
            vk = T.axis.reduce(4, k)
            with T.init():
                S[0] = T.float32(0)
            S[0] += A[vk]
""")
    s = np.zeros(1, "float32")
    if races:
        with pytest.raises(tir.RunError, match="race"):
            run(func, np.ones(4, "float32"), s)
    else:
        run(func, np.ones(4, "float32"), s)
        assert s[0] == 4


@pytest.mark.parametrize(("elements", "wrong"), [(0, None), (1, None), (2, "its memory has 1 elements")])
def test_memory_that_holds_no_whole_number_of_elements(elements, wrong):
    func = tir.script.parse(f"""
@T.prim_func
def f(A: T.Buffer((3,), "float32"), C: T.Buffer((1,), "int64")):
    B = T.decl_buffer(({elements},), "int64", data=A.data)
    C[0] = 5
    for i in range({elements}):
        C[0] = B[i]
""")
    a, c = np.array([1, 0, 0], "int32").view("float32"), np.zeros(1, "int64")
    if wrong is None:
        tir.interp.run(func, a, c)
        assert c[0] == (1 if elements else 5)
    else:
        with pytest.raises(tir.RunError, match=wrong):
            tir.interp.run(func, a, c)
