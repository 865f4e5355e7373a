"""Names that are not taken, and names made from others that stay readable."""

from __future__ import annotations

from collections.abc import Container

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
