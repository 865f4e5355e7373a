"""One command, one table: schedule latency, compile time and matmul speed, as ratios taken in this run."""

from __future__ import annotations

import argparse
import json
import pathlib
import subprocess
import sys

from . import primitives, sgemm

OUT = pathlib.Path(__file__).parent / "out"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--tvm-python", help="a Python with apache-tvm, to time beside ours")
    args = options.parse_args()
    rows = [*primitives.measure(), *sgemm.measure()]
    if args.tvm_python:
        rows += _tvm_rows(args.tvm_python)
    print(f"{'what':<44}{'value':>12}  unit")
    for row in rows:
        print(f"{row['what']:<44}{row['value']:>12.3g}  {row['unit']}")
    OUT.mkdir(exist_ok=True)
    (OUT / "results.json").write_text(json.dumps(rows, indent=1))


def _tvm_rows(python: str) -> list[dict]:
    script = pathlib.Path(__file__).with_name("tvm_primitives.py")
    done = subprocess.run([python, str(script)], capture_output=True, text=True)
    if done.returncode:
        print(f"TVM could not be timed: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        return []
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
