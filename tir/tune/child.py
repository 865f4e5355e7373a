"""The process in which candidates are built and run: ``main("tir.tune.child")``.

It may crash, hang or be killed without harm to the search. It reads commands from its standard input and answers each
with one object of JSON on its standard output: see :class:`tir.tune.process.Child`. What a program prints goes to
standard error.
"""

from __future__ import annotations

import functools
import importlib
import json
import math
import os
import pickle
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import Any, BinaryIO

HEAD = struct.Struct("<IQ")  # bytes of the command, and of the pickled program behind it
_WARM_UP = """
@T.prim_func
def warm_up(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] * T.float32(3) + T.float32(1)
"""


class Task:
    """The program of a search: its arguments, and what they are after a run of the unscheduled program."""

    def __init__(self, mod: Any, about: dict[str, Any]):
        from tir.function import IRModule
        from tir.interp.same_results import random_inputs

        self.func = next(iter(IRModule.of(mod).functions.values()))
        self.mod, self.target = mod, about["target"]
        self.serial, self.cold = bool(about["serial"]), bool(about["cold"])
        self.inputs = random_inputs(self.func, int(about["seed"]), about["sizes"])
        self.terms = longest_sum(self.func, about["sizes"])
        self.seconds = 0.0
        self.written: frozenset[int] = frozenset()
        self.expected: dict[int, Any] = {}
        folder = Path(about["folder"]) if about["folder"] else None
        self._load_or_run(None if folder is None else folder / "reference.npz")

    def _load_or_run(self, path: Path | None) -> None:
        """The expected outputs, from the file of an earlier child or by running the reference."""
        import numpy as np

        if path is not None and path.exists():
            with np.load(path, allow_pickle=False) as found:
                kept = {name: found[name] for name in found.files}
            self.seconds = float(kept.pop("seconds"))
            spoilt = bool(kept.pop("spoilt"))
            self.expected = {int(name): value for name, value in kept.items()}
            self.written = frozenset(self.expected)
            if spoilt:
                self.spoil(self.inputs)
            return
        spoilt = self._run_reference()
        if path is not None:
            half = path.with_suffix(f".{os.getpid()}.npz")
            arrays = {str(k): v for k, v in self.expected.items()}
            try:
                np.savez(half, seconds=self.seconds, spoilt=spoilt, **arrays)
                os.replace(half, path)
            except OSError:  # a full disk: the next child runs the reference again
                half.unlink(missing_ok=True)

    def _run_reference(self) -> bool:
        """Run the unscheduled program; true if its outputs may hold NaN before.

        They may where what was in them makes no difference: a program that adds to an output needs numbers there.
        """
        import numpy as np

        from codegen.build import build

        function = build(self.mod, "llvm").entry
        self.written = function.written
        runs: list[list[Any]] = []
        for spoil in (True, False):
            args = [_copy(a) for a in self.inputs]
            if spoil:
                self.spoil(args)
            start = time.perf_counter()
            function(*args)
            self.seconds = time.perf_counter() - start
            runs.append(args)
            if spoil and not any(np.isnan(a).any() for a in self.outputs(args).values()):
                break
        spoilt = len(runs) == 1
        if spoilt:
            self.spoil(self.inputs)
        self.expected = self.outputs(runs[-1])
        return spoilt

    def spoil(self, args: list[Any]) -> None:
        """NaN in the outputs, so that an element which a candidate does not write is found."""
        for array in self.outputs(args).values():
            if array.dtype.kind == "f":
                array.fill(math.nan)

    def outputs(self, args: list[Any]) -> dict[int, Any]:
        """The arrays that the program may write, by position."""
        return {k: args[k] for k in sorted(self.written) if hasattr(args[k], "dtype")}

    def fault(self, args: list[Any]) -> str:
        """What is wrong with the arguments after a run of a candidate; empty if they are as expected."""
        import numpy as np

        for k, (param, array) in enumerate(zip(self.func.params, args)):
            if not isinstance(array, np.ndarray):
                continue
            buffer = self.func.buffer_map.get(param)
            name = param.name if buffer is None else buffer.name
            if k not in self.expected:
                if array.tobytes() != self.inputs[k].tobytes():
                    return f"{name} is an input, and was changed"
            elif array.tobytes() != self.expected[k].tobytes():
                wrong = _difference(
                    name, buffer.dtype if buffer is not None else None, self.expected[k], array, self.terms
                )
                if wrong:
                    return wrong
        return ""


