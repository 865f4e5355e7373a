"""Models tuned: the kernels of a graph searched within one budget, and compiled with what was found."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from ..function import IRModule, PrimFunc
from ..tune.records import Records
from ..tune.session import tune
from ..tune.tasks import extract_tasks
from .compiled_model import CompiledModel
from .fusion import groups
from .graph import Graph
from .graph_passes import optimized
from .kernels import Kernel, by_default, group_functions
from .model import compile_optimized, with_own_results
from .model_calls import give_back


def tune_graph(
    graph: Graph,
    target: Any = "llvm",
    seconds: float = 60.0,
    seed: int = 0,
    db: str | os.PathLike[str] | Records | None = None,
    state: Sequence[str] = (),
    cold: bool = True,
    verbose: bool = True,
) -> CompiledModel:
    """Search the schedules of the kernels of a graph for so many ``seconds``, and compile it with the fastest.

    Time goes to the kernel that can gain most: by the seconds that a call of the model spends in it above what the machine allows, and the trials that
    it had. Kernels are timed with empty caches (unless ``cold`` is false), as they find them in a model. A kernel that was not reached, or for which nothing was found, is that of :func:`tir.tune.default`. ``db``, ``seed`` and ``verbose`` are those of
    :func:`tir.tune`: with a file of records the same call goes on. Ctrl-C ends the search; what it found is kept.

    Raises ``ModelError`` and ``BuildError`` as :func:`tir.graph.compile_graph` does.

    >>> import numpy as np
    >>> from tir.graph import Builder
    >>> b = Builder()
    >>> graph = b.graph(b.call("nn.softmax", b.input("x", (8, 16))))
    >>> model = tune_graph(graph, seconds=2, cold=False, verbose=False)
    >>> float(model(np.zeros((8, 16), "float32"))[0, 0])
    0.0625
    """
    final = with_own_results(optimized(graph, target=target))
    functions = list(group_functions(groups(final), final.constants).values())
    distinct = dict.fromkeys(functions)
    module = IRModule({f"kernel_{n}": func for n, func in enumerate(distinct)})
    weights = {f"kernel_{n}": float(functions.count(func)) for n, func in enumerate(distinct)}
    result = tune(
        module, target, trials=None, seconds=seconds, seed=seed, db=db, weights=weights, cold=cold, verbose=verbose
    )
    found = {one.task.key: one.best.schedule.func for one in result.tuned if one.search.best is not None}

    def schedule(func: PrimFunc, target: Any) -> Kernel:
        (task,) = extract_tasks(func.without_attr("global_symbol"))
        return Kernel.of(found[task.key], target) if task.key in found else by_default(func, target)

    model = compile_optimized(final, target, state, schedule)
    give_back()
    return model
