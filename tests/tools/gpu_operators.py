"""``python -m tests.tools.gpu_operators [NAME…]``: compile every case of operators (default: all) with its default schedule
for a GPU, by NVRTC; no device is needed. Prints what does not compile, and ends with 1 if there is anything.
"""

from __future__ import annotations

import sys

import tir
from codegen.cuda import nvrtc
from codegen.cuda.kernel import emit_kernel, source_of
from codegen.cuda.module import is_kernel
from tir import ops
from tir.errors import TirError
from tir.ops.check import Judged

TARGET = tir.Target("cuda", arch="sm_80")


def compile_cases(name: str) -> None:
    """Compile all cases of an operator as one program. Raises ``TirError`` for the first that cannot be."""
    found = ops.find(name)
    functions = {}
    for n, case in enumerate(found.cases):
        func = Judged(found, case, name=f"case{n}").func
        functions[f"case{n}"] = ops.schedule(func, TARGET).mod["main"]
    lowered = tir.lower(tir.IRModule(functions), target=TARGET)
    text = source_of([emit_kernel(f, n) for n, f in lowered.items() if is_kernel(f)])
    if text:
        nvrtc.compile_ptx(text, "sm_80", name)


def main(names: list[str]) -> int:
    failed = 0
    for name in names or ops.operators():
        try:
            compile_cases(name)
        except TirError as error:
            failed += 1
            print(f"{name}: {str(error)[:500]}", flush=True)
    print(f"{failed} operators do not compile")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
