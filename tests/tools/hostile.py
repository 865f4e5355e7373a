"""What comes from outside, damaged: ``python -m tests.tools.hostile --count 70000 --seed 1``, that is 10,000 of each kind.

Printed programs, traces in both forms, records, saved files, archives and models are cut, flipped and spliced, and read by
the doors that users have; descriptions of saved files are changed and sealed again. A case is a fault if it raises anything but an error of the project, takes
more than two seconds of CPU time or 512 MB, starts a process, runs the Python in it, or ends this process: cases run in a
child. Each fault is printed with its kind and its number, from which it can be made again.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from small_models import small_model

import tir
from codegen import container
from tir.canonical import canonical
from tir.cli import tvmc
from tir.importers import onnx_table
from tir.importers.onnx import from_onnx
from tir.schedule import Trace, apply_text
from tir.script import parse_data
from tir.tune.record import Record
from tir.tune.records import Records
from tir.tune.runner import Measurement

SECONDS = 2.0  # of CPU time for a case
MEMORY = 512 << 20  # bytes in memory at once, beside those that were there before a case
TRAP = "ran"  # a file that hostile pieces make, if they run
PIECES = [
    f'__import__("os").mkdir("{TRAP}")', f'open("{TRAP}", "w")', "sum(range(10**10))", "10**10**10", "9" * 5000, "1e999", "NaN", "null",
    "-1", "0", "18446744073709551616", "(" * 300, "[" * 3000, '"', "'", "\\", "\n", "\t", "    ", "@T.prim_func\n", "lambda x: x", "T.meta_var(",
    "T.float32x4", "T.", ".", ",", ":", "{", "}", "[x for x in range(10**10)]", 'f"{x}"', "A", "i", "import os\n", "\0", "\ud800", "é", "T.int32(",
    '{"$index_map": "lambda i: i"}', '{"$expr": 0, "value": 1}', "[]", "{}", "true", "1.5", "if x else", "T.grid(2**31)",
]  # fmt: skip


class TooLong(BaseException):
    """A case that did not end."""


# ---------------------------------------------------------------- what is damaged


@cache
def schedule() -> tir.Schedule:
    sch = tir.Schedule(tir.library.rows.row_sum(64, 64), seed=1)
    outer, _ = sch.split("j", sch.sample_perfect_tile("j", 2))
    sch.annotate(outer, "note", {"a": [1, 2.5, "x", None]})
    sch.cache_read("total", 0, "local")
    sch.transform_layout("total", ("read", 0), lambda i, j: (j, i))
    return sch


@cache
def texts() -> list[str]:
    programs = [tir.library.rows.softmax(8, 16), tir.library.gemm.gemm(16, 16, 16), schedule().mod]
    programs += [tir.lower(p, target="llvm") for p in programs]
    return [p.script() for p in programs]


@cache
def traces() -> list[str]:
    return [json.dumps(schedule().trace.as_json())]


@cache
def records() -> list[str]:
    made, program = Records(None), canonical(tir.library.rows.row_sum(64, 64))
    trace = tir.Schedule(program.mod, seed=1)
    trace.split("v0", trace.sample_perfect_tile("v0", 2)) if "v0" in str(trace.mod) else None
    made.finish(made.claim(program, "here", trace.trace.as_json()), Measurement(0, "ok", 1.0, (1.0,)))
    return [record.as_json() for record in made.all()]


@cache
def steps() -> list[str]:
    return [str(schedule().trace)]


@cache
def model() -> Any:
    b = tir.graph.Builder()
    x, w = b.input("x", (4, 8)), b.constant(np.ones((8, 4), "float32"), "w")
    return tir.compile(b.graph(b.call("nn.relu", b.call("matmul", x, w))))


@cache
def files() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        made = [Path(folder) / name for name in ("k.o", "k.so", "m.o", "m.so")]
        for path in made:
            (tir.build(tir.library.rows.row_sum(4, 8)) if path.stem == "k" else model()).save(path)
        return [path.read_bytes() for path in made]


@cache
def archives() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.tar"
        model().save(Path(folder) / tvmc.CODE, weights=Path(folder) / tvmc.PARAMS)
        with tarfile.open(path, "w") as made:
            for name in (tvmc.CODE, tvmc.PARAMS):
                made.add(Path(folder) / name, name)
        return [path.read_bytes()]


@cache
def onnx_models() -> list[bytes]:
    return [small_model(last=last).SerializeToString() for last in ("Softmax", "Frobnicate")]


# ---------------------------------------------------------------- how


def damaged(data: Any, draw: random.Random, pieces: list[Any], others: list[Any]) -> Any:
    """A text or bytes with one to three parts cut, exchanged, doubled, or put in from ``pieces`` or another of its kind."""
    for _ in range(draw.randrange(1, 4)):
        a, b = sorted(draw.randrange(len(data) + 1) for _ in range(2))
        b = min(b, a + draw.choice([1, 4, 40, len(data)]))
        other = draw.choice(others)
        start = draw.randrange(len(other) + 1)
        middle = draw.choice(
            [data[:0], draw.choice(pieces), data[a:b] * 2, other[start : start + draw.choice([1, 10, 200])]]
        )
        data = data[:a] + middle + data[b:]
    return data[: draw.randrange(len(data) + 1)] if draw.random() < 0.1 else data


VALUES = [
    None, True, -1, 0, 3, 10**30, 1.5, math.inf, math.nan, "", "x", "i", "j", "total", "\ud800", [], [[]], {}, {"$loop": 0}, {"$block": 1},
    {"$expr": -1}, {"$expr": 0, "value": 2**31}, {"$index_map": "lambda i: 9**9**9"}, {"$index_map": "lambda i, j: i(j)"}, {"$index_map": 3},
    {"$op": "*", "a": 2**40, "b": 2**40, "value": 1}, {"$op": "%", "a": 9, "b": 0, "value": 1}, {"$loop": 0, "name": 1, "func": []},
    json.loads("[" * 150 + "]" * 150),
]  # fmt: skip


def changed(value: Any, draw: random.Random, odds: float) -> Any:
    """A copy of plain data with some of its parts exchanged, renamed or left out; texts of programs with other words."""
    if draw.random() < odds:
        return draw.choice(VALUES)
    if isinstance(value, dict):
        kept = {k: changed(v, draw, odds) for k, v in value.items() if draw.random() > odds / 2}
        return {k if draw.random() > odds else f"{k}x": v for k, v in kept.items()}
    if isinstance(value, list):
        return [changed(v, draw, odds) for v in value if draw.random() > odds / 2]
    return reworded(value, draw) if isinstance(value, str) and "\n" in value and draw.random() < 0.5 else value


def reworded(text: str, draw: random.Random) -> str:
    """A text with one to three of its words in place of others, or pieces; it stays one that Python can read more often."""
    words = re.split(r"(\w+)", text)
    for _ in range(draw.randrange(1, 4)):
        words[draw.randrange(len(words) // 2) * 2 + 1] = draw.choice(PIECES if draw.random() < 0.4 else words[1::2])
    return "".join(words)


def rewired(data: bytes, draw: random.Random) -> bytes:
    """A model with one to three of its operators, names, attributes and sizes in place of others."""
    import onnx

    model = onnx.load_from_string(data)
    graph = model.graph
    numbers = [0, 1, -1, 2, 3, 7, 2**31, 2**40, -(2**63)]
    names = ["", "data", "out", *(v.name for v in graph.initializer), *(o for n in graph.node for o in n.output)]
    for _ in range(draw.randrange(1, 4)):
        node, constant = draw.choice(graph.node), draw.choice(graph.initializer)
        what = draw.randrange(7)
        if what == 0:
            node.op_type = draw.choice([*onnx_table.names(), "If", "Loop", "Attention"])
        elif what == 1:
            node.input[draw.randrange(len(node.input))] = draw.choice(names)
        elif what == 2:
            node.output[0] = draw.choice(names)
        elif what == 3:
            node.input.extend(draw.choices(names, k=draw.randrange(1, 4)))
        elif what == 4:
            node.attribute.append(
                onnx.helper.make_attribute(draw.choice(_ATTRIBUTES), draw.choices(numbers, k=draw.randrange(1, 5)))
            )
        elif what == 5:
            constant.dims[draw.randrange(len(constant.dims))] = draw.choice(numbers)
        else:
            sizes = draw.choice([*graph.input, *graph.output]).type.tensor_type.shape.dim
            draw.choice(sizes).dim_value = draw.choice(numbers)
    return model.SerializeToString()


_ATTRIBUTES = [
    "axes",
    "axis",
    "pads",
    "strides",
    "dilations",
    "kernel_shape",
    "group",
    "perm",
    "shape",
    "to",
    "value_ints",
    "k",
    "keepdims",
]


def resealed(data: bytes, draw: random.Random) -> bytes:
    """A saved file with another description and the digest of that."""
    Path("k.o").write_bytes(data)
    whole = container.read(Path("k.o"))
    container.write(Path("k.o"), whole.kind, whole.code, changed(whole.about, draw, draw.choice([0.01, 0.03, 0.1])))
    return Path("k.o").read_bytes()


def read_text(text: str) -> None:
    parse_data(text).script()


def read_trace(text: str) -> None:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return  # what is no JSON does not come to a trace
    trace = Trace.from_json(data)
    str(trace)
    trace.replay(tir.library.rows.row_sum(64, 64))


def read_record(text: str) -> None:
    record = Record.from_json(text)
    program = canonical(parse_data(record.script))
    with Records(None) as made:
        made.add(record, program)
        assert [r.trace for r in made.all()] or made.damaged


def read_steps(text: str) -> None:
    apply_text(text, tir.Schedule(tir.library.rows.row_sum(64, 64)))


def read_file(data: bytes) -> None:
    Path("k.o").write_bytes(data)
    if data not in files():
        tir.load("k.o")


def read_archive(data: bytes) -> None:
    Path("m.tar").write_bytes(data)
    tvmc.loaded("m.tar")


def read_model(data: bytes) -> None:
    from_onnx(data)


KINDS: dict[str, tuple[Callable[[], list[Any]], Callable[[Any], None]]] = {
    "text": (texts, read_text),
    "trace": (traces, read_trace),
    "steps": (steps, read_steps),
    "record": (records, read_record),
    "file": (files, read_file),
    "archive": (archives, read_archive),
    "model": (onnx_models, read_model),
}
if importlib.util.find_spec("onnx") is None:
    del KINDS["model"]


# ---------------------------------------------------------------- judging


class Watch:
    """Whether a process was started while ``on``."""

    def __init__(self) -> None:
        self.on, self.seen = False, ""
        sys.addaudithook(self)

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        if self.on and event in ("os.system", "subprocess.Popen", "os.exec", "os.posix_spawn", "socket.connect"):
            self.seen = event


@cache
def watch() -> Watch:
    """The one of this process, from the first call on: what it is told of takes time, and a hook is never taken away."""
    return Watch()


@contextmanager
def limited() -> Iterator[None]:
    """Raise ``TooLong`` in what takes too much CPU time."""

    def end(number: int, frame: Any) -> None:
        raise TooLong

    old = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    watch().on, watch().seen = True, ""
    try:
        yield
    finally:
        watch().on = False
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, old)


_AGAIN: dict[str, Callable[[bytes, random.Random], bytes]] = {"file": resealed, "model": rewired}


def forget_peak() -> None:
    """Begin to measure the peak anew, where the system can."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak() -> int:
    """The most bytes of this process that were in memory at once, since that was forgotten."""
    try:
        return int(re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())[1]) << 10
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def case(kind: str, number: int) -> Any:
    """The damaged data of a number."""
    draw = random.Random(f"{kind} {number}")
    whole = KINDS[kind][0]()
    first = draw.choice(whole)
    if not isinstance(first, bytes) and draw.random() < 0.7:
        if kind in ("text", "steps"):
            return reworded(first, draw)
        return json.dumps(changed(json.loads(first), draw, draw.choice([0.01, 0.03, 0.1])))
    if kind in _AGAIN and draw.random() < 0.5:
        return _AGAIN[kind](first, draw)
    if isinstance(first, bytes):
        return damaged(first, draw, [b"\0", b"\xff" * 8, draw.randbytes(16), b"tir.save"], whole)
    return damaged(first, draw, PIECES, whole)


