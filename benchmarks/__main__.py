"""Our speed against the machine's limit and other libraries, as ratios measured in one run.

``python -m benchmarks [--quick]``. Peers are the libraries of this Python, and those of the Python given by
``--peers-python`` (or the variable ``TIR_BENCH_PEERS``). Writes out/results.json, out/results.md and out/results.svg.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

OUT = pathlib.Path(__file__).parent / "out"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true", help="one or two sizes of each kind, fewer rounds")
    options.add_argument("--only", default="", help="kinds of work, separated by commas")
    options.add_argument("--threads", default="", help="numbers of threads, separated by commas (default: 1 and all)")
    options.add_argument("--peers-python", default=os.environ.get("TIR_BENCH_PEERS"), help="a Python with torch …")
    options.add_argument("--tvm-python", help="a Python with apache-tvm, to time its primitives beside ours")
    options.add_argument("--out", type=pathlib.Path, default=OUT, help="folder of the results")
    args = options.parse_args()
    with tempfile.TemporaryDirectory() as cache:  # builds are timed cold
        os.environ["TIR_CACHE_DIR"] = cache
        _run(args)


def _run(args: argparse.Namespace) -> None:
    from . import primitives, report
    from .peers import Peer, available
    from .run import measure
    from .work import works

    latency = list(primitives.measure())
    if args.tvm_python:
        latency += _tvm_rows(args.tvm_python)
    print(report.machine())
    for row in latency:
        print(f"{row['what']:<44}{row['value']:>12.3g}  {row['unit']}")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    counts = [int(n) for n in args.threads.split(",") if n] or sorted({1, cores})
    only = [kind for kind in args.only.split(",") if kind]
    pythons = available(args.peers_python)
    rows, peaks = [], {}
    for threads in counts:
        peers = [Peer(name, python, threads) for name, python in pythons.items()]
        for work in works(args.quick):
            if only and work.kind not in only:
                continue
            rows.append(measure(work, threads, peers, 5 if args.quick else 9, peaks))
            print(*report.cells(rows[-1], report.columns(rows)), sep="  ", flush=True)
        for peer in peers:
            peer.close()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    args.out.mkdir(parents=True, exist_ok=True)
    found = {"machine": report.machine(), "latency": latency, "rows": rows, "peak_memory_mib": memory}
    (args.out / "results.json").write_text(json.dumps(found, indent=1))
    (args.out / "results.svg").write_text(report.as_svg(rows))
    (args.out / "results.md").write_text(report.as_markdown(rows) + "\n")
    print(f"\n{report.as_text(rows)}\n")
    for label, name, mean, count in report.means(rows):
        print(f"{label:<32} against {name:<20} {mean:5.2f}  ({count})")
    print(f"peak memory of this process {memory:.0f} MiB; results in {args.out}")


def _tvm_rows(python: str) -> list[dict]:
    script = pathlib.Path(__file__).with_name("tvm_primitives.py")
    done = subprocess.run([python, str(script)], capture_output=True, text=True)
    if done.returncode:
        print(f"TVM could not be timed: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        return []
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
