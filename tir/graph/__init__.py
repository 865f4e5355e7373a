"""Whole models: graphs of the operators of ``tir.ops``, and one lowered module made of them.

>>> import numpy as np
>>> from tir.graph import Builder, compile_graph
>>> b = Builder()
>>> x = b.input("x", (2, 3))
>>> model = compile_graph(b.graph({"y": b.call("exp", b.call("negative", x))}), "interpreter")
>>> model(np.zeros((2, 3), "float32")).tolist(), model.kernels
([[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]], ('negative_exp',))
"""

from __future__ import annotations

from ..errors import ModelError
from .calls import Model
from .fusion import Group, groups, view_of, why_not_fused
from .graph import Builder, Graph, Node, Value
from .memory import Plan, check_plan, plan
from .model import CompiledModel, compile_graph
from .parse import parse
from .passes import PASSES, optimized
from .quantize import quantize

__all__ = [
    "PASSES", "Builder", "CompiledModel", "Graph", "Group", "Model", "ModelError", "Node", "Plan", "Value",
    "check_plan", "compile_graph", "groups", "optimized", "parse", "plan", "quantize", "view_of", "why_not_fused",
]  # fmt: skip
