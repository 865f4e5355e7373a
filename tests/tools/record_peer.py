"""Record what TVM makes of the cases of ``peer_cases``: ``python tests/tools/record_peer.py`` with a Python that has it.

Nothing else needs TVM: the tests read ``golden/beside_tvm.txt``, which this writes.
"""

from __future__ import annotations

import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path.append(str(TESTS))

from peer_cases import Case, cases  # noqa: E402


def _names_of_peer(text: str) -> str:
    for ours, theirs in (
        ("@T.prim_func", "@T.prim_func(s_tir=True)"),
        ("T.block(", "T.sblock("),
        ("T.alloc_buffer(", "T.sblock_alloc_buffer("),
        ("s.get_block(", "s.get_sblock("),
    ):
        text = text.replace(ours, theirs)
    return text


def record(case: Case) -> str:
    """The program that TVM makes, or the first line of its refusal."""
    from tvm.s_tir import Schedule
    from tvm.script import from_source

    s = Schedule(from_source(_names_of_peer(case.program)))
    try:
        names = {"s": s}
        exec(_names_of_peer(case.steps), names, names)
    except Exception as error:
        return f"refused: {type(error).__name__}"
    lines = s.mod["main"].script(show_meta=False).splitlines()
    said = ("#", "T.reads(", "T.writes(")  # comments, and regions that the parser finds by itself
    return "\n".join(line for line in lines if line and not line.strip().startswith(said))


def main() -> None:
    import tvm

    parts = [f"TVM {tvm.__version__}\n"]
    for case in cases():
        parts.append(f"== {case.name}\n{record(case).strip()}\n")
    (TESTS / "golden" / "beside_tvm.txt").write_text("".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