def longest_sum(func: Any, sizes: dict[str, int]) -> int:
    """The most terms that a block of ``func`` reduces, as far as ``sizes`` tell.

    >>> from tir.library import rows
    >>> longest_sum(rows.row_sum(4, 100), {})
    100
    """
    from tir.arith import simplify
    from tir.expr import IntImm, Var, const
    from tir.stmt import Block
    from tir.visit import nodes_of, substitute

    nodes = list(nodes_of(func.body))
    values = {n: const(sizes[n.name], n.dtype) for n in nodes if isinstance(n, Var) and n.name in sizes}
    most = 1
    for block in (n for n in nodes if isinstance(n, Block)):
        extents = (simplify(substitute(i.dom.extent, values)) for i in block.iter_vars if i.iter_type == "reduce")
        most = max(most, math.prod(e.value for e in extents if isinstance(e, IntImm)))
    return most


def _difference(name: str, dtype: Any, expected: Any, actual: Any, terms: int) -> str:
    """How ``actual`` differs from ``expected`` by more than rounding; empty if it does not.

    A sum of n terms, one after the other, may be wrong by n roundings of the sum of their magnitudes (Higham, Accuracy and
    Stability of Numerical Algorithms, section 4.2); half of them are let pass,
    at most a thousandth.
    """
    import numpy as np

    from tir.interp.same_results import compare, usual_tolerance

    size = np.abs(np.nan_to_num(np.asarray(expected, np.float64))).mean() if expected.dtype.kind == "f" else 0.0
    try:
        if dtype is None:
            np.testing.assert_array_equal(actual, expected)
        else:
            grown = min(0.5 * terms * 2.0**-dtype.digits, 1e-3) if dtype.is_float else 0.0
            rtol = max(usual_tolerance(dtype), grown)
            compare(name, dtype, expected, actual, rtol, max(1e-5, grown) * float(size), "the candidate")
    except AssertionError as error:
        return str(error)
    return ""


def _copy(value: Any) -> Any:
    """A copy of an argument, on a boundary of 64 bytes."""
    import numpy as np

    from tir.interp.named_arguments import aligned_zeros
    from tir.interp.same_results import copied

    if not isinstance(value, np.ndarray) or not value.flags.c_contiguous:
        return copied(value)
    made = aligned_zeros(value.shape, value.dtype)
    made[...] = value
    return made


