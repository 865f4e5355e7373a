"""The names of :mod:`tir.graph`, with all that they are made of."""

from __future__ import annotations

from ..errors import ModelError
from .compiled_model import CompiledModel
from .fusion import Group, groups, view_of, why_not_fused
from .graph import Builder, Graph, Node, Value
from .graph_passes import PASSES, optimized
from .memory_plan import Plan, check_plan, plan
from .model import compile_graph
from .model_calls import Model
from .parsing import parse
from .weight_quantization import quantize

__all__ = [
    "PASSES", "Builder", "CompiledModel", "Graph", "Group", "Model", "ModelError", "Node", "Plan", "Value",
    "check_plan", "compile_graph", "groups", "optimized", "parse", "plan", "quantize", "view_of", "why_not_fused",
]  # fmt: skip
