"""Mistakes that a user makes, each with what the message has to say: the value at fault, and what would be right."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tir
from tir import ops, te  # noqa: F401  (in the table)
from tir.script import parse
from tir.script import tir as T  # noqa: F401

PROGRAM = parse("""
@T.prim_func
def main(A: T.Buffer((8, 16), "float32"), C: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((8, 16), "float32")
    for i, j in T.grid(8, 16):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for x, k in T.grid(8, 16):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [x, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + B[vi, vk]
""")
STEPS = {
    'split("i")': "split takes one of factors=",
    'split("i", [None, None])': "only one factor can be None; 2 are",
    'split("i", [None, 0])': "legal: 1 or more, or None",
    'split("i", [None, 4.0])': '`factors[1]` is an int, an integer expression or None, not float: 4.0\nlegal: split("i", factors=[None, 4])',
    'split("i", [None, np.float32(4)])': "`factors[1]` is an int, an integer expression or None, not float32",
    'split("i", [None, True])': "`factors[1]` is an int, an integer expression or None, not bool: True",
    'split("i", factor=[None, 4])': "did you mean factors=[None, 4]?",
    'split("i", 4)': 'not int: 4\nlegal: split("i", factors=[None, 4])',
    'split("i", [2, 2])': "legal: make one factor None to have it inferred",
    'split("i", [None, 4], names=["a"])': "1 names for 2 loops\nlegal: 2 names",
    'split("i", [None, 3], tail="gaurd")': "tail is 'guard', 'cut' or 'exact', not 'gaurd'",
    'split("i", factr=4)': "`factr` is no parameter; did you mean factor, factors?",
    "split(0, [None, 4])": '`loop` is a loop (a handle or a name), not int: 0\nlegal: split("i", factors=[None, 4])',
    'vectorize(loops="j")': "`loops` is no parameter; did you mean loop?",
    'parallel("ii")': "loop `ii` is not in function `main`\nlegal: i, j, x, k",
    'parallel("B")': "`B` is a block, not a loop\nlegal: i, j",
    'compute_inline("i")': "`i` is a loop, not a block\nlegal: B",
    'compute_at("x", "B")': "`x` is a loop, not a block\nlegal: C",
    'compute_inline("b")': "block `b` is not in function `main`",
    'get_loops("D")': "block `D` is not in function `main`",
    'vectorise("j")': "Schedule has no 'vectorise'; did you mean vectorize?",
    'can.vectorise("j")': "no primitive 'vectorise'; did you mean vectorize?",
    'bind("i", "threadidx.x")': "legal: threadIdx.x",
    'bind("i", 0)': '`thread_axis` is a string, not int: 0\nlegal: bind("i", "blockIdx.x")',
    'cache_read("C", 0, "share")': "there is no storage scope `share`\nlegal: shared, shared.dyn",
    'cache_read("C", "D", "local")': "block `C` does not read a buffer `D`\nlegal: B",
    'cache_read("C", 5, "local")': "legal: 0 (B)",
    'cache_read("C", 0)': "missing a required argument: 'storage_scope'",
    'annotate("i", "pragma_unrol_explicit", 1)': "legal: pragma_unroll_explicit",
    'annotate("i", "pragma_auto_unroll_max_step", "many")': "legal: a number of steps from 0 on",
    'annotate("i", "pragma_auto_unroll_max_step", -1)': "legal: a number of steps from 0 on",
    'annotate("i", "pragma_unroll_explicit", -7)': "pragma_unroll_explicit is True or False, or a number of which 0 is False, not -7",
    'annotate("B", "buffer_dim_align", 4)': "is what storage_align writes, lists of buffer, axis, factor and offset, not 4",
    'unannotate("i", "note")': "nothing; no loop and no block has an annotation note",
    'reorder(["j", "i"])': "pass them one by one: 'j', 'i'",
    'fuse(["i", "j"])': "pass them one by one: 'i', 'j'",
    "reorder()": 'reorder needs at least one loop\nlegal: reorder("j", "i")',
    'reorder("i", "i")': 'loop `i` is given twice',
    'fuse("i", "x")': 'legal: fuse("i", "j")',
    'compute_at("B", "i")': 'legal locations for "B": root, x, k',
    'rfactor("k", 7)': "legal: -2 to 1",
    'rfactor("x", 0)': "uses it for vi",
    'transform_layout("B", "B", lambda i: i)': 'takes 1 index, but the buffer has 2 axes\nlegal: transform_layout("B", "B", lambda i, j: [j, i])',
    'transform_layout("B", "B", "ij->ji")': "a tir.IndexMap or a function of the indices, not str",
    'unsafe_set_dtype("B", 0, "flaot32")': "did you mean float32",
    'tensorize("j", "dot_16x4_vni")': "did you mean dot_16x4_vnni",
    'storage_align("B", 0, 5, 32, 8)': "legal: -2 to 1",
    'pad_einsum("C", [8])': "legal: 2 factors",
    'work_on("mian")': "legal: main",
    "undo()": "undo(1): no step has been taken",
    'access_picture("Z", "i")': "no access to a buffer `Z`; there are A, B, C",
}  # fmt: skip


@pytest.mark.parametrize("step", STEPS)
def test_a_step(step):
    sch = tir.Schedule(PROGRAM)
    with pytest.raises((tir.TirError, AttributeError), match=re.escape(STEPS[step])):
        eval(f"sch.{step}", {"sch": sch, "np": np})
    assert len(sch.history) == 1


def test_a_loop_that_a_step_replaced():
    sch = tir.Schedule(PROGRAM)
    i, j = sch.get_loops("B")
    sch.split(i, [None, 4])
    with pytest.raises(tir.ScheduleError, match="(?s)loop `i` was split at step 1 into i_0, i_1.*legal: i_0, i_1, j"):
        sch.parallel(i)
    block = sch.get_block("B")
    sch.compute_inline(block)
    with pytest.raises(tir.ScheduleError, match="block `B` was removed by compute_inline at step 2"):
        sch.compute_at(block, "x")


A = te.placeholder((8, 16), name="A")
CALLS = {
    'tir.Schedule("x")': "expected a PrimFunc or an IRModule, got str; tir.script.parse makes one of its text",
    "tir.Schedule(lambda a: a)": "decorate it with @T.prim_func",
    "PROGRAM(1, 2)": "main is a program, not a function of Python: tir.build(main)(…) compiles and runs it",
    'tir.lower(PROGRAM, upto="flaten_buffer")': "no pass 'flaten_buffer' in the pipeline; it has flatten_buffer",
    'tir.build(PROGRAM, "lvm")': "the kinds are llvm, interpreter, cuda, cuda-sim, cuda-ptx; did you mean llvm?",
    'tir.build(PROGRAM, "llvm -mcpuu=x")': "target llvm has no option 'mcpuu'; it has mcpu, mattr",
    'tir.Schedule(PROGRAM, target="llvm -mcp=znver4")': "target llvm has no option 'mcp'; it has mcpu, mattr",
    'tir.Target("cuda -archh=sm_80")': "did you mean arch?",
    'tir.Target("cuda-ptx -seed=3")': "target cuda-ptx has no option 'seed'",
    'tir.Target("llvm -mcpu=")': "option 'mcpu' of target llvm is a name, not True",
    'tir.Target("llvm", num_cores=0)': "option 'num_cores' of target llvm is a whole number, 1 or more, not 0",
    'tir.Target("llvm", num_cores=True)': "option 'num_cores' of target llvm is a whole number, 1 or more, not True",
    'tir.Target("llvm -vector_width=wide")': "option 'vector_width' of target llvm is a whole number, 1 or more, not 'wide'",
    'tir.Target("cuda-sim -seed=-1")': "option 'seed' of target cuda-sim is a whole number, 0 or more, not -1",
    'tir.Target("interpreter -x=1")': "target interpreter has no option 'x'; it has host, keys",
    'tir.build(PROGRAM, "llvm -mcpu=foo")': "LLVM knows no processor 'foo'",
    "tir.build(PROGRAM, 3)": "a target is a string, a dict or a Target, not int",
    'tir.tune(PROGRAM, "llvm", trials=0)': "trials=0, seconds=60.0: nothing could be measured",
    "tir.Schedul": "did you mean Schedule",
    "tir.library.gem": "it has attention, conv",
    'tir.Var("x", "in32")': "unknown data type 'in32'",
    "tir.IndexMap.from_func(lambda i: i).map_indices([1, 2])": "the index map takes 1 index, got 2 indices",
    'tir.transform.PassContext(config={"tir.disable_vectorise": True})': "did you mean tir.disable_vectorize",
    "tir.tune(3)": "expected a PrimFunc or an IRModule, got int",
    "T.exq": "did you mean `exp`?",
    "te.compute((8,), lambda i, j: A[i, j])": "legal: one parameter a dimension",
    "te.compute((8,), lambda i: A[i])": "legal: A[i, j]",
    "te.compute((8,), lambda i: A[i, 1.5])": "an index of `A` is an integer, not 1.5",
    'te.placeholder("8")': "extent 0 of `placeholder` is an integer, not '8'",
    'te.placeholder((8,), "flaot32")': "did you mean float32",
    "te.placehodler": "did you mean placeholder",
    "te.placeholder((-1,))": "an extent is at least 0",
    "te.compute((8,), lambda i: te.max(*A[i]))": "legal: A[i, j]",
    "list(tir.decl_buffer((8,)))": "'Buffer' object is not iterable",
    'list(tir.ir_builder.create().allocate("float32", (8,)))': "object is not iterable",
    "tir.Schedule(PROGRAM)[0]": 'as in sch["C"], not by 0',
    "list(tir.Schedule(PROGRAM))": "'Schedule' object is not iterable",
    "te.compute((8,), lambda i: None)": "legal: return the value of the element",
    "te.compute((8,), lambda i: A[i, 0] if A[i, 0] > 0 else A[i, 1])": "use T.if_then_else(cond, a, b)",
    "ops.add(A, te.placeholder((3,)))": "legal: equal extents or 1, aligned at the right",
    "ops.sum(A, axis=2)": "legal: from -2 to 1",
    "ops.sum(A, axis=1.0)": "axis is an integer, not 1.0",
    "ops.sum(A, axes=1)": "legal: sum(x, axis=None",
    "ops.reshape(A, (7,))": "(8, 16) has 128 elements, but (7,) has 7",
    "ops.exp(np.zeros(3))": "x is a tensor, not ndarray (3,) float64",
    "ops.nn.sofmax": "did you mean nn.softmax",
    "tir.Var(3)": "the name of a node Var is a string, not 3",
    'tir.IntImm("x")': "the value of a node IntImm is a number, not 'x'",
    "tir.Broadcast(tir.IntImm(0), None)": "the lanes of a node Broadcast is a number, not None",
    'tir.const("x")': "a constant of float32 is a number, not 'x'",
    "tir.Var('x', [])": "unknown data type '[]'",
    "tir.decl_buffer(None)": "the shape of buffer `buffer` is a tuple of extents, not None",
    "tir.decl_buffer((3,), strides=3)": "`strides` of decl_buffer is a list or None, not int: 3",
    'tir.decl_buffer((3,), axis_separators=["x"])': "is a list of which each is an integer or None, not list: ['x']",
    'tir.lower("x", passes=[])': "expected a PrimFunc or an IRModule, got str",
    "tir.lower(PROGRAM, insert=3)": "`insert` of inserted is a dict, not int: 3",
    "tir.transform.Sequential(3)": "`passes` of Sequential is a list of which each is a function, not int: 3",
    "tir.transform.PassContext(disabled_pass=[None])": "`disabled_pass` of PassContext is a list of which each is a string",
    "tir.IndexMap.from_func(3)": "`func` of from_func is a function, not int: 3",
    'tir.Schedule(PROGRAM).undo("x")': "`steps` of undo is an integer, not str: 'x'",
    'tir.tune(PROGRAM, trials="x")': "`trials` of tune is an integer or None, not str: 'x'",
    "te.var([1])": "the name of a variable is a string, not [1]",
    "te.compute((8,), lambda i: A[i, 0], attrs=3)": "the attributes of an operation are a dict, not 3",
    "te.compute((8,), lambda *i: A[i[0], 0], varargs_names=3)": "varargs_names of `compute` is a list of names, not 3",
    "te.compute((8,), lambda i: A[i, 0]).op.output('x')": "operation `compute` has no output 'x'",
    "te.compute((8,), lambda i: A[i, 0]).op.output(1)": "operation `compute` has no output 1",
    "te.comm_reducer(3, 3)": "`fcombine` of comm_reducer is a function, not int: 3",
    "te.decl_tensor_intrin(te.compute((8,), lambda i: A[i, 0]).op, print, name=3)": "`name` of decl_tensor_intrin is a string",
    "te.extern((8,), [A], print, out_buffers=3)": "an output buffer of `extern` is a buffer, not 3",
    "ops.meshgrid(3)": "a grid is made of tensors, not of 3",
    "ops.unravel_index(te.placeholder((5,), 'int32'), ())": "of one dimension at least, not of ()",
    "T.Shuffle([], [0])": "a shuffle is of one vector at least",
    "T.Ramp(0, 1, None)": "`lanes` of Ramp is an integer, not NoneType: None",
    "T.Call('float32', 3, [])": "`op` of Call is a string, not int: 3",
}


@pytest.mark.parametrize("call", CALLS)
def test_a_call(call):
    with pytest.raises((tir.TirError, AttributeError, TypeError, ValueError), match=re.escape(CALLS[call])):
        eval(call, globals())


ARGUMENTS = {
    "m(a)": "main takes 2 arguments (A, C), got 1",
    "m(a.T.copy(), c)": "argument 1 `A` of main: expected shape (8, 16), got (16, 8)",
    "m(a.ravel(), c)": "expected 2 dimensions (float32 array of shape (8, 16)), got 1",
    "m(a.astype('float64'), c)": "expected dtype float32, got float64; pass x.astype('float32') if it is only read",
    "m([[1.0]], c)": "argument 1 `A` of main must be an array, not list",
    "m(None, c)": "argument 1 `A` of main must be an array, not NoneType",
    "m(np.zeros((8, 32), 'float32')[:, ::2], c)": "pass np.ascontiguousarray(x) if it is only read",
    "m(A=a, D=c)": "main has no parameter `D`; it takes A, C",
    "m['mian'](a, c)": "no function 'mian' in the module; it has main",
    "m.source('cuda')": "no source 'cuda'; this module has tir, lowered",
}


@pytest.fixture(scope="module")
def built():
    return tir.build(PROGRAM)


@pytest.mark.parametrize("call", ARGUMENTS)
def test_arguments_of_a_module(call, built):
    given = {"m": built, "np": np, "a": np.zeros((8, 16), "float32"), "c": np.zeros(8, "float32")}
    with pytest.raises((tir.TirError, KeyError, ValueError), match=re.escape(ARGUMENTS[call])):
        eval(call, given)


KERNEL = '@T.prim_func\ndef main(A: T.Buffer((8,), "float32")):\n    '
TEXTS = {
    "for i in T.grdi(8):\n        A[i] = T.float32(0)": "the dialect has no T.grdi|did you mean `grid`?",
    "A[0] = Aa[0]": "undefined name `Aa`|did you mean `A`?",
    "A[0, 0] = T.float32(0)": "buffer `A` has 1 dimension (8), but is indexed with 2",
    "A[1.5] = T.float32(0)": "index 0 of `A` is a float, not an integer: `1.5`",
    "A[0] = T.exp(A[0], A[1])": "exp takes 1 argument, got 2",
    "A += 1": "buffer `A` is not a value; index it, as in A[0]",
    "A[0] = A.sum()": "a buffer has no attribute `sum`",
    "if A[0] > 1 and A[1]:\n        A[0] = T.float32(0)": "a condition must be bool or integer, not float32: `A[1]`",
    'for i in T.thread_binding(8, thread="threadIdx.w"):\n        A[i] = T.float32(0)': "'threadIdx.w' is not a thread axis; there are blockIdx.x",
    "for i in T.thread_binding(8):\n        A[i] = T.float32(0)": 'T.thread_binding needs its axis, as in thread="threadIdx.x"',
    'B = T.alloc_buffer((8,), "float32", scope="sharde")': "there is no storage scope 'sharde'|did you mean shared?",
    'B = T.alloc_buffer((8,), "flaot32")': "unknown data type 'flaot32'|did you mean float32",
    "B = T.alloc_buffer((-8,))": "has extent -8; an extent is at least 0",
}  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_a_text(text):
    with pytest.raises(tir.ParseError) as caught:
        parse(KERNEL + text)
    for words in TEXTS[text].split("|"):
        assert words in str(caught.value)