@functools.cache
def _filling() -> Any:
    """An array that leaves no room in the caches, up to 256 MiB."""
    import numpy as np

    from tir.target import cache_bytes

    return np.zeros(min(256 << 20, max(2 * cache_bytes(2), cache_bytes(3))) // 8)


def fill_caches() -> None:
    """Read and write so much that nothing else stays in the caches."""
    array = _filling()
    array += 1.0


class _Once:
    """What a candidate computes of its constant parameters: once, before it is timed."""

    def __init__(self, func: Any, folded: Any, target: Any):
        from codegen.build import build
        from tir.schedule.constants import places

        self.program = folded.program
        self._kept, self._sources = places(func, folded.program), places(func, folded.maker)
        self._made = folded.maker.buffers()[len(self._sources) :]
        self._maker = build(folded.maker, target)

    @staticmethod
    def of(mod: Any, target: Any) -> _Once | None:
        """None for a program of several functions, and for one of which nothing can be folded."""
        from tir.annotations import BY_NUMBER, CONSTANT
        from tir.function import IRModule

        func, *others = IRModule.of(mod).functions.values()
        if others or not (CONSTANT in func.attrs or BY_NUMBER in func.attrs):
            return None
        from tir.schedule.constants import at_each_call, fold_constants

        return None if at_each_call(func) is func else _Once(func, fold_constants(func), target)

    def arguments(self, args: list[Any]) -> list[Any]:
        """The arguments at each call, in the place of those of the whole program."""
        import numpy as np

        from tir.interp.numbers import storage_dtype

        made = [np.empty([int(size) for size in b.shape], storage_dtype(b.dtype)) for b in self._made]
        self._maker.entry(*(args[n] for n in self._sources), *made)
        return [*(args[n] for n in self._kept), *made]


class Loaded:
    """A candidate that was built: its module, and its arguments once they are checked."""

    def __init__(self, mod: Any, target: dict[str, Any]):
        from codegen.build import build
        from tir.target import Target

        start = time.perf_counter()
        self.once = _Once.of(mod, target) if Target.of(target).kind == "llvm" else None
        self.module = build(mod if self.once is None else self.once.program, target)
        self.seconds = time.perf_counter() - start
        self.args: list[Any] = []
        self.made: list[Any] = []
        self.timed: Callable[[], Any] | None = None

    def run(self, task: Task) -> float:
        """Run once on fresh arguments; returns the seconds."""
        place = getattr(self.module, "array", None)
        args = [_copy(a) for a in task.inputs]
        args = args if place is None else [place(a) if hasattr(a, "shape") else a for a in args]
        self.args = args if self.once is None else self.once.arguments(args)
        start = time.perf_counter()
        self.module.entry(*self.args)
        self.made = [a.numpy() if hasattr(a, "numpy") else a for a in args]
        return time.perf_counter() - start

    def compare(self, task: Task) -> str:
        """What is wrong with what it made, empty if nothing: then it is ready to be timed."""
        wrong = task.fault(self.made)
        self.made = []
        if not wrong and task.target["kind"] == "llvm":
            self.timed = self.module.entry.prepared(*self.args)
        return wrong

    def time(self, number: int, groups: int, task: Task) -> float:
        """Seconds of a call: the least over ``groups`` of ``number`` calls in a row, or of one after the caches were
        filled with something else. Of this thread alone, if the program runs on one; the time of several has the waiting
        for those that the system has put aside."""
        run, number = self.timed, 1 if task.cold else number
        if run is None:
            return self.module.time_evaluator(number=number * groups, repeat=1)(*self.args).min
        clock = time.thread_time if task.serial else time.perf_counter
        least = math.inf
        for _ in range(groups):
            if task.cold:
                fill_caches()
            start = clock()
            for _ in range(number):
                run()
            least = min(least, clock() - start)
        return least / number


class Server:
    """Answers commands: each method of that name takes the command, and the program if there is one."""

    def __init__(self) -> None:
        self._task: Task | None = None
        self._loaded: dict[int, Loaded] = {}

    @property
    def _current(self) -> Task:
        assert self._task is not None, "no task was given"
        return self._task

    def hello(self, about: dict[str, Any], mod: Any) -> dict[str, Any]:
        """``about["bytes"]`` limits the memory of this process."""
        if about.get("bytes"):
            _limit_memory(int(about["bytes"]))
        from codegen.build import build
        from tir.script import parse

        build(parse(_WARM_UP), "llvm")  # imports and starts what the first candidate would else wait for
        return {"pid": os.getpid()}

    def task(self, about: dict[str, Any], mod: Any) -> dict[str, Any]:
        self._loaded.clear()
        self._task = Task(mod, about)
        return {"seconds": self._task.seconds}

    def build(self, about: dict[str, Any], mod: Any) -> dict[str, Any]:
        made = Loaded(mod, about["target"])
        if about["keep"]:
            self._loaded[about["id"]] = made
        return {"seconds": made.seconds}

    def run(self, about: dict[str, Any], mod: Any) -> dict[str, Any]:
        return {"seconds": self._loaded[about["id"]].run(self._current)}

    def compare(self, about: dict[str, Any], mod: Any) -> dict[str, Any]:
        return {"wrong": self._loaded[about["id"]].compare(self._current)}

    def time(self, about: dict[str, Any], mod: Any) -> dict[str, Any]:
        return {"seconds": self._loaded[about["id"]].time(about["number"], about["groups"], self._current)}

    def drop(self, about: dict[str, Any], mod: Any) -> dict[str, Any]:
        self._loaded.pop(about["id"], None)
        return {}


def _limit_memory(size: int) -> None:
    """Let this process have so many bytes; what it has is not written to disk where a candidate ends it."""
    try:
        import resource
    except ImportError:  # Windows
        return
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    bounded = size if most == resource.RLIM_INFINITY else min(size, most)
    resource.setrlimit(resource.RLIMIT_AS, (bounded, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _read(stream: BinaryIO, commands: SimpleQueue[tuple[dict[str, Any], bytes]]) -> None:
    """Commands into the queue. When the other side is gone, this process ends at once, whatever it is running."""
    while True:
        head = stream.read(HEAD.size)
        if len(head) < HEAD.size:
            os._exit(0)
        about, program = HEAD.unpack(head)
        commands.put((json.loads(stream.read(about)), stream.read(program)))


def answer(server: Any, about: dict[str, Any], program: bytes) -> dict[str, Any]:
    """The answer to one command; an exception is one too."""
    try:
        mod = pickle.loads(program) if program else None
        return getattr(server, about["do"])(about, mod)
    except Exception as error:  # whatever a candidate raises is a result
        return {"error": f"{type(error).__name__}: {error}"[:4000]}


def main(module: str) -> None:
    """Let the ``Server`` of a module answer until standard input ends."""
    server = importlib.import_module(module).Server()
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a program prints must not look like an answer
    commands: SimpleQueue[tuple[dict[str, Any], bytes]] = SimpleQueue()
    threading.Thread(target=_read, args=(os.fdopen(os.dup(0), "rb"), commands), daemon=True).start()
    while True:
        made = answer(server, *commands.get())
        text = json.dumps(made, default=_plain).encode()
        replies.write(struct.pack("<I", len(text)) + text)
        replies.flush()


def _plain(value: Any) -> Any:
    number = float(value)
    return number if math.isfinite(number) else None
