"""Input of every wrong kind: a clear error that names what is wrong, and everything still works after it."""

from __future__ import annotations

import _thread
import signal
import threading

import numpy as np
import pytest

import tir
from tir.script import parse

ADD = """
@T.prim_func
def add(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = A[vi] + T.float32(1)
"""
ENGINES = ["llvm", "interpreter", "cuda-sim"]


def engine(target: str) -> object:
    sch = tir.Schedule(parse(ADD))
    if target == "cuda-sim":
        sch.bind("i", "threadIdx.x")
    return tir.build(sch.mod, target=target)


@pytest.fixture(scope="module", params=ENGINES)
def module(request):
    return engine(request.param)


def _read_only() -> np.ndarray:
    array = np.zeros(8, "float32")
    array.flags.writeable = False
    return array


@pytest.mark.parametrize("target", ENGINES)
def test_an_argument_begins_at_the_alignment_that_its_buffer_declares(target):
    aligned = ADD.replace('A: T.Buffer((8,), "float32")', 'A: T.Buffer((8,), "float32", align=64)')
    run = tir.build(tir.Schedule(parse(aligned)).mod, target=target)
    memory = np.zeros(32, "float32")
    start = -memory.ctypes.data % 64 // 4
    run(memory[start : start + 8], np.zeros(8, "float32"))
    with pytest.raises(tir.RunError, match="argument 1 `A`.* 64 bytes"):
        run(memory[start + 1 : start + 9], np.zeros(8, "float32"))
    assert all(tir.nd.array(np.ones(k)).ctypes.data % 64 == 0 for k in range(1, 9))


def _misaligned() -> np.ndarray:
    return np.frombuffer(bytearray(33), dtype="uint8")[1:].view("float32")


@pytest.mark.parametrize(
    "place, bad, says",
    [
        (0, np.zeros(8), "expected dtype float32, got float64"),
        (0, np.zeros(8, ">f4"), "float32"),
        (0, np.zeros(8, object), "float32"),
        (0, np.zeros(9, "float32"), "(9,)"),
        (0, np.zeros((2, 4), "float32"), "2"),
        (0, np.zeros(16, "float32")[::2], "row-major"),
        (0, [1.0] * 8, "list"),
        (0, None, "None"),
        (0, "text", "str"),
        (0, 1.5, "float"),
        (0, _misaligned(), "align"),
        (1, _misaligned(), "align"),
        (1, _read_only(), "read-only"),
    ],
    ids=["float64", "big-endian", "object", "shape", "rank", "strided", "list", "None", "str", "float",
         "misaligned", "misaligned result", "read-only"],
)  # fmt: skip
def test_arguments(module, place: int, bad, says: str):
    args = [np.zeros(8, "float32"), np.zeros(8, "float32")]
    args[place] = bad
    with pytest.raises(tir.RunError) as caught:
        module(*args)
    shown = str(caught.value)
    assert f"argument {place + 1} `{'AC'[place]}`" in shown and says in shown, shown
    assert not np.any(args[1 - place])  # nothing was written before the refusal
    out = np.zeros(8, "float32")
    module(np.ones(8, "float32"), out)
    assert (out == 2).all()


@pytest.mark.parametrize("count", [0, 1, 3])
def test_number_of_arguments(module, count: int):
    with pytest.raises(tir.RunError, match=f"takes 2 arguments .*, got {count}"):
        module(*[np.zeros(8, "float32")] * count)


@pytest.mark.parametrize("what", [5, None, b"bytes", ["x"]])
def test_parse_of_what_is_no_text(what):
    with pytest.raises(TypeError, match="a text of a program is a string, not"):
        parse(what)


@pytest.mark.parametrize("cut", range(20, len(ADD) - 1, 13))
def test_a_program_cut_short(cut: int):
    """Whatever is left of it is a program, or refused as text."""
    try:
        parse(ADD[:cut])
    except tir.ParseError as error:
        assert "/tir/" not in str(error)


def test_negative_extents():
    with pytest.raises(tir.ParseError, match="axis 0 of buffer `A` has extent -8; an extent is at least 0"):
        parse(ADD.replace("(8,)", "(-8,)"))
    with pytest.raises(ValueError, match="axis 1 of buffer `B` has extent -1"):
        tir.decl_buffer((4, -1), name="B")


@pytest.mark.parametrize("target", ENGINES)
def test_zero_extents(target: str):
    sch = tir.Schedule(parse(ADD.replace("8", "0")))
    if target == "cuda-sim":
        sch.bind("i", "threadIdx.x")
    elif sch.can.split("i", [None, 4]):
        sch.split("i", [None, 4])
    empty = np.zeros(0, "float32")
    tir.build(sch.mod, target=target)(empty, empty.copy())


def test_extents_past_every_integer():
    with pytest.raises(tir.ParseError, match="18446744073709551616 does not fit uint64"):
        parse(ADD.replace("(8,)", "(2**64,)"))


