"""What else TVM's users call by name, so that their scripts run with ``import tir as tvm``.

``tvm.tir`` is this package; ``tvm.nd``, ``tvm.cpu`` … hold arrays; ``tvm.ir``, ``tvm.tir.stmt_functor`` and
``tvm.compile`` are rooms of ours under the names of theirs. Nothing here is needed to write new programs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from .buffer import Range
from .collecting import seldom_collected
from .equal import assert_structural_equal, structural_equal, structural_hash
from .expr import StringImm, as_expr
from .function import IRModule
from .intrin_rules import register_intrin_lowering, register_op_attr
from .visit import rewrite, substitute, walk


@dataclass(frozen=True)
class Device:
    """A place for arrays: ``kind`` is cpu or cuda.

    >>> from tir.compat import cpu
    >>> cpu(0)
    cpu:0
    """

    kind: str
    index: int = 0

    @property
    def exist(self) -> bool:
        """Whether this machine has it."""
        if self.kind == "cpu":
            return True
        from codegen.cuda.driver import has_device

        return has_device()

    def sync(self) -> None:
        """Wait until everything enqueued on the device is done."""
        if self.kind == "cuda":
            from codegen.cuda.driver import driver

            driver(self.index).synchronize()

    def __repr__(self) -> str:
        return f"{self.kind}:{self.index}"


class NDArray(np.ndarray):
    """A NumPy array on the CPU that answers to the methods of TVM's: ``numpy``, ``asnumpy``, ``copyfrom``, ``copyto``."""

    @property
    def device(self) -> Any:
        return Device("cpu")

    def numpy(self) -> np.ndarray:
        return np.array(self)

    asnumpy = numpy

    def copyfrom(self, source: Any) -> NDArray:
        self[...] = source
        return self

    def copyto(self, target: Any) -> Any:
        target[...] = self
        return target


def cpu(index: int = 0) -> Device:
    """The CPU, where programs written for TVM say on which device they are.

    >>> import tir
    >>> tir.cpu(0), tir.cpu().exist
    (cpu:0, True)
    """
    return Device("cpu", index)


def cuda(index: int = 0) -> Device:
    """GPU number ``index``, where programs written for TVM say on which device they are.

    >>> import tir
    >>> tir.cuda(1)
    cuda:1
    """
    return Device("cuda", index)


def device(kind: str, index: int = 0) -> Device:
    """``device("cuda", 1)``, ``device("cuda:1")`` or ``device("llvm")``. Raises ``ValueError`` for another kind.

    >>> import tir
    >>> tir.device("cuda:1"), tir.device("cpu", 0)
    (cuda:1, cpu:0)
    """
    name, _, number = kind.partition(":")
    name = {"llvm": "cpu", "gpu": "cuda"}.get(name, name)
    if name not in ("cpu", "cuda"):
        raise ValueError(f"no device {kind!r}; there are cpu and cuda")
    return Device(name, int(number) if number else index)


def array(value: Any, device: Device | None = None) -> Any:
    """A copy of ``value`` on ``device`` (default: the CPU), which a module built for it takes as an argument. It begins at a
    multiple of 64 bytes, as ``align=64`` of a parameter requires.

    Raises ``RunError`` where there is no such device, ``TypeError`` for what is no array of numbers.

    >>> from tir.compat import array
    >>> array([1.0, 2.0]).numpy()
    array([1., 2.])
    """
    from .interp.named_arguments import aligned_zeros

    if device is not None and not isinstance(device, Device):
        raise TypeError(f"a device is what tir.cpu(), tir.cuda() and tir.device(...) make, not {device!r}")
    host = np.array(value, order="C")
    if host.dtype.kind in "OSUMm":
        raise TypeError(f"an array is made of numbers, not of {type(value).__name__}: {value!r:.60}")
    if device is not None and device.kind == "cuda":
        from codegen.cuda.device_arrays import DeviceArray
        from codegen.cuda.driver import driver

        return DeviceArray.of(host, driver(device.index))
    made = aligned_zeros(host.shape, host.dtype)
    made[...] = host
    return made.view(NDArray)


def empty(shape: Any, dtype: str = "float32", device: Device | None = None) -> Any:
    """An array of zeros, as ``array`` makes them."""
    return array(np.zeros(shape, dtype), device)


