"""What comes wrong from outside: models whose shapes do not go together, sizes of 0, arrays of other libraries, forks, interrupts."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from foreign_tensors import Foreign

import tir
from tir import ops, te
from tir.graph import Builder, ModelError, compile_graph
from tir.ops.registry import forget

FLOAT, CUDA = 2, 2  # a type code of DLPack, and a device of it


def sums(target="interpreter"):
    b = Builder()
    x = b.input("x", (2, 3))
    return compile_graph(b.graph({"y": b.call("add", x, b.constant(np.ones(3, "float32"), "one"))}), target)


X = np.arange(6, dtype="float32").reshape(2, 3)


@pytest.mark.parametrize(
    ("node", "size", "said"),
    [
        (("Add", "x c", "y"), (3,), "Add of y .*shapes .2, 2. and .3,. do not broadcast: axis 1"),
        (("MatMul", "x c", "y"), (3, 2), "MatMul of y .*.2, 2. and .* .3, 2. adds over 2 elements of one and 3 of the other"),
        (("Concat", "x c", "y", {"axis": 0}), (2, 3), r"Concat of y .*\(2, 2\) and .*\(2, 3\) differ beside axis 0"),
        (("Reshape", "x s", "y"), (), "Reshape of y .*.2, 2. has 4 elements, and .5. has 5"),
        (("Expand", "x s", "y"), (), r"Expand of y .*\(2, 2\).*\(5,\)|Expand of y .*broadcast"),
    ],
)  # fmt: skip
def test_shapes_that_do_not_go_together_are_named_with_the_node(node, size, said):
    pytest.importorskip("onnx", reason="the package onnx has no wheel for this Python")
    from onnx import TensorProto, helper, numpy_helper

    from tir.importers.onnx import from_onnx

    operator, inputs, output, *attributes = node
    held = {"c": np.ones(size, "float32"), "s": np.array([5], "int64")}
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", [2, 2]), ("y", None)))
    made = helper.make_node(operator, inputs.split(), [output], **(attributes[0] if attributes else {}))
    tensors = [numpy_helper.from_array(a, n) for n, a in held.items() if n in inputs.split()]
    with pytest.raises(ModelError, match=said):
        from_onnx(helper.make_model(helper.make_graph([made], "g", [x], [y], tensors)))


@pytest.mark.parametrize("target", ["llvm", "interpreter"])
def test_a_size_of_0_is_a_size(target):
    b = Builder()
    x = b.input("x", (0, 3))
    total = b.call("sum", b.call("exp", x), (0,))
    made = compile_graph(b.graph({"y": b.call("exp", x), "total": total}), target)(np.zeros((0, 3), "float32"))
    assert made[0].shape == (0, 3) and made[1].tolist() == [0, 0, 0]


@pytest.mark.parametrize("sizes", [(0, 4), (3, 0)])
def test_an_open_size_may_be_0(sizes):
    pytest.importorskip("onnx", reason="the package onnx has no wheel for this Python")
    from onnx import TensorProto, helper

    from tir.importers.onnx import from_onnx

    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", ["n", "m"]), ("y", None)))
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Transpose", ["x"], ["t"]),
        helper.make_node("MatMul", ["x", "t"], ["p"]),
        helper.make_node("Softmax", ["p"], ["f"]),
        helper.make_node("MatMul", ["f", "x"], ["g"]),
        helper.make_node("Reshape", ["g", "s"], ["y"], allowzero=1),
    ]
    model = helper.make_model(helper.make_graph(nodes, "g", [x], [y]))
    assert compile_graph(from_onnx(model, {"x": sizes}))(np.ones(sizes, "float32")).shape == sizes


@pytest.mark.parametrize(
    ("operator", "inputs", "decides"),
    [("NonZero", "x", "x"), ("Unique", "x", "x"), ("Compress", "x c", "c"), ("NonMaxSuppression", "b s n", "b")],
)
def test_a_result_whose_size_depends_on_elements_is_refused_with_the_reason(operator, inputs, decides):
    pytest.importorskip("onnx", reason="the package onnx has no wheel for this Python")
    from onnx import TensorProto, helper

    shapes = {"x": [4], "c": [4], "b": [1, 4, 4], "s": [1, 1, 4], "n": [1]}
    kinds = {"c": TensorProto.BOOL, "n": TensorProto.INT64}
    given = [helper.make_tensor_value_info(n, kinds.get(n, TensorProto.FLOAT), shapes[n]) for n in inputs.split()]
    result = helper.make_tensor_value_info("y", TensorProto.INT64, None)
    graph = helper.make_graph([helper.make_node(operator, inputs.split(), ["y"])], "g", given, [result])
    with pytest.raises(
        ModelError, match=f"{operator} of y +the size of its result depends on the elements of `{decides}`"
    ):
        tir.compile(helper.make_model(graph))


@pytest.fixture
def rootless():
    """An operator that LLVM has no code for."""

    @ops.operator(section="test", unstated="it is none", reference=np.sqrt, cases=[ops.case(ops.arg((2, 3)))])
    def rootless(x):
        """Calls an intrinsic of floats as one of integers."""
        element = lambda *i: tir.call_llvm_pure_intrin("float32", "llvm.sqrt.i32", tir.const(1, "uint32"), x(*i))  # noqa: E731
        return te.compute(x.shape, element, name="rootless")

    yield
    forget("rootless")


def test_a_kernel_that_cannot_be_built_is_named_with_its_nodes_and_its_program(rootless, monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    b = Builder()
    first = b.call("cumsum", b.input("x", (2, 3)), 0)
    (last,) = b.add("rootless", {"x": b.call("exp", first)}, name="Sqrt_7")
    with pytest.raises(tir.BuildError) as caught:
        compile_graph(b.graph({"y": b.call("cumsum", last, 1)}))
    text = str(caught.value)
    assert text.startswith(
        "kernel exp_rootless_over_0 cannot be built for llvm: LLVM does not accept the generated code: Intrinsic"
    )
    assert (
        "\n  %exp: float32[2, 3] = exp(x=%cumsum)\n  %rootless: float32[2, 3] = rootless(x=%exp), Sqrt_7 of the model\n"
        in text
    )
    (file,) = tmp_path.glob("*/*.py")
    assert text.endswith(f"its program is in {file}") and file.name == "exp_rootless_over_0.py"
    with pytest.raises(tir.BuildError, match="incorrect argument type"):
        tir.build(tir.script.parse(file.read_text("utf-8")))


def test_a_kernel_that_cannot_be_scheduled_is_named(monkeypatch, tmp_path):
    def failing(*_):
        raise KeyError

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("tir.graph.kernels.default", failing)
    with pytest.raises(tir.BuildError, match="kernel add cannot be built for interpreter: KeyError\n  %add"):
        sums()


def test_what_no_kernel_alone_is_at_fault_for_is_raised_as_it_is(monkeypatch):
    build, fault = tir.build, tir.BuildError("the module is too large")

    def failing(mod, target):
        if len(mod) > 1:
            raise fault
        return build(mod, target)

    monkeypatch.setattr("tir.graph.building.build", failing)
    with pytest.raises(tir.BuildError) as caught:
        sums()
    assert caught.value is fault


@pytest.mark.parametrize("target", ["llvm", "interpreter"])
def test_arrays_of_any_place_and_order_are_taken(target):
    memory = np.zeros(X.nbytes + 1, "uint8")
    crooked = memory[1:].view("float32").reshape(2, 3)
    crooked[...] = X
    read_only = X.copy()
    read_only.flags.writeable = False
    model = sums(target)
    for x in (crooked, read_only, np.asfortranarray(X), X[::-1][::-1], Foreign(X, FLOAT)):
        assert model(x).tolist() == (X + 1).tolist()
    b = Builder()
    scalar = compile_graph(b.graph({"y": b.call("exp", b.input("x", ()))}), target)
    assert scalar(np.float32(0)) == scalar(0.0) == scalar(np.array(0, "float32")) == 1


def test_a_tensor_on_a_gpu_is_refused_with_the_way_out():
    with pytest.raises(tir.RunError, match=r"input x: float32.2, 3.: .*(cuda|GPU|device)"):
        sums()(Foreign(X, FLOAT, CUDA))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("target", ["llvm", "interpreter"])
def test_a_model_runs_in_a_fork(target):
    model = sums(target)
    model(X)
    child = os.fork()
    if not child:
        os._exit(0 if model(X).tolist() == (X + 1).tolist() else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize(("interrupted", "name"), [(1, "weights.bin"), (2, "model.o")])
def test_an_interrupt_leaves_the_file_that_was_there(interrupted, name, monkeypatch, tmp_path):
    model, write, written = sums("llvm"), Path.write_bytes, []
    for each in ("weights.bin", "model.o"):
        (tmp_path / each).write_bytes(b"before")

    def stopped(self, content):
        written.append(self)
        write(self, bytes(content)[:9] if len(written) == interrupted else content)
        if len(written) == interrupted:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Path, "write_bytes", stopped)
        model.save(tmp_path / "model.o", weights=tmp_path / "weights.bin")
    assert (tmp_path / name).read_bytes() == b"before"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model.o", "weights.bin"]


def test_an_interrupt_leaves_nothing_in_the_cache(monkeypatch, tmp_path):
    from codegen import disk

    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", stopped)
    with pytest.raises(KeyboardInterrupt):
        disk.write(tmp_path / "kernel.o", b"code")
    assert list(tmp_path.iterdir()) == []


def test_loops_in_loops_are_not_written_out_without_end(monkeypatch):
    monkeypatch.setattr("tir.importers.onnx.MOST_WRITTEN", 300)
    pytest.importorskip("onnx", reason="the package onnx has no wheel for this Python")
    from onnx import TensorProto, helper, numpy_helper

    from tir.importers.onnx import from_onnx

    def tensor(name, kind=TensorProto.FLOAT):
        return helper.make_tensor_value_info(name, kind, [])

    def loop(depth):
        node = helper.make_node("Exp", ["s"], ["t"])
        if depth:
            node = helper.make_node("Loop", ["m", "", "s"], ["t"], body=loop(depth - 1))
        going = helper.make_node("Identity", ["go"], ["gone"])
        inputs = [tensor("n", TensorProto.INT64), tensor("go", TensorProto.BOOL), tensor("s")]
        return helper.make_graph([node, going], "b", inputs, [tensor("gone", TensorProto.BOOL), tensor("t")])

    outer = helper.make_node("Loop", ["m", "", "x"], ["y"], body=loop(2))
    many = numpy_helper.from_array(np.array(1000, "int64"), "m")
    graph = helper.make_graph([outer], "g", [tensor("x")], [tensor("y")], [many])
    with pytest.raises(ModelError, match="more than 300 nodes, when written out"):
        from_onnx(helper.make_model(graph))


# ---------------------------------------------------------------- what is no model


def test_what_is_no_model_is_refused_with_what_would_be():
    module = type(
        "Net", (type("Module", (), {"__module__": "torch.nn.modules.module", "__call__": lambda self: None}),), {}
    )()
    with pytest.raises(TypeError, match=r"got Net; export it by torch.export.export"):
        tir.compile(module)
    with pytest.raises(TypeError, match=r"got NoneType; a model is a Graph, an ONNX file"):
        tir.compile(None)


@pytest.mark.parametrize(
    "take", [tir.graph.compile_graph, tir.graph.groups, tir.graph.optimized, lambda x: tir.graph.quantize(x, "int8")]
)
def test_a_function_is_no_graph(take):
    with pytest.raises(TypeError, match="`graph` of .* is a Graph, not PrimFunc"):
        take(tir.library.elementwise.scale_add(2))


def test_the_text_of_a_graph_is_a_string():
    with pytest.raises(TypeError, match="`text` of parse is a string, not Graph"):
        tir.graph.parse(tir.graph.Builder().graph({}))