HUGE = """
@T.prim_func
def huge(n: T.int64, P: T.Buffer((8,), "int64"), A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    B = T.alloc_buffer(({shape}), "float32")
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[P[vi]{more}] = A[vi]
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[P[vi]{more}]
"""


@pytest.mark.parametrize("target", ["llvm", "interpreter"])
@pytest.mark.parametrize("shape, n", [("2**46,", 0), ("2**62,", 0), ("n, n", 2**31), ("n, n", 2**33)])
def test_more_memory_than_there_is(target: str, shape: str, n: int):
    """Sizes whose bytes wrap around a 64-bit integer too: they would allocate nothing and write past it."""
    func = parse(HUGE.format(shape=shape, more=", 0" if "n" in shape else ""))
    a, c = np.ones(8, "float32"), np.zeros(8, "float32")
    with pytest.raises((tir.RunError, tir.BuildError), match="out of memory allocating|more than any machine"):
        tir.build(func, target=target)(n, np.arange(8), a, c)
    if "n" in shape:
        tir.build(func, target=target)(8, np.arange(8), a, c)
        assert (c == 1).all()


@pytest.mark.parametrize("target", ["interpreter", "cuda-sim"])
def test_ctrl_c_in_a_kernel(target: str):
    """Nothing is lost: the schedule, the module and the arrays go on."""
    text = ADD.replace("            C[vi] = A[vi]", "            for k in range(10**9):\n                C[vi] = A[vi]")
    sch = tir.Schedule(parse(text))
    if target == "cuda-sim":
        sch.bind("i", "threadIdx.x")
    slow = tir.build(sch.mod, target=target)
    a, c = np.ones(8, "float32"), np.zeros(8, "float32")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore Ctrl-C
    timer = threading.Timer(0.3, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        slow(a, c)
    timer.join()
    signal.signal(signal.SIGINT, before)
    assert len(sch.history) == (2 if target == "cuda-sim" else 1)
    engine(target)(a, c)  # type: ignore[operator]
    assert (c == 2).all()


def test_functions_that_call_each_other_without_end():
    text = """
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((8,), "float32")):
        A[0] = A[0] + T.float32(1)
        Module.main(A.data)
"""
    try:
        module = parse(text)
    except tir.ParseError as error:
        assert "/tir/" not in str(error)
        return
    with pytest.raises(tir.TirError):
        tir.build(module, target="interpreter")(np.zeros(8, "float32"))


@pytest.mark.parametrize("damage", [b"", b"\x7fELF garbage", b"\x00" * 4096])
def test_a_damaged_cache_is_made_again(tmp_path, monkeypatch, damage: bytes):
    monkeypatch.setenv("TIR_CACHE_DIR", str(tmp_path))
    out = np.zeros(8, "float32")
    func = parse(ADD.replace("T.float32(1)", "T.float32(37)"))
    tir.build(func)(np.zeros(8, "float32"), out)
    files = [f for f in tmp_path.rglob("*") if f.is_file()]
    assert files
    for file in files:
        file.write_bytes(damage)
    out[:] = 0
    with pytest.warns(RuntimeWarning, match="is damaged; compiling again"):
        tir.build(func)(np.zeros(8, "float32"), out)
    assert (out == 37).all()
    assert all(file.read_bytes() != damage for file in files)


BAD_STEPS = {
    "no such block": lambda s: s.get_block("nope"),
    "no such loop": lambda s: s.unroll("nope"),
    "a factor of zero": lambda s: s.split("i", [None, 0]),
    "a negative factor": lambda s: s.split("i", [None, -4]),
    "two open factors": lambda s: s.split("i", [None, None]),
    "no factors": lambda s: s.split("i", []),
    "factors too small": lambda s: s.split("i", [2, 2]),
    "a huge factor": lambda s: s.split("i", [None, 2**70]),
    "no such axis": lambda s: s.bind("i", "threadIdx.w"),
    "no such scope": lambda s: s.cache_read("C", 0, "nowhere.at.all"),
    "no such buffer": lambda s: s.cache_read("C", 7, "local"),
    "a loop twice": lambda s: s.reorder("i", "i"),
    "one loop fused twice": lambda s: s.fuse("i", "i"),
    "no such intrinsic": lambda s: s.tensorize("i", "nothing"),
    "undo of nothing": lambda s: s.undo(),
    "redo of nothing": lambda s: s.redo(),
}


@pytest.mark.parametrize("name", list(BAD_STEPS))
def test_steps_that_make_no_sense(name: str):
    sch = tir.Schedule(parse(ADD))
    before = sch.mod
    with pytest.raises((tir.ScheduleError, ValueError)) as caught:
        BAD_STEPS[name](sch)
    assert "fault inside" not in str(caught.value), str(caught.value)
    assert sch.mod is before and len(sch.history) == 1


@pytest.mark.parametrize("bad", [None, 1.5, [1], {"a": 1}, b"x", object()], ids=lambda v: type(v).__name__)
@pytest.mark.parametrize("step", ["unroll", "parallel", "compute_inline", "split", "bind", "reorder", "fuse"])
def test_arguments_of_steps_of_wrong_types(step: str, bad):
    sch = tir.Schedule(parse(ADD))
    more = {"split": ([None, 2],), "bind": ("threadIdx.x",)}.get(step, ())
    with pytest.raises((TypeError, tir.ScheduleError)) as caught:
        getattr(sch, step)(bad, *more)
    assert "fault inside" not in str(caught.value), str(caught.value)
    assert len(sch.history) == 1


@pytest.mark.parametrize(
    "line, says",
    [
        ("C[0] = 1e40", "constant 1e+40 does not fit float32 (at most 3.4028235e+38)"),
        ("C[0] = T.float32(-1e40)", "constant -1e+40 does not fit float32"),
        ('C[0] = T.Cast("float32", T.float16(65520))', "constant 65520 does not fit float16 (at most 65504)"),
        ('C[0] = T.Cast("float32", T.float8_e4m3fn(1000))', "constant 1000 does not fit float8_e4m3fn (at most 448)"),
        ('C["x"] = T.float32(1)', "index 0 of `C` is a string, not an integer"),
        ("C = A[0] + 1.0", "`C` is a buffer; values are stored to its elements"),
        ("C = A", "`C` is a buffer; values are stored to its elements"),
        ("C = [0.0] * 8", "`C` is a buffer; values are stored to its elements"),
        ('vi = T.axis.remap("S", 3)', "the bindings of remap are a list, such as [i, j]"),
        ("C[0] = T.exp()", "exp takes 1 argument, got 0"),
    ],
)
def test_lines_that_cannot_be(line: str, says: str):
    with pytest.raises(tir.ParseError) as caught:
        parse(ADD.replace("for i in range(8):", f"{line}\n    for i in range(8):"))
    assert says in str(caught.value) and line in str(caught.value)


def test_infinities_and_the_largest_numbers_are_constants():
    values = ["inf", "-inf", "nan"], [3.4028234663852886e38, -3.4028235677973362e38, 1e-60]
    for value in (*map(repr, values[0]), *map(repr, values[1])):
        func = parse(ADD.replace("T.float32(1)", f"T.float32({value})"))
        tir.assert_structural_equal(parse(func.script()), func)


@pytest.mark.parametrize(
    "target, says",
    [
        ("llvm -mcpu=skylake-avx521", "LLVM knows no processor 'skylake-avx521'; did you mean skylake-avx512"),
        ("llvm -mcpu=haswell -mattr=+avx2,+fam", "LLVM knows no feature of a processor 'fam'"),
        ("cuda -arch=volta", "no GPU architecture is called 'volta'"),
    ],
)
def test_machines_that_do_not_exist(target: str, says: str):
    """LLVM would print its warnings, and for a processor without 64 bits end the process."""
    with pytest.raises((tir.BuildError, ValueError), match=says):
        tir.build(parse(ADD), target)


@pytest.mark.parametrize("data", ["{", "[3]", '[{"a": 1}]', 5, None])
def test_records_that_are_none(data):
    with pytest.raises(tir.TirError, match="this is no record of a schedule"):
        type(tir.Schedule(parse(ADD)).trace).from_json(data)


def test_a_list_where_a_loop_is_wanted():
    with pytest.raises(TypeError, match="`loop` is a loop .a handle or a name., not a list"):
        tir.Schedule(parse(ADD)).vectorize(["i"])


def test_a_note_of_no_kind():
    with pytest.raises(TypeError, match="an annotation is a string, a number of 64 bits, .* not object"):
        tir.Schedule(parse(ADD)).annotate("i", "note", [object()])


def test_a_range_of_numbers_names_what_makes_one():
    with pytest.raises(TypeError, match=r"Range\.of\(2, 10\)"):
        tir.Range(2, 10)  # type: ignore[arg-type]
    assert tir.Range.of(2, 10).ends() == (2, 9)


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda: tir.build({"a": 3}), "functions by their names, not 'a': int"),
        (lambda: tir.build({3: parse(ADD)}), "functions by their names, not 3: PrimFunc"),
        (lambda: tir.nd.array("a"), "made of numbers, not of str"),
        (lambda: tir.nd.array(None), "made of numbers, not of NoneType"),
        (lambda: tir.nd.array(np.zeros(3), "cuda"), "a device is what tir.cpu"),
        (lambda: tir.IntImm("int32", 2**40), "1099511627776 does not fit int32"),
        (lambda: tir.IntImm("int32", 2.5), "2.5 is not an integer"),
        (lambda: tir.IntImm("float32", 2), "IntImm is no constant of float32"),
        (lambda: tir.FloatImm("int32", 2.0), "FloatImm is no constant of int32"),
        (lambda: tir.FloatImm("float16", 1e9), "does not fit float16"),
    ],
)
def test_what_is_no_module_array_or_constant_is_refused(call, said):
    with pytest.raises((TypeError, ValueError), match=said):
        call()


def test_a_folder_is_no_saved_module(tmp_path):
    with pytest.raises(tir.BuildError, match="is a folder"):
        tir.load(tmp_path)
