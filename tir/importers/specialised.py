"""ONNX models of which inputs act as attributes: compiled at the first call, for the values that it gives, and kept."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import ModelError
from ..graph import CompiledModel, compile_graph
from ..graph.arrays import input_array
from ..graph.model_calls import Parameter, give_back, inputs_in_order
from .kept_files import file_key, find_file, keep_file
from .onnx import from_onnx, parameters, read_model

KEPT = 8  # models for the last values


def compile_onnx(model: Any, target: Any, plain: str | None = None) -> CompiledModel | SpecialisedModel:
    """An ONNX model compiled: now, or at its first call, if inputs act as attributes. It is kept under ``plain``, too, where it can be. Raises as :func:`tir.importers.onnx.from_onnx`
    for all that is wrong otherwise, and as :func:`tir.graph.compile_graph`."""
    key = file_key(model, target)
    keys = [] if key is None else [key] if plain is None else [key, plain]
    found = None if key is None else find_file(key, target)
    if found is not None:
        keep_file(keys, found)
        return found
    elsewhere: list[str] = []  # tensors whose data is in other files
    read = read_model(model, elsewhere)
    try:
        graph = from_onnx(read)
    except ModelError as error:
        if not error.needs:
            raise
        return SpecialisedModel(read, error.needs, target)
    del read  # its tensors are in the graph
    made = compile_graph(graph, target)
    if not elsewhere:
        keep_file(keys, made)
    del graph
    give_back()  # what the file was read into
    return made


class SpecialisedModel:
    """A model that is compiled for the values of some of its ``inputs`` (axes, a shape, the ``k`` of ``TopK``) when a call gives them.

    Calls are those of a compiled model. The last eight are kept; ``specialised`` says for which values.

    >>> import numpy as np
    >>> import tir
    >>> from onnx import TensorProto, helper
    >>> x, axes = (helper.make_tensor_value_info(*a) for a in (("x", TensorProto.FLOAT, [2, 3]), ("axes", TensorProto.INT64, [1])))
    >>> y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    >>> total = helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)
    >>> model = tir.compile(helper.make_model(helper.make_graph([total], "g", [x, axes], [y])), "interpreter")
    >>> model(np.ones((2, 3), "float32"), np.array([1]))
    array([3., 3.], dtype=float32)
    >>> model.specialised
    ({'axes': [1]},)
    """

    def __init__(self, read: Any, needs: Sequence[str], target: Any):
        self.inputs = tuple(Parameter(name, shape, dtype) for name, shape, dtype in parameters(read))
        self._read = read
        self._needs = list(needs)
        self._target = target
        self._models: OrderedDict[Any, tuple[dict[str, Any], CompiledModel]] = OrderedDict()
        self._turns: dict[Any, threading.Lock] = {}  # of values that a thread compiles for
        self._lock = threading.Lock()

    @property
    def specialised(self) -> tuple[dict[str, Any], ...]:
        """The values by input of each model that is kept, that of the last call last."""
        with self._lock:
            return tuple(
                {name: value.tolist() for name, value in values.items()} for values, _ in self._models.values()
            )

    def __call__(self, /, *args: Any, out: Any = None, **named: Any) -> Any:
        """Run it, as :meth:`tir.graph.Model.__call__` does, and raise as it and as :func:`tir.importers.onnx.from_onnx` do."""
        given = self._given(args, named)
        model = self._of(given)
        return model(*(given[p.name] for p in model.inputs), out=out)

    def model(self, /, *args: Any, **named: Any) -> CompiledModel:
        """The compiled model that a call with these inputs runs: to be saved, or profiled."""
        return self._of(self._given(args, named))

    def _given(self, args: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        return dict(zip((p.name for p in self.inputs), inputs_in_order(self.inputs, args, named)))

    def _of(self, given: Mapping[str, Any]) -> CompiledModel:
        while True:
            needs = tuple(self._needs)
            values = {p.name: input_array(p, given[p.name]) for p in self.inputs if p.name in needs}
            key = tuple(value.tobytes() for value in values.values())
            with self._lock:
                turn = self._turns.setdefault(key, threading.Lock())
            with turn:  # other values are compiled at once
                try:
                    made = self._kept(key) or self._compiled(values)
                    self._keep(key, values, made)
                    return made
                except ModelError as error:
                    more = [name for name in error.needs if name not in values]
                    if not more:
                        raise
                    with self._lock:
                        self._needs += [n for n in more if n not in self._needs]  # read only after the first are known
                finally:
                    with self._lock:
                        self._turns.pop(key, None)

    def _compiled(self, values: Mapping[str, Any]) -> CompiledModel:
        return compile_graph(from_onnx(self._read, values=values), self._target)

    def _kept(self, key: Any) -> CompiledModel | None:
        with self._lock:
            return self._models[key][1] if key in self._models else None

    def _keep(self, key: Any, values: Mapping[str, Any], made: CompiledModel) -> None:
        """Keep a model as the last that was called, in the place of the one that was not called for longest."""
        with self._lock:
            self._models[key] = {name: np.array(value) for name, value in values.items()}, made
            self._models.move_to_end(key)
            while len(self._models) > KEPT:
                self._models.popitem(last=False)

    def __repr__(self) -> str:
        takes = ", ".join(map(str, self.inputs))
        return f"{type(self).__name__}({takes}; compiled for each value of {', '.join(self._needs)})"
