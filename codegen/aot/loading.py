"""A saved file back in Python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tir.errors import BuildError, RunError

from .. import container
from ..llvm.compile import Library, Loaded
from ..llvm.cpu_features import Needs
from ..llvm.text import own_name
from ..runtime.openmp import VARIABLES

# Beside an object that is loaded, which nothing links with OpenMP; a module loaded here has its own team of threads.
_ONE_THREAD = """\
define void @GOMP_parallel(ptr %f, ptr %data, i32 %n, i32 %flags) {
  call void %f(ptr %data)
  ret void
}
define i32 @omp_get_thread_num() {
  ret i32 0
}
define i32 @omp_get_num_threads() {
  ret i32 1
}
"""


class Saved:
    """The loaded code of a file that :func:`write` made, by the names that code in memory has, and its description.
    Raises ``RunError`` for a file that this CPU cannot run, ``BuildError`` for one that cannot be loaded."""

    def __init__(self, file: container.File):
        functions: dict[str, Any] = file.field("functions", {str: {"script": str, "written": [int]}})
        self.functions = {name: _SavedFunction(**entry) for name, entry in functions.items()}
        self.messages: list[str] = file.field("messages", [str])
        self.packed: list[Any] = file.field("packed", [{"name": str, "args": [(str, str)], "result": str}])
        self.parallel: bool = file.field("parallel", bool)
        self._prefix: str = file.field("prefix", str)
        cpu, features, triple = file.field("needs", (str, [str], str))
        self.needs = Needs(cpu, tuple(features), triple)
        refusal = self.needs.refusal()
        if refusal is not None:
            raise RunError(f"{file.name}: {refusal}")
        try:
            as_object = file.kind == "object"
            self._code = Loaded(file.code, beside=_ONE_THREAD) if as_object else Library(file.code)
        except (OSError, RuntimeError) as error:
            raise BuildError(f"{file.name} is not a library that can be loaded here: {error}") from error
        wanted = ["__tir_packed"] * bool(self.packed) + [f"__tir_{name}" for name in VARIABLES] * self.parallel
        missing = [name for name in self.functions if not self.function(own_name(name))]
        missing += [name for name in wanted if not self.variable(name)]
        if missing:
            raise BuildError(f"{file.name} has no code for {', '.join(missing)}, which it describes")
        self._code.release_by(f"{self._prefix}__tir_release")

    def function(self, name: str) -> int:
        return self._code.function(f"{self._prefix}{name}")

    def variable(self, name: str) -> int:
        return self._code.variable(f"{self._prefix}{name}")


@dataclass(frozen=True)
class _SavedFunction:
    """A function of a saved file: its signature as text, the positions of parameters it writes."""

    script: str
    written: list[int]
