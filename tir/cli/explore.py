"""The verb that opens the explorer."""

from __future__ import annotations

import argparse
import sys

from .program_files import scheduled
from .verbs import PROGRAM, Answer, option, verb


@verb(
    "tir explore kernels.py:double --no-browser --seconds 0.1",
    PROGRAM,
    option("--target", help="what it is scheduled for, as 'llvm' or 'cuda -arch=sm_80'"),
    option("--host", default="127.0.0.1", help="the address to listen at (default: this machine only)"),
    option("--port", type=int, default=0, help="the port (default: any free one)"),
    option("--no-browser", action="store_true", help="print the address, and open nothing"),
    option("--seconds", type=float, help="stop after this time (default: when interrupted)"),
)
def explore(options: argparse.Namespace) -> Answer:
    """Schedule it in a browser, by mouse; then print the steps that were taken.

    The address has a secret: whoever has it may take steps, and nobody else. Ctrl-C ends it."""
    import webbrowser

    from ..notebook.server import Server

    schedule = scheduled(options.program, options.target)
    with Server(schedule, options.host, options.port) as server:
        print(f"the explorer is at {server.url}", file=sys.stderr, flush=True)
        if not options.no_browser:
            webbrowser.open(server.url)
        server.wait(options.seconds)
    steps = schedule.trace.as_python()
    return Answer(steps, {"steps": len(schedule.history) - 1, "python": steps})
