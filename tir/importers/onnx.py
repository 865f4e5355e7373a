"""ONNX models as graphs: :func:`from_onnx`. Needs the package ``onnx`` (``pip install tensorir[onnx]``)."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

from ..checked import checked
from ..dtype import DType
from ..errors import ModelError
from ..extension import optional
from ..graph import Builder, Graph, Value
from ..graph.sizes import Extent, parsed
from ..names import did_you_mean
from ..ops.promotion import wide
from . import onnx_functions, onnx_table
from .making import FAULTS, NO_ROW, Fault, Faults, Making, Unknown, Unsupported, reason
from .onnx_table import Call, Items, Made

MOST_WRITTEN = 1 << 14  # nodes of definitions, and of the steps of loops, in one model


@checked
def from_onnx(
    model: Any, shapes: Mapping[str, Sequence[int | str]] | None = None, values: Mapping[str, Any] | None = None
) -> Graph:
    """The graph of an ONNX model: the path of a file, its bytes, or a ``ModelProto``. Opset 6 or later.

    Sizes to which the model gives a name stay symbolic (:class:`tir.graph.sizes.Size`), unless ``shapes`` gives the shape of their inputs: numbers, or other names. ``values`` are inputs that become constants, which
    those must that act as attributes (axes, a shape, the ``k`` of ``TopK``) and are given only when the model runs. Tensors of sizes (``Shape``, ``Gather``,
    ``Concat``, ``Slice``, arithmetic) are computed here. Functions of the model are inlined.

    Raises ``ModelError`` for what is no model, for a model that breaks a rule of ONNX, for an open size, and, with a row
    for each operator and reason, for everything that cannot be imported; ``ImportError`` without the package ``onnx``.

    >>> from onnx import TensorProto, helper
    >>> x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", 3]) for n in "xy")
    >>> model = helper.make_model(helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y]))
    >>> print(from_onnx(model, shapes={"x": (2, 3)}))
    graph(%x: float32[2, 3])
      %relu: float32[2, 3] = nn.relu(x=%x)
      return y=%relu
    >>> print(from_onnx(model))
    graph(%x: float32[n, 3])
      %relu: float32[n, 3] = nn.relu(x=%x)
      return y=%relu
    """
    read = read_model(model)
    return _Import(read, dict(shapes or {}), dict(values or {}), _package()).graph()


@checked
def operators(model: Any, shapes: Mapping[str, Sequence[int | str]] | None = None) -> tuple[Fault, ...]:
    """The operators of an ONNX model: operator, version, count, the first node, and why these nodes cannot be imported, an
    empty text if they can. Sizes that ``shapes`` leaves open count as 1. Raises as :func:`from_onnx`, but for operators.

    >>> from onnx import TensorProto, helper
    >>> x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [3]) for n in "xy")
    >>> operators(helper.make_model(helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])))
    (('Relu', '14', 1, 'Relu of y', ''),)
    """
    read = read_model(model)
    known = {name: [1 if isinstance(s, str) else s for s in sizes] for name, sizes in open_inputs(read).items()}
    return _Import(read, {**known, **(shapes or {})}, {}, _package()).operators()


def open_inputs(model: Any) -> dict[str, list[int | str]]:
    """The inputs of a ``ModelProto`` whose sizes it leaves open: their sizes, the names of the open ones as texts."""
    constants = {tensor.name for tensor in model.graph.initializer}
    found = {i.name: _sizes(i.type.tensor_type) for i in model.graph.input if i.name not in constants}
    return {name: sizes for name, sizes in found.items() if any(isinstance(s, str) for s in sizes)}


def parameters(model: Any) -> list[tuple[str, tuple[Extent, ...], DType]]:
    """Name, shape and type of each input of a ``ModelProto`` that can be imported, and whose sizes are all given or named."""
    constants = {tensor.name for tensor in model.graph.initializer}
    given = [(i.name, i.type.tensor_type) for i in model.graph.input if i.name not in constants]
    shapes = [tuple(parsed(s) if isinstance(s, str) else s for s in _sizes(about)) for _, about in given]
    return [(n, shape, onnx_table.dtype_of(about.elem_type)) for (n, about), shape in zip(given, shapes)]


def _sizes(about: Any) -> list[int | str]:
    return [d.dim_value if d.HasField("dim_value") else d.dim_param or "?" for d in about.shape.dim]


def _package() -> Any:
    optional("onnx.inliner", "models are read by the package onnx", "onnx")
    import onnx

    return onnx


def read_model(model: Any, elsewhere: list[str] | None = None) -> Any:
    """The ``ModelProto`` of what :func:`from_onnx` takes, with the data of its tensors, and functions inlined; ``elsewhere`` gets the names of the
    tensors whose data was in other files. Raises as it does."""
    onnx = _package()
    read = _read(model, onnx, [] if elsewhere is None else elsewhere)
    _require_text(read.graph)
    return onnx.inliner.inline_local_functions(read) if len(read.functions) else read


def _read(model: Any, onnx: Any, elsewhere: list[str]) -> Any:
    if isinstance(model, onnx.ModelProto):
        read, what = model, "the model"
    elif isinstance(model, (bytes, bytearray, memoryview)):
        read, what = _parsed(bytes(model), "the bytes are", onnx), "the model"
    elif isinstance(model, (str, os.PathLike)):
        path = os.fspath(model)
        try:
            with open(path, "rb") as file:
                content = file.read()
        except OSError as error:
            raise ModelError(f"{path}: {error.strerror or error}") from error
        read, what = _parsed(content, f"{path} is", onnx), path
        elsewhere += [t.name for t in _tensors(read) if t.data_location == onnx.TensorProto.EXTERNAL]
        try:
            onnx.load_external_data_for_model(read, os.path.dirname(os.path.abspath(path)))
        except (OSError, ValueError, onnx.checker.ValidationError) as error:
            raise ModelError(f"{path}: its external data cannot be read: {error}") from error
    else:
        raise ModelError(f"a model is the path of a file, its bytes, or an onnx.ModelProto, not {type(model).__name__}")
    if not read.HasField("graph") or not read.opset_import:
        missing = "versions of operators" if read.HasField("graph") else "graph"
        raise ModelError(f"{what} has no {missing}: it is no ONNX model")
    return read


def _tensors(part: Any) -> Iterator[Any]:
    """The tensors of a ``ModelProto``, or of a part of one: initializers, and attributes."""
    for about, value in part.ListFields():
        if about.message_type is not None:
            for one in value if isinstance(value, Sequence) else [value]:
                yield from [one] if about.message_type.name == "TensorProto" else _tensors(one)


def _require_text(graph: Any) -> None:
    """Raise ``ModelError`` for a name that is no text: protobuf gives it as bytes."""
    texts = [text for node in graph.node for text in (node.op_type, node.domain, node.name, *node.input, *node.output)]
    texts += [attribute.name for node in graph.node for attribute in node.attribute]
    texts += [each.name for each in (*graph.initializer, *graph.input, *graph.output)]
    if wrong := [text for text in texts if not isinstance(text, str)]:
        raise ModelError(f"the model has the name {wrong[0]!r}, which is no text in UTF-8")


def _parsed(content: bytes, what: str, onnx: Any) -> Any:
    read = onnx.ModelProto()
    try:
        read.ParseFromString(content)
    except Exception as error:  # DecodeError of protobuf, whose class differs between its versions
        raise ModelError(f"{what} no ONNX model: protobuf cannot read it") from error
    return read


class _Import:
    """One import: values by their names in the model; None is what a node that failed would have made."""

    def __init__(self, model: Any, shapes: dict[str, Sequence[int | str]], given: dict[str, Any], onnx: Any):
        self.onnx = onnx
        self.source = model.graph
        self.versions = _versions(model)
        self.builder = Builder()
        self.values: dict[str, Made] = {}
        self.faults = Faults()
        self.written = 0  # nodes of definitions and of steps of loops
        self.shapes = shapes
        self.given = given

    def graph(self) -> Graph:
        """The graph. Raises ``ModelError``."""
        self._import()
        outputs = {}
        for output in self.source.output:
            if output.name not in self.values:
                raise ModelError(f"output {output.name!r} is made by no node{did_you_mean(output.name, self.values)}")
            if output.name in outputs:
                raise ModelError(f"output {output.name!r} is there twice; results are known by their names")
            outputs[output.name] = self.values[output.name]
        if self.faults:
            raise self.faults.error()
        if not outputs:
            raise ModelError("the model has no outputs")
        if sequences := [name for name, value in outputs.items() if isinstance(value, Items)]:
            raise ModelError(f"output {sequences[0]!r} is a sequence; results are tensors")
        return self.builder.graph({name: value for name, value in outputs.items() if isinstance(value, Value)})

    def operators(self) -> tuple[Fault, ...]:
        """A row for each operator, and for each reason why nodes of it cannot be imported."""
        self._import()
        good: dict[tuple[str, str], list[str]] = {}
        faulty = self.faults.titles()
        for node in self.source.node:
            if _title(node) not in faulty:
                good.setdefault(self._operator(node), []).append(_title(node))
        rows = [(*operator, len(nodes), nodes[0], "") for operator, nodes in good.items()]
        return (*self.faults.rows(), *sorted(rows, key=lambda r: (-r[2], r[0])))

    def _import(self) -> None:
        self._constants()
        self._inputs()
        for node in self._in_order():
            self._node(node)

    def _define(self, name: str, value: Made, where: str) -> None:
        if name in self.values:
            raise ModelError(f"value {name!r} has two definitions; the second is {where}")
        self.values[name] = value

    def _constants(self) -> None:
        for tensor in self.source.initializer:
            if not tensor.name:
                raise ModelError("there is an initializer without a name")
            self._define(tensor.name, self.builder.constant(self._array(tensor), tensor.name), "an initializer")
        for sparse in self.source.sparse_initializer:
            name = sparse.values.name
            self._define(name, self.builder.constant(self._dense(sparse), name), "a sparse initializer")

    def _array(self, tensor: Any) -> np.ndarray:
        if tensor.data_location == self.onnx.TensorProto.EXTERNAL:
            raise ModelError(f"initializer {tensor.name!r} has its data in another file; give the path of the model")
        try:
            return self.onnx.numpy_helper.to_array(tensor)
        except (ValueError, TypeError, KeyError) as error:
            raise ModelError(f"the data of tensor {tensor.name!r} cannot be read: {error}") from error

    def _dense(self, sparse: Any) -> np.ndarray:
        """A sparse tensor with its zeros: the places of its values are numbers in the flat tensor, or rows of one number for each axis."""
        values, places, shape = self._array(sparse.values), self._array(sparse.indices), tuple(sparse.dims)
        Making(self.builder, sparse.values.name).room(*shape)
        try:
            flat = np.ravel_multi_index(tuple(places.T), shape) if places.ndim == 2 else places
            made = np.zeros(math.prod(shape), values.dtype)
            made[flat] = values
        except (ValueError, IndexError) as error:
            raise ModelError(f"sparse tensor {sparse.values.name!r} of shape {list(shape)}: {error}") from error
        return made.reshape(shape)

    def _inputs(self) -> None:
        names = [i.name for i in self.source.input if i.name not in self.values]
        for what, known in (("shapes", self.shapes), ("values", self.given)):
            if unknown := [n for n in known if n not in names]:
                raise ModelError(f"{what} names {unknown[0]!r}, which is no input{did_you_mean(unknown[0], names)}")
        for given in self.source.input:
            if given.name in self.given:
                self._define(given.name, self._given(given), "an input")
            elif given.name in names:
                self._define(given.name, self._input(given), "an input")

    def _given(self, about: Any) -> Value:
        """An input that becomes a constant."""
        array, wanted = np.asarray(self.given[about.name]), about.type.tensor_type
        sizes: list[Any] = [d.dim_value if d.HasField("dim_value") else None for d in wanted.shape.dim]
        fits = len(sizes) == array.ndim and all(s in (None, n) for s, n in zip(sizes, array.shape))
        if str(array.dtype) != str(onnx_table.dtype_of(wanted.elem_type)) or (wanted.HasField("shape") and not fits):
            raise ModelError(
                f"values gives {array.dtype}{list(array.shape)} for input {about.name!r}, which is {about.type}"
            )
        return self.builder.constant(array, about.name)

    def _input(self, given: Any) -> Value:
        if not given.type.HasField("tensor_type"):
            kind = (given.type.WhichOneof("value") or "nothing").removesuffix("_type")
            raise ModelError(f"input {given.name!r} is no tensor: it is of kind {kind}")
        about = given.type.tensor_type
        sizes: list[Any] = _sizes(about)
        if not about.HasField("shape") and given.name not in self.shapes:
            raise ModelError(f"input {given.name!r} has no shape; give one, as shapes={{{given.name!r}: (1, 3)}}")
        wanted = self.shapes.get(given.name)
        if wanted is not None:
            same = not about.HasField("shape") or (
                len(wanted) == len(sizes) and all(isinstance(s, str) or s == w for s, w in zip(sizes, wanted))
            )
            if not same:
                raise ModelError(
                    f"shapes gives {list(wanted)} for input {given.name!r}, which the model says is {sizes}"
                )
            sizes = list(wanted)
        if "?" in sizes:
            raise ModelError(
                f"input {given.name!r} has shape {sizes}: give its sizes, or names for them, as shapes={{{given.name!r}: (…)}}"
            )
        try:
            return self.builder.input(given.name, sizes, onnx_table.dtype_of(about.elem_type))
        except Unsupported as error:
            raise ModelError(f"input {given.name!r}: {error}") from error

    def _in_order(self) -> Iterable[Any]:
        """The nodes; each reads what is defined before it."""
        made = {name for node in self.source.node for name in node.output if name}
        for node in self.source.node:
            for name in node.input:
                if name and name not in self.values:
                    is_later = name in made
                    why = "that a later node makes: there is a cycle, or the nodes are not in order"
                    why = why if is_later else f"that nothing makes{did_you_mean(name, self.values)}"
                    raise ModelError(f"node {_title(node)} reads {name!r}, {why}")
            yield node

    def _node(self, node: Any) -> None:
        inputs = [self.values[name] if name else None for name in node.input]
        given = list(node.output)
        while given and not given[-1]:
            given.pop()
        made: Sequence[Made] = [None] * len(given)
        if all(value is not None for value, name in zip(inputs, node.input) if name):
            try:
                made = self._made(node, inputs, given, _Scope(self.versions, self.values))
            except FAULTS as error:
                self._fault(node, error)
        elif not self._is_known(node):
            self._fault(node, Unsupported(NO_ROW))
        for name, value in zip(given, made):
            if name:
                self._define(name, value, f"made by node {_title(node)}")

    def _is_known(self, node: Any) -> bool:
        """Whether nodes like this are imported for some inputs: those of this one are not known."""
        domain = _domain(node)
        return bool(onnx_table.rows(node.op_type, domain)) or onnx_functions.is_defined(
            self.onnx, node, self.versions.get(domain, 0), domain
        )

    def _made(self, node: Any, inputs: Sequence[Made], outputs: Sequence[str], scope: _Scope) -> Sequence[Made]:
        """What a node makes: by its row, or by its definition in terms of other operators."""
        domain = _domain(node)
        opset = scope.versions.get(domain, 0)
        if not onnx_table.rows(node.op_type, domain):
            made = self._defined(node, opset, inputs, outputs, scope)
            if made is not None:
                return made
        self._require_signature(node, opset)
        attributes = {a.name: self._attribute(a, scope) for a in node.attribute}
        call = Call(self.builder, node.op_type, self._version(node, opset), inputs, attributes, outputs)
        return onnx_table.imported(call, domain)

    def _defined(
        self, node: Any, opset: int, inputs: Sequence[Made], outputs: Sequence[str], scope: _Scope
    ) -> Sequence[Made] | None:
        """What the definition of an operator makes, if it has one: of floats of 16 bits in float32, and rounded at the end,
        where the types of all results are those of inputs."""
        of_inputs, of_outputs = onnx_functions.type_names(self.onnx, node, opset)
        kinds = {name: x.dtype for name, x in zip(of_inputs, inputs) if isinstance(x, Value)}
        making, wider = Making(self.builder, node.op_type), inputs
        if all(name in kinds for name in of_outputs[: len(outputs)]):
            wider = [making.of_type(x, wide(x.dtype)) if isinstance(x, Value) else x for x in inputs]
        body = onnx_functions.definition(self.onnx, node, opset, wider)
        if body is None:
            return None
        inner = {name: value for name, value in zip_longest(body.input, wider) if name is not None}
        versions = {"": opset, **scope.versions, **_versions(body)}
        nodes = onnx_functions.resolved_nodes(body, node)
        made = self._inlined(nodes, list(body.output)[: len(outputs)], _Scope(versions, inner))
        if wider is inputs:
            return made
        return [making.of_type(x, kinds[t]) if isinstance(x, Value) else x for x, t in zip(made, of_outputs)]

    def _body(self, graph: Any, scope: _Scope) -> Callable[..., Sequence[Made]]:
        """A graph that is an attribute of a node: a function from the values of its inputs to those of its outputs."""
        held = {t.name: self.builder.constant(self._array(t), t.name) for t in graph.initializer}

        def body(*inputs: Made) -> Sequence[Made]:
            given = dict(zip((i.name for i in graph.input), inputs))
            inner = _Scope(scope.versions, {**scope.values, **held, **given})
            return self._inlined(graph.node, [o.name for o in graph.output], inner)

        return body

    def _inlined(self, nodes: Iterable[Any], results: Sequence[str], scope: _Scope) -> Sequence[Made]:
        """The values of ``results`` after nodes that stand inside of another one. An inner fault is one of the outer node."""
        values = dict(scope.values)
        for node in nodes:
            self.written += 1
            if self.written > MOST_WRITTEN:
                raise Unsupported(
                    f"definitions and steps of loops are more than {MOST_WRITTEN} nodes, when written out"
                )
            inputs = [values.get(name) if name else None for name in node.input]
            try:
                made = self._made(node, inputs, list(node.output), _Scope(scope.versions, values))
            except Unknown as error:
                raise Unknown(f"in its definition, {node.op_type}: {reason(error)}", error.inputs) from error
            except FAULTS as error:
                raise Unsupported(f"in its definition, {node.op_type}: {reason(error)}") from error
            values.update(zip(node.output, made))
        return [values.get(name) for name in results]

    def _require_signature(self, node: Any, opset: int) -> None:
        """Refuse a node with more inputs or results than its operator, without one of its attributes, or with one of another type."""
        with suppress(self.onnx.defs.SchemaError):
            schema = self.onnx.defs.get_schema(node.op_type, opset, _domain(node))
            for what, names, most in (
                ("inputs", node.input, schema.max_input),
                ("results", node.output, schema.max_output),
            ):
                if any(names[most:]):
                    raise Unsupported(f"it has {len(names)} {what}; the operator has {most} at most")
            known = schema.attributes
            given = {a.name: self.onnx.AttributeProto.AttributeType.Name(a.type) for a in node.attribute}
            for name, about in known.items():
                if about.required and name not in given:
                    raise Unsupported(f"its attribute {name} is missing")
                if given.get(name, "UNDEFINED") not in ("UNDEFINED", about.type.name):
                    raise Unsupported(f"its attribute {name} is of {given[name]}, not of {about.type.name}")

    def _attribute(self, attribute: Any, scope: _Scope) -> Any:
        kinds = self.onnx.AttributeProto
        if attribute.type == kinds.TENSOR:
            return self._array(attribute.t)
        if attribute.type == kinds.GRAPH:
            return self._body(attribute.g, scope)
        if attribute.type == kinds.SPARSE_TENSOR:
            return self._dense(attribute.sparse_tensor)
        if attribute.type in (kinds.GRAPHS, kinds.SPARSE_TENSORS):
            raise Unsupported(f"its attribute {attribute.name} is several graphs, or several sparse tensors")
        value = self.onnx.helper.get_attribute_value(attribute)
        if attribute.type in (kinds.INTS, kinds.FLOATS, kinds.STRINGS):
            return tuple(map(_text, value))
        return _text(value)

    def _version(self, node: Any, opset: int) -> int:
        """The version of the operator that an opset has."""
        with suppress(self.onnx.defs.SchemaError):
            return int(self.onnx.defs.get_schema(node.op_type, opset, _domain(node)).since_version)
        return opset

    def _fault(self, node: Any, error: Exception) -> None:
        why = reason(error)
        if why == NO_ROW:
            why += did_you_mean(node.op_type, onnx_table.names())
        inputs = error.inputs if isinstance(error, Unknown) and error.inputs else None
        self.faults.add(*self._operator(node), why, _title(node), inputs=inputs)

    def _operator(self, node: Any) -> tuple[str, str]:
        """The operator of a node, and its version."""
        name = f"{node.domain}.{node.op_type}" if node.domain not in ("", "ai.onnx") else node.op_type
        return name, str(self._version(node, self.versions.get(_domain(node), 0)))


class _Scope(NamedTuple):
    """What the names in nodes mean: the version of each domain, and values."""

    versions: Mapping[str, int]
    values: Mapping[str, Made]


def _text(value: Any) -> Any:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _domain(about: Any) -> str:
    """The domain of a node or of a version; ONNX's own has two spellings."""
    return "" if about.domain == "ai.onnx" else about.domain


def _versions(about: Any) -> dict[str, int]:
    """The version of each domain that a model or a function is of. Raises ``ModelError`` for one that is none."""
    found = {_domain(o): o.version for o in about.opset_import}
    for domain, version in found.items():
        if not 0 < version < 1 << 31:
            raise ModelError(f"version {version} of the domain {domain or 'ai.onnx'!r} is none")
    return found


def _title(node: Any) -> str:
    return node.name or f"{node.op_type} of {', '.join(node.output)}"
