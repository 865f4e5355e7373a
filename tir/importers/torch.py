"""Programs of torch: :func:`from_exported` makes graphs of them, :func:`backend` is the one of ``torch.compile`` that is named
``tir``. Needs torch (``pip install tensorir[torch]``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..checked import checked
from ..errors import ModelError
from ..graph import Graph
from .torch_backend import backend, report
from .torch_graph import imported
from .torch_program import read_exported

__all__ = ["backend", "from_exported", "report"]


@checked
def from_exported(program: Any, shapes: Mapping[str, Sequence[int | str]] | None = None) -> Graph:
    """The graph of a ``torch.export.ExportedProgram``: parameters and buffers are constants of it, in the memory of torch.

    ``shapes`` gives the shape of inputs with symbolic sizes; sizes computed of them are computed here. Operators without
    a row are decomposed, as torch says. The results are named as in the program. Buffers that the program updates are inputs and
    results of one name: the ``state`` of :func:`tir.graph.compile_graph`.

    Raises ``ModelError`` for what is no program, for an open size, for a program that updates an input, and,
    with a row for each operator and reason, for all that cannot be imported.
    """
    if not hasattr(program, "graph_signature"):
        raise ModelError(f"a program is a torch.export.ExportedProgram, not {type(program).__name__}")
    return imported(read_exported(program), shapes)