@seldom_collected
def compile(mod: Any, target: Any = "llvm") -> Any:
    """A function or a module of functions: ``tir.build`` under its newer name. A model: :func:`tir.graph.compile_graph`.

    A model is a ``tir.graph.Graph``, the path of an ONNX file, its bytes, a ``ModelProto``, or an ``ExportedProgram`` of
    torch. Of an ONNX model whose inputs act as attributes (axes, a shape) a call makes a model for their values: see
    :class:`tir.importers.specialised.SpecialisedModel`. Raises as these do.

    >>> import numpy as np
    >>> import tir
    >>> tir.compile(tir.library.elementwise.scale_add(2), "interpreter").new(np.array([1, 2], "float32"))
    array([4., 7.], dtype=float32)
    >>> b = tir.graph.Builder()
    >>> tir.compile(b.graph({"y": b.call("exp", b.input("x", (2,)))}), "interpreter")(np.zeros(2, "float32"))
    array([1., 1.], dtype=float32)
    """
    if _is_onnx(mod):
        from .importers.kept_files import compiled

        return compiled(mod, target)
    from codegen.build import build

    graph = graph_of(mod)
    if graph is not None:
        from .graph import compile_graph

        return compile_graph(graph, target)
    try:
        program = IRModule.of(mod)
    except TypeError as error:
        torch = any(c.__module__.startswith("torch.nn.") for c in type(mod).__mro__)
        way = (
            "export it by torch.export.export(model, inputs)"
            if torch
            else "a model is a Graph, an ONNX file, or an ExportedProgram"
        )
        raise TypeError(f"{str(error).partition(';')[0] if torch else error}; {way}") from None
    return build(program, target)


def graph_of(model: Any) -> Any:
    """The graph of a model, as :func:`compile` takes it; None for what is none. Raises ``ModelError`` as the importers do."""
    if _is_onnx(model):
        from .importers.onnx import from_onnx

        return from_onnx(model)
    if type(model).__name__ == "ExportedProgram":
        from .importers.torch import from_exported

        return from_exported(model)
    made = sys.modules.get("tir.graph.graph")  # of which a graph is
    return model if made is not None and isinstance(model, made.Graph) else None


def _is_onnx(model: Any) -> bool:
    return isinstance(model, (str, bytes, bytearray, os.PathLike)) or type(model).__name__ == "ModelProto"


def post_order_visit(root: Any, fn: Callable[[Any], None]) -> None:
    """``fn`` on every node under ``root``, once each, children first."""
    rewrite(root, lambda node: fn(node) and None)


def pre_order_visit(root: Any, fn: Callable[[Any], bool | None]) -> None:
    """``fn`` on every node under ``root``, parents first; where it returns False, not on what is below."""
    for _ in walk(root, lambda node: fn(node) is not False):
        pass


def ir_transform(root: Any, preorder: Any, postorder: Any, only_enable: Any = None) -> Any:
    """``root`` rewritten: ``preorder(node)`` may replace a node whole, ``postorder(node)`` after its children were.

    ``only_enable`` names the classes they are asked about, as in ``["tir.For"]``.
    """
    names = None if only_enable is None else {name.rpartition(".")[2] for name in only_enable}

    def visit(node: Any) -> Any:
        asked = names is None or type(node).__name__ in names
        replaced = preorder(node) if asked and preorder is not None else None
        if replaced is not None:
            return replaced
        inner = node.map_children(visit) if hasattr(node, "map_children") else node
        changed = postorder(inner) if asked and postorder is not None else None
        return inner if changed is None else changed

    return visit(root)


ir = SimpleNamespace(
    IRModule=IRModule,
    Range=Range,
    assert_structural_equal=assert_structural_equal,
    structural_equal=structural_equal,
    structural_hash=structural_hash,
    register_op_attr=register_op_attr,
    register_intrin_lowering=register_intrin_lowering,
)
CallEffectKind = SimpleNamespace(
    ExprAnnotation="pure", Pure="pure", ReadState="read", UpdateState="opaque", Opaque="opaque"
)  # words of tir.op
ForKind = SimpleNamespace(
    SERIAL="serial", PARALLEL="parallel", VECTORIZED="vectorized", UNROLLED="unrolled", THREAD_BINDING="thread_binding"
)  # words of tir.For
nd = SimpleNamespace(array=array, empty=empty, NDArray=NDArray, cpu=cpu, cuda=cuda, device=device)


def load_module(path: str) -> Any:
    """``tir.load``, under TVM's name."""
    from .saved import load

    return load(path)


def comm_reducer(fcombine: Any, fidentity: Any, name: str = "reduce") -> Any:
    """A reducer: ``te.comm_reducer`` of a function that gives the identity, ``T.comm_reducer`` of identity elements.

    >>> import tir
    >>> tir.comm_reducer(lambda x, y: x * y, lambda dtype: tir.const(1, dtype), name="mul")
    te.mul
    """
    from .script.tir_expr import comm_reducer as of_elements
    from .te import comm_reducer as of_function

    return of_function(fcombine, fidentity, name) if callable(fidentity) else of_elements(fcombine, fidentity)


def convert(value: Any) -> Any:
    """A value of Python as a node: a number or an expression, a string; lists and tuples of them as tuples.

    >>> import tir
    >>> tir.convert([1, 2.5, "a"])
    (1, T.float32(2.5), "a")
    """
    if isinstance(value, (list, tuple)):
        return tuple(map(convert, value))
    return StringImm(value) if isinstance(value, str) else as_expr(value)


runtime = SimpleNamespace(**vars(nd), tensor=array, load_module=load_module, convert=convert)
stmt_functor = SimpleNamespace(
    post_order_visit=post_order_visit, pre_order_visit=pre_order_visit, ir_transform=ir_transform, substitute=substitute
)
