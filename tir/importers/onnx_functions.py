"""Operators of ONNX that are defined by other operators: their definitions as nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from ..graph import Value
from .onnx_table import Items, Made


def definition(onnx: Any, node: Any, opset: int, inputs: Sequence[Made]) -> Any:
    """The ``FunctionProto`` that defines an operator in terms of others, for these inputs; None if there is none."""
    domain = "" if node.domain == "ai.onnx" else node.domain
    body = onnx.FunctionProto()
    with suppress(onnx.defs.SchemaError, RuntimeError):
        schema = onnx.defs.get_schema(node.op_type, opset, domain)
        if schema.has_function:
            body.CopyFrom(schema.function_body)
        elif schema.has_context_dependent_function:
            types = [_type(onnx, value).SerializeToString() for value in inputs]
            body.ParseFromString(schema.get_context_dependent_function(node.SerializeToString(), types))
        body.attribute_proto.extend(a.default_value for a in schema.attributes.values() if a.default_value.name)
    return body if len(body.node) else None


def type_names(onnx: Any, node: Any, opset: int) -> tuple[list[str], list[str]]:
    """What the types of the inputs and of the outputs of an operator are called, those of one type alike."""
    with suppress(onnx.defs.SchemaError):
        schema = onnx.defs.get_schema(node.op_type, opset, "" if node.domain == "ai.onnx" else node.domain)
        return [p.type_str for p in schema.inputs], [p.type_str for p in schema.outputs]
    return [], []


def is_defined(onnx: Any, node: Any, opset: int, domain: str) -> bool:
    """Whether an operator has a definition in terms of others, for some inputs."""
    with suppress(onnx.defs.SchemaError):
        schema = onnx.defs.get_schema(node.op_type, opset, domain)
        return schema.has_function or schema.has_context_dependent_function
    return False


def _type(onnx: Any, value: Made) -> Any:
    """The type of an input; of a sequence that of its first tensor, without sizes: others may have other ones."""
    if isinstance(value, Items):
        first = next((_type(onnx, x) for x in value), onnx.helper.make_tensor_type_proto(1, None))
        first.tensor_type.ClearField("shape")
        return onnx.helper.make_sequence_type_proto(first)
    if not isinstance(value, Value):
        return onnx.TypeProto()
    import numpy as np

    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(str(value.dtype)))
    return onnx.helper.make_tensor_type_proto(kind, value.shape)


def resolved_nodes(body: Any, node: Any) -> Iterator[Any]:
    """The nodes of a definition, with the attributes of ``node`` in the place of references to them."""
    given = {a.name: a for a in (*body.attribute_proto, *node.attribute)}
    for inner in body.node:
        made = type(inner)()
        made.CopyFrom(inner)
        del made.attribute[:]
        for attribute in inner.attribute:
            source = given.get(attribute.ref_attr_name) if attribute.ref_attr_name else attribute
            if source is not None:
                made.attribute.add().CopyFrom(source)
                made.attribute[-1].name = attribute.name
        yield made
