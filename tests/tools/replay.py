"""Process replay: the program after each step of every schedule we keep, as text, to compare two states of the code.

``python -m tests.tools.replay OUT`` writes one file for each golden case of a primitive, classic schedule, example and
library schedule: the program after each step, the refusal if there was one, and, of examples and the library, the
lowered program. Nothing but the public API is used, so that one version of this script runs on old and new code.

``python -m tests.tools.replay --against BASE`` compares with BASE: a folder written before, another checkout, or a
revision of git. It prints a summary and unified diffs, and fails where anything differs. The library sizes its tiles by
the caches of the machine, so compare what one machine wrote.

The cases and this script are those of this checkout; the code under test is whichever ``tir`` is imported.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import importlib.util
import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
for folder in (str(ROOT / "tests"), str(ROOT)):
    if folder not in sys.path:
        sys.path.append(folder)

import golden_cases  # noqa: E402

import tir  # noqa: E402
from tests import recorded_texts  # noqa: E402
from tir.script import parse  # noqa: E402

Case = Callable[[], str]


# ---------------------------------------------------------------- what one schedule gives, as text


def _sections(sch: tir.Schedule, failure: tuple[str, str] | None = None) -> str:
    """Each step with the program after it, and how the schedule ended if it was not accepted."""
    parts = [(f"step {s.number}: {s.text}", s.mod.script()) for s in sch.history[1:]]
    return "\n".join(f"== {title}\n{text.strip()}\n" for title, text in [*parts, *([failure] if failure else [])])


def _failure(error: Exception, what: str) -> tuple[str, str]:
    kind = "refused" if isinstance(error, tir.ScheduleError) else f"raised {type(error).__name__}"
    return f"{kind}: {what}", str(error)


def _script(program: str, steps: str, names: dict[str, Any]) -> str:
    """Run statements on ``sch``, up to the first that fails."""
    sch = tir.Schedule(parse(program), seed=0)
    names = {**names, "sch": sch, "tir": tir}
    for statement in ast.parse(steps).body:
        text = ast.unparse(statement)
        try:
            exec(text, names)
        except Exception as error:
            return _sections(sch, _failure(error, text))
    return _sections(sch)


def _function(make: Callable[[], tir.Schedule], target: Any = None) -> str:
    """The steps of a schedule made by a function, and its program lowered."""
    try:
        sch = make()
    except Exception as error:
        title, text = _failure(error, "the whole schedule")
        return f"== {title}\n{text.strip()}\n"
    try:
        lowered = "lowered", tir.lower(sch.mod, target=sch.target or target).script()
    except Exception as error:
        lowered = _failure(error, "lowering")
    return _sections(sch, lowered)


# ---------------------------------------------------------------- the cases


def _golden() -> dict[str, Case]:
    def run(path: Path) -> str:
        sections = golden_cases.read(path)
        return _script(golden_cases.program_of(sections), sections["steps"], {"dot_16x4": golden_cases.dot_16x4})

    return {f"primitives/{p.parent.name}/{p.stem}": partial(run, p) for p in golden_cases.CASES}


def _classic() -> dict[str, Case]:
    found: dict[str, Case] = {}
    for program, steps in golden_cases.CLASSIC_SCHEDULES:
        title = "-".join([program, *re.findall(r"sch\.(?!get_)(\w+)\(", steps)])[:80]
        number = sum(name.split("~")[0] == f"classic/{title}" for name in found)
        name = f"classic/{title}" + (f"~{number + 1}" if number else "")
        found[name] = partial(_script, golden_cases.CLASSIC_PROGRAMS[program], steps, {})
    return found


def _load(path: Path) -> Any:
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # examples import each other, as scripts do
    spec = importlib.util.spec_from_file_location(f"replayed_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _examples() -> dict[str, Case]:
    folder = ROOT / "docs" / "examples"
    found: dict[str, Case] = {}
    for path in sorted((folder / "gpu").glob("*.py")):
        for size in ("small", "full"):
            found[f"examples/gpu/{path.stem}-{size}"] = partial(
                _function, lambda path=path, size=size: getattr(_load(path), size)()[1], "cuda"
            )
    reductions, transpose = folder / "gpu" / "reductions.py", folder / "gpu" / "transpose.py"
    found["examples/gpu/reductions-total"] = partial(
        _function, lambda: _load(reductions).total(1000, blocks=4, threads=64)[1], "cuda"
    )
    found["examples/gpu/transpose-swizzled"] = partial(
        _function, lambda: _load(transpose).scheduled(64, 96, swizzled=True)[1], "cuda"
    )

    def matmul() -> tir.Schedule:
        module = _load(folder / "matmul.py")
        sch = tir.Schedule(module.matmul(1024))
        list(module.schedule(sch))
        return sch

    return {**found, "examples/matmul": partial(_function, matmul)}


def library_schedules() -> dict[str, Callable[[], tir.Schedule]]:
    """Every schedule by hand, at small sizes that tiles divide and that they do not."""
    from tests.hand_schedules import attention, conv, conv_nchw, dot_gemm, elementwise, gemm, gemv, rows

    of = tir.Schedule
    layer, strided = conv.Layer(1, 14, 32, 48, 3), conv.Layer(2, 9, 5, 7, 3, 2)
    made: dict[str, Callable[[], tir.Schedule]] = {}
    for cores in (1, 2):
        many = cores > 1
        for m, n, k in ((64, 64, 64), (37, 70, 33), (130, 96, 512)):
            made[f"gemm-{m}x{n}x{k}-{cores}"] = partial(gemm.scheduled_gemm, m, n, k, cores)
            made[f"batched_gemm-{m}x{n}x{k}-{cores}"] = partial(gemm.scheduled_batched_gemm, 4, m, n, k, cores)
        made[f"gemm-thin-{cores}"] = lambda c=cores: gemm.schedule_thin_gemm(of(gemm.thin_gemm(7, 70, 33)), 5, 32, 8, c)
        made[f"gemm-deep-{cores}"] = lambda c=cores: gemm.schedule_deep_gemm(of(gemm.deep_gemm(7, 70, 300)), 5, 128, c)
        made[f"gemv-{cores}"] = partial(gemv.scheduled_gemv, 37, 100, cores)
        for kind in ("int8", "bfloat16"):
            made[f"dot_gemm-{kind}-{cores}"] = partial(dot_gemm.scheduled_dot_gemm, 37, 70, 50, kind, cores, False)
            made[f"tile_gemm-{kind}-{cores}"] = partial(dot_gemm.scheduled_dot_gemm, 64, 70, 128, kind, cores, True)
        for name, size in (("whole", layer), ("strided", strided)):
            made[f"conv2d_nhwc-{name}-{cores}"] = partial(conv.scheduled_conv2d_nhwc, size, cores)
            made[f"conv2d_nchw-{name}-{cores}"] = partial(conv_nchw.scheduled_conv2d_nchw, size, cores)
        for name, func, schedule in (
            ("attention", lambda: attention.attention(64, 48, 32), attention.schedule_attention),
            (
                "depthwise",
                lambda: conv_nchw.depthwise_nhwc(conv.Layer(1, 14, 32, 32, 3)),
                conv_nchw.schedule_depthwise_nhwc,
            ),
            ("softmax", lambda: rows.softmax(7, 1000), rows.schedule_softmax),
            ("layer_norm", lambda: rows.layer_norm(7, 1000), rows.schedule_layer_norm),
            ("row_sum", lambda: rows.row_sum(37, 300), rows.schedule_row_sum),
            ("column_sum", lambda: rows.column_sum(37, 300), rows.schedule_column_sum),
            ("transpose", lambda: elementwise.transpose(37, 70), elementwise.schedule_transpose),
            ("gelu_chain", lambda: elementwise.gelu_chain(1000), elementwise.schedule_gelu_chain),
            ("scale_add", lambda: elementwise.scale_add(1000), elementwise.schedule_scale_add),
            ("blur", lambda: elementwise.blur(37, 70), elementwise.schedule_blur),
        ):
            made[f"{name}-{cores}"] = lambda f=func, s=schedule, p=many: s(of(f()), parallel=p)
    return made


def _library() -> dict[str, Case]:
    return {f"library/{name}": partial(_function, make, "llvm") for name, make in library_schedules().items()}


def _recorded() -> dict[str, Case]:
    """The texts that ``tests/golden/texts`` has digests of."""

    def run(group: str, name: str) -> str:
        found = recorded_texts.texts(group, name)
        return "".join(f"== {label}\n{text.strip()}\n" for label, text in found.items())

    groups = {group: recorded_texts.cases(group) for group in recorded_texts.GROUPS}
    return {f"texts/{group}/{name}": partial(run, group, name) for group, found in groups.items() for name in found}


_CASES: dict[str, Case] = {}


def cases() -> dict[str, Case]:
    """Every schedule by its name; calling it gives the text."""
    if not _CASES:
        for group in (_golden, _classic, _examples, _library, _recorded):
            _CASES.update(group())
    return _CASES


# ---------------------------------------------------------------- writing and comparing


def _record(name: str) -> tuple[str, str]:
    return name, cases()[name]()


def write(out: Path, jobs: int, only: str = "") -> int:
    """Write every case whose name contains ``only`` to a folder; how many there were."""
    names = [n for n in cases() if only in n]
    with ProcessPoolExecutor(jobs) as pool:
        for name, text in pool.map(_record, names, chunksize=4):
            path = out / f"{name}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return len(names)


def read(folder: Path, only: str = "") -> dict[str, str]:
    """The text of every case in a folder."""
    paths = {str(p.relative_to(folder).with_suffix("")): p for p in sorted(folder.rglob("*.txt"))}
    return {name: path.read_text(encoding="utf-8") for name, path in paths.items() if only in name}


def _accepted(text: str) -> bool:
    return not re.search(r"^== (refused|raised)", text, flags=re.M)


def compare(old: dict[str, str], new: dict[str, str], shown: int = 20) -> str:
    """A summary of what differs, with the unified diffs of the first ``shown`` cases; empty where nothing does."""
    changed = [name for name in new if name in old and old[name] != new[name]]
    lists = {
        "accepted before, refused now": [n for n in changed if _accepted(old[n]) and not _accepted(new[n])],
        "refused before, accepted now": [n for n in changed if _accepted(new[n]) and not _accepted(old[n])],
        "another text": [n for n in changed if _accepted(old[n]) == _accepted(new[n])],
        "no longer there": sorted(old.keys() - new.keys()),
        "new": sorted(new.keys() - old.keys()),
    }
    lines = [f"{len(names)} {what}: {', '.join(names)}" for what, names in lists.items() if names]
    for name in changed[:shown]:
        parts = old[name].splitlines(), new[name].splitlines()
        lines += ["", *difflib.unified_diff(*parts, f"before/{name}", f"now/{name}", lineterm="")]
    if len(changed) > shown:
        lines += ["", f"{len(changed) - shown} more diffs: --diffs {len(changed)}"]
    return "\n".join(lines)


def _of_checkout(checkout: Path, out: Path, jobs: int, only: str) -> None:
    """The same cases with the code of another checkout."""
    command = [sys.executable, __file__, str(out), "--jobs", str(jobs), "--only", only]
    subprocess.run(command, check=True, cwd=out, env={**os.environ, "PYTHONPATH": str(checkout)})


def _base(against: str, scratch: Path, jobs: int, only: str) -> dict[str, str]:
    """The texts to compare with: of a folder written before, another checkout, or a revision of git."""
    path, out = Path(against).resolve(), scratch / "base"
    if path.is_dir() and not (path / "tir").is_dir():
        return read(path, only)
    out.mkdir()
    if not path.is_dir():
        path = scratch / "checkout"
        archive = subprocess.run(
            ["git", "archive", against, "tir", "codegen"], check=True, cwd=ROOT, stdout=subprocess.PIPE
        ).stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(path)
    _of_checkout(path, out, jobs, only)
    return read(out)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("out", nargs="?", type=Path, help="folder to write")
    options.add_argument("--against", help="a folder written before, another checkout, or a revision, to compare with")
    options.add_argument("--only", default="", help="cases whose name contains this")
    options.add_argument("--jobs", type=int, default=2)
    options.add_argument("--diffs", type=int, default=20, help="how many diffs to show")
    args = options.parse_args()
    if args.out is None and args.against is None:
        options.error("say where to write, or what to compare with")
    with tempfile.TemporaryDirectory() as scratch:
        out = args.out or Path(scratch) / "now"
        print(f"{write(out, args.jobs, args.only)} schedules")
        if args.against is None:
            return
        found = compare(_base(args.against, Path(scratch), args.jobs, args.only), read(out, args.only), args.diffs)
        print(found or "nothing differs")
        sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
