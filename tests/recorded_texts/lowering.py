"""Code of the programs that golden cases and examples for GPUs end with: for a level of x86-64, or for a GPU; of the examples
also what each pass makes."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import golden_cases
import gpu_examples

import tir
from tir.function import IRModule
from tir.script import parse
from tir.transform.pipeline import gpu_pipeline

from .stages import GPU, LEVELS, Texts, cpu, generated

EXAMPLES = ("hopper_gemm", "layer_norm", "mma_gemm", "reductions", "transpose")
ON_GPU = ("T.thread_binding", '"shared', "T.launch_thread", '"wmma', '"warp"')


def after(path: Path) -> str:
    """The program that a golden case ends with; empty of a refusal."""
    return path.read_text("utf-8").partition("== after\n")[2].partition("\n== ")[0]


def cases_of(paths: list[Path]) -> Texts:
    levels = [*LEVELS]
    for number, path in enumerate(paths[::2]):
        text = after(path)
        target = GPU if any(word in text for word in ON_GPU) else cpu(levels[number % len(levels)])
        yield from generated(parse(text), target, f"{path.stem}.")


def example(name: str) -> Texts:
    made: Any = gpu_examples.load(name).small()[1]
    target = tir.Target.of("cuda -arch=sm_90a" if name.startswith("hopper") else GPU)
    mod = IRModule.of(made.mod)
    texts: list[str] = []
    for one in gpu_pipeline(target):
        mod = one(mod)
        texts += [f"== {one.name}", mod.script()]
    yield "passes", "\n".join(texts)
    yield from generated(made.mod, str(target))


def golden() -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = defaultdict(list)
    for path in golden_cases.CASES:
        if after(path):
            found[path.parent.name].append(path)
    return found


CASES = {
    **{f"golden-{name}": partial(cases_of, paths) for name, paths in golden().items()},
    **{f"example-{name}": partial(example, name) for name in EXAMPLES},
}
