"""Modules of kernels; where a kernel cannot be built, its nodes are named, and its program is kept."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from codegen.build import build
from codegen.module import Module

from ..errors import BuildError
from ..function import IRModule, PrimFunc
from ..target import Target
from .fusion import Group


def built(functions: Mapping[str, PrimFunc], groups: Mapping[str, Group], target: Any) -> Module:
    """The module of kernels, which ``groups`` has by their names, and of what calls them.

    Raises ``BuildError`` as :func:`naming` does for the first kernel that cannot be built by itself, and as ``tir.build`` if there is none.
    """
    try:
        return build(IRModule(functions), target)
    except Exception:  # of any kind: raised again, unless one kernel fails by itself, which is named
        for name, group in groups.items():
            if name in functions:
                with naming(name, group, functions[name], target):
                    build(IRModule({name: functions[name]}), target)
        raise


@contextmanager
def naming(name: str, group: Group, func: PrimFunc, target: Any) -> Iterator[None]:
    """Where what is done to the kernel of a group fails: ``BuildError`` with the nodes, and with the file that has its program."""
    try:
        yield
    except Exception as error:
        file = Path(tempfile.mkdtemp(prefix="tir-kernel-")) / f"{name}.py"
        file.write_text(func.script() + "\n", encoding="utf-8")
        nodes = "\n".join(f"  {node}{f', {node.name} of the model' if node.name else ''}" for node in group.nodes)
        raise BuildError(
            f"kernel {name} cannot be built for {Target.of(target)}: {str(error).rstrip() or type(error).__name__}\n{nodes}\nits program is in {file}"
        ) from error
