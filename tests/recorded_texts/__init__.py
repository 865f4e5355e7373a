"""What the product computes as text, compared with records of it: nearly any change of behaviour shows.

A group is a file of this package with ``CASES``: for each name a function that yields pairs of a label and a text, such as
the program of an operator, that program scheduled, lowered, and as LLVM assembly. ``tests/golden/texts/GROUP.txt`` has a
line for each name with a digest of each text; the lines are sorted, so that changes of several people merge.

``python -m tests.recorded_texts [GROUP…]`` records what there is now; ``pytest --update-golden`` does so for the tests that
it runs. ``python -m tests.tools.replay --against REVISION --only texts/GROUP/NAME`` shows what changed, as diffs.

Texts are the same on each machine, with each Python and in each order of tests: no time, path, address or cache size of
this machine is in them, and schedules are for targets that say all that they are (:mod:`.stages`).
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

GOLDEN = Path(__file__).parents[1] / "golden" / "texts"
GROUPS = sorted(p.stem for p in Path(__file__).parent.glob("*.py") if p.stem not in ("__init__", "__main__", "stages"))
SHOWN, WIDTH = 40, 200  # lines of a text that an error shows, and characters of each

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")  # of Python's objects
_PLACE = re.compile(re.escape(f"{GOLDEN.parents[2]}/") + r"(\S+?):\d+")  # a line of this checkout that an error names

Case = Callable[[], Iterable[tuple[str, str]]]


def cases(group: str) -> Mapping[str, Case]:
    """The cases of a group by their names, sorted."""
    found: Mapping[str, Case] = importlib.import_module(f"{__name__}.{group}").CASES
    assert not any(set(name) & set(" \n") for name in found), "names are one word"
    return dict(sorted(found.items()))


def texts(group: str, name: str) -> dict[str, str]:
    """The texts of a case by their labels."""
    made: dict[str, str] = {}
    for label, text in cases(group)[name]():
        assert label not in made, f"{group}/{name} has two texts {label}"
        made[label] = _PLACE.sub(r"\1", _ADDRESS.sub("", text))
    return made


def digests(found: Mapping[str, str]) -> dict[str, str]:
    return {label: hashlib.sha256(text.encode()).hexdigest()[:8] for label, text in found.items()}


def recorded(group: str) -> dict[str, dict[str, str]]:
    """The recorded digests of each case of a group."""
    file = GOLDEN / f"{group}.txt"
    return _read(file.read_text("utf-8")) if file.is_file() else {}


@functools.cache
def _read(text: str) -> dict[str, dict[str, str]]:
    lines = (line.split(" ") for line in text.splitlines())
    return {name: dict(word.rsplit(":", 1) for word in words) for name, *words in lines}


def write(group: str, found: Mapping[str, Mapping[str, str]]) -> None:
    """Record the digests ``found`` of a whole group."""
    GOLDEN.mkdir(exist_ok=True)
    lines = [" ".join([name, *(f"{k}:{v}" for k, v in found[name].items())]) for name in sorted(found)]
    (GOLDEN / f"{group}.txt").write_text("".join(f"{line}\n" for line in lines), "utf-8")


def check(group: str, name: str, update: bool = False) -> None:
    """Raise ``AssertionError`` where a text is not what is recorded; with ``update``, record it."""
    made = texts(group, name)
    now, before = digests(made), recorded(group).get(name, {})
    if update:
        kept = {n: d for n, d in recorded(group).items() if n in cases(group)}
        write(group, {**kept, name: now})
    elif now != before:
        labels = [label for label in {**before, **now} if now.get(label) != before.get(label)]
        raise AssertionError(_changed(f"texts/{group}/{name}", group, labels, made, is_new=not before))


def _changed(place: str, group: str, labels: list[str], made: Mapping[str, str], is_new: bool) -> str:
    first = labels[0]
    whole = made.get(first, "there is no such text now").splitlines()
    lines = [e if len(e) <= WIDTH else f"{e[:WIDTH]} … {len(e) - WIDTH} more characters" for e in whole]
    more = [f"… {len(lines) - SHOWN} more lines"] if len(lines) > SHOWN else []
    record = f"python -m tests.recorded_texts {group}"
    changed = [
        f"{place}: not what is recorded: {', '.join(labels)}",
        f"to see what changed: python -m tests.tools.replay --against HEAD --only {place}",
        f"if it is meant:      {record}",
    ]
    new = [f"{place}: a new case, of which nothing is recorded", f"if it is as meant: {record}"]
    return "\n".join([*(new if is_new else changed), f"== {first} is now", *lines[:SHOWN], *more])