def fault(kind: str, number: int) -> str:
    """What is wrong with how a case is answered; empty if nothing is."""
    data = case(kind, number)
    forget_peak()
    before = peak()
    try:
        with limited():
            KINDS[kind][1](data)
    except tir.TirError as error:
        text = str(error)
        if "a fault inside" in text:
            return text.splitlines()[0]
    except ValueError as error:
        if kind != "record":  # whose door says so
            return f"ValueError: {error}"
    except TooLong:
        return f"it takes more than {SECONDS} s"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    if peak() - before > MEMORY:
        return f"it takes {(peak() - before) >> 20} MB"
    if os.path.exists(TRAP):
        os.rmdir(TRAP) if os.path.isdir(TRAP) else os.remove(TRAP)
        return "it ran code"
    return watch().seen


def run(count: int, seed: int, first: int = 0, now: Callable[[str], None] = lambda case: None) -> list[str]:
    """The faults of ``count`` cases after the ``first``, in turn of each kind; run in a folder of its own. ``now`` is given
    each case before it runs, and each fault."""
    for make, _ in KINDS.values():
        make()
    found = []
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for number in range(first, count):
                kind = list(KINDS)[number % len(KINDS)]
                now(f"{kind} {seed * 1_000_000 + number}")
                why = fault(kind, seed * 1_000_000 + number)
                if why:
                    found.append(f"{kind} {seed * 1_000_000 + number}: {why}")
                    now(f"fault {found[-1]}")
        finally:
            os.chdir(before)
    return found


def in_children(count: int, seed: int) -> list[str]:
    """As :func:`run`, in a child process, and in another one after a case that ends it."""
    found, first = [], 0
    while first < count:
        command = [sys.executable, "-m", "tests.tools.hostile", "--child", "--first", str(first)]
        done = subprocess.run([*command, "--count", str(count), "--seed", str(seed)], stdout=subprocess.PIPE, text=True)
        lines = done.stdout.splitlines()
        found += [line.removeprefix("fault ") for line in lines if line.startswith("fault ")]
        if done.returncode == 0:
            break
        last = next((line for line in reversed(lines) if not line.startswith("fault ")), "")
        found.append(f"{last}: it ended the process with status {done.returncode}")
        if not last:
            break
        first = int(last.split()[1]) - seed * 1_000_000 + 1
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=70_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        run(given.count, given.seed, given.first, lambda case: print(case, flush=True))
        return 0
    found = in_children(given.count, given.seed)
    print("\n".join([*found, f"{given.count} cases, {len(found)} faults"]))
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
