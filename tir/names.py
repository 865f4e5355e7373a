"""Names that are not taken, names made from others that stay readable, and names like a misspelled one."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable

LONGEST = 48  # letters of a name that a step makes from the names of others


def unique_name(name: str, taken: Container[str]) -> str:
    """``name``, or the first of ``name_1``, ``name_2`` … that is not in ``taken``.

    >>> unique_name("i", {"i", "i_1"})
    'i_2'
    """
    if name not in taken:
        return name
    number = 1
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"


def claimed(name: str, taken: set[str]) -> str:
    """A :func:`unique_name`, which is ``taken`` from then on."""
    made = unique_name(name, taken)
    taken.add(made)
    return made


def identifier(name: str) -> str:
    """``name`` as a name of the dialect: ``pad.temp`` becomes ``pad_temp``."""
    made = re.sub(r"\W", "_", name)
    return made if made.isidentifier() else f"_{made}"


def near_names(name: str, known: Iterable[str]) -> list[str]:
    """The names in ``known`` that resemble ``name``, best first; all of them (at most 24) if none does, or if ``name`` is
    too short to tell.

    >>> near_names("vectorise", ["split", "vectorize"]), near_names("x", ["i", "j"])
    (['vectorize'], ['i', 'j'])
    """
    known = list(dict.fromkeys(known))
    return (resembling(name, known) if len(name) > 2 else []) or known[:24]


def resembling(name: str, known: Iterable[str], likeness: float = 0.6) -> list[str]:
    """The three names in ``known`` that resemble ``name`` most, best first."""
    import difflib

    return difflib.get_close_matches(name, list(known), 3, likeness)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown ``name``; empty if no name in ``known`` resembles it.

    >>> did_you_mean("vectorise", ["split", "vectorize"])
    '; did you mean vectorize?'
    """
    found = resembling(name, known)
    return f"; did you mean {', '.join(found)}?" if found else ""


def derived_name(stem: str, suffix: str, taken: Container[str]) -> str:
    """A name not in ``taken`` made of ``stem``, itself made by steps, and ``suffix``.

    A long stem is cut to its distinct words, so that names stay bounded however many steps follow each other.

    >>> derived_name("i_j", "_fused", {"i_j_fused"})
    'i_j_fused_1'
    >>> derived_name("i_0_j_0_fused_0_i_0_j_0_fused_1_i_1_j_1_fused_0", "_fused", ())
    'i_j_fused'
    """
    if len(stem) + len(suffix) > LONGEST:
        words = dict.fromkeys(word for word in stem.split("_") if word and not word.isdigit() and word != "fused")
        stem = "_".join(words)[: LONGEST - len(suffix)].rstrip("_") or "loop"
    return unique_name(stem + suffix, taken)
