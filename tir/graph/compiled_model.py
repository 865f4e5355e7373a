"""Compiled models: how they are called, and what was compiled, which is read when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from codegen.module import Module

from ..node import cached_property
from .model_calls import Model, Parameter
from .sizes import Extent

if TYPE_CHECKING:
    from .graph import Graph
    from .memory_plan import Plan
    from .profile import Profile


@dataclass(frozen=True)
class Case:
    """What a model runs for ``values`` of its symbols: the ``graph`` that was compiled, with the constants that kernels read, the ``plan`` of its
    workspace, and the ``kernels`` that it calls, in order."""

    values: Mapping[str, int]
    graph: Graph
    plan: Plan
    kernels: tuple[str, ...]


class About(NamedTuple):
    """What calls of a model need to know: its parameters, those that a call updates last, and the names of the kernels that it calls, in order."""

    inputs: tuple[Parameter, ...]
    outputs: tuple[Parameter, ...]
    state: tuple[Parameter, ...]
    kernels: tuple[str, ...]
    weights_bytes: int
    workspace_bytes: Extent

    @staticmethod
    def of(whole: Case, state: Sequence[str], weights_bytes: int, workspace_bytes: Extent) -> About:
        """For the case of all values of the symbols for which there is no other."""
        inputs = {v.name: Parameter(v.name, v.shape, v.dtype) for v in whole.graph.inputs}
        outputs = [Parameter(name, v.shape, v.dtype) for name, v in whole.graph.outputs.items() if name not in state]
        kept = [inputs.pop(name) for name in state]
        return About(tuple(inputs.values()), tuple(outputs), tuple(kept), whole.kernels, weights_bytes, workspace_bytes)


class CompiledModel(Model):
    """A model that was compiled here: ``graph`` is the graph that was compiled, with the constants that kernels read, ``plan`` the
    plan of its workspace, of all calls for which there is none of ``cases``. ``key`` is its name in the disk cache, where it has one."""

    key: str | None = None

    def __init__(self, about: About, module: Module, weights: np.ndarray, made: Callable[[], Sequence[Case]]):
        """``made`` gives what was compiled, for all values of symbols and for each case; it is called when that is first read."""
        super().__init__(
            about.inputs, about.outputs, module, weights, about.workspace_bytes, about.kernels, about.state
        )
        self.about = about
        self.weights_bytes = about.weights_bytes
        self._made = made

    @cached_property
    def _cases(self) -> tuple[Case, ...]:
        return tuple(self._made())

    @property
    def graph(self) -> Graph:
        return self._cases[0].graph

    @property
    def plan(self) -> Plan:
        return self._cases[0].plan

    @property
    def cases(self) -> tuple[Case, ...]:
        return self._cases[1:]

    def __getstate__(self) -> dict[str, Any]:
        _ = self._cases
        return {**super().__getstate__(), "_made": None}

    def case(self, values: Mapping[str, int]) -> Case:
        """What runs for values of the symbols."""
        return next((each for each in self.cases if each.values.items() <= values.items()), self._cases[0])

    def profile(self, *args: Any, repeat: int = 5, **named: Any) -> Profile:
        """Time each kernel in ``repeat`` calls of the model: a table of the medians, as text, in a notebook, as JSON, and a picture.

        Raises ``RunError`` as a call does.

        >>> from tir.graph import Builder, compile_graph
        >>> b = Builder()
        >>> model = compile_graph(b.graph(b.call("exp", b.input("x", (64,)))))
        >>> [(k.kernel, k.calls, k.bytes, k.operations) for k in model.profile(np.zeros(64, "float32")).kernels]
        [('exp', 1, 512, 64)]
        """
        from .profile import profile

        return profile(self, args, named, repeat)

    def save(
        self,
        path: str | Path,
        header: str | Path | None = None,
        weights: str | Path | None = None,
        threads: str = "linked",
        levels: Sequence[str] = (),
        checks: bool = False,
        cmake: str | Path | None = None,
    ) -> None:
        """Write the model as ``.so``, ``.o`` or ``.a``, and a C ``header``: a function of the file's name that takes inputs and results,
        and ``<name>_with_workspace``, which takes memory to work in as well. Where sizes are symbols, both take their values last, and
        ``<name>_workspace_bytes`` computes the bytes of that memory from them. ``tir.load`` reads it back.

        The weights are in the file; or in the file ``weights``, as they are in memory, and both functions take their address.
        A model for cuda is a ``.zip``, and its weights are in the file ``weights``, by default beside it.
        ``threads``, ``levels``, ``checks`` and ``cmake`` are those of :meth:`codegen.module.LLVMModule.save`. Raises ``BuildError`` as that does, and
        for a target that has no code.

        >>> import tempfile
        >>> import tir
        >>> from tir.graph import Builder, compile_graph
        >>> b = Builder()
        >>> x = b.input("x", (2,))
        >>> model = compile_graph(b.graph(b.call("add", x, b.constant(np.float32([1, 2]), "w"))))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(f"{folder}/model.o")
        ...     tir.load(f"{folder}/model.o")(np.zeros(2, "float32"))
        array([1., 2.], dtype=float32)
        """
        from codegen.aot import Options

        from .saved_model import save

        save(self, Path(path), weights, Options.of(header, threads, checks, cmake), levels)
