"""Golden cases of the primitives: files of a program, steps, and what must come of them.

A file ``golden/primitives/<primitive>/<case>.txt`` has the sections ``before`` (a program in the dialect; ``before n=7``
gives symbolic sizes for the run), ``steps`` (lines of Python on ``sch``), and ``after`` (the program that results) or
``refused`` (the message of the last step, all others being accepted). To add a case, write the first two and run
``pytest --update-golden``; read what it adds.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from golden_cases import CASES, GOLDEN, perform, program_of, read
from prim_checks import same


def outcome(path: Path, sections: dict[str, str]) -> tuple[str, str]:
    """``("after", program)`` or ``("refused", message)``, once the other oracles hold."""
    title = next(t for t in sections if t.split()[0] == "before")
    sizes = {k: int(v) for k, v in (item.split("=") for item in title.split()[1:])}
    sch, refusal = perform(sections[title], sections["steps"])
    assert f"sch.{path.parent.name}(" in sections["steps"], "the steps do not use the primitive of the folder"
    if refusal is None:
        if "unsafe" not in sections["steps"]:
            same(sch, **sizes)
        return "after", sch.mod["main"].script().strip()
    text = str(refusal)
    assert "fault inside" not in text, text
    return "refused", text.strip()


@pytest.mark.parametrize("path", CASES, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_case(path, request):
    sections = read(path)
    kind, text = outcome(path, sections)
    if request.config.getoption("--update-golden"):
        kept = [(t, s) for t, s in sections.items() if t not in ("after", "refused")]
        path.write_text("\n".join(f"== {t}\n{s}\n" for t, s in [*kept, (kind, text)]), encoding="utf-8")
        return
    wanted = [k for k in ("after", "refused") if k in sections]
    assert wanted, f"{path} says neither what comes after nor what is refused: run pytest --update-golden and read it"
    assert (kind, text) == (wanted[0], sections[wanted[0]])


def test_there_are_many_and_of_every_primitive():
    from tests.tools.generated.primitives_page import ours

    assert len(CASES) >= 400
    missing = [name for name in ours() if not list((GOLDEN / name).glob("*.txt"))]
    assert not missing, f"write a case in golden/primitives/NAME, for NAME in {missing}"


def test_no_two_cases_are_the_same():
    seen: dict[tuple[str, str], Path] = {}
    for path in CASES:
        sections = read(path)
        key = (program_of(sections), sections["steps"])
        assert key not in seen, f"{path} repeats {seen[key]}"
        seen[key] = path
