"""Exact integer sets and relations: the only package that imports islpy, on first use."""

from .formula import Formula, Names
from .relation import IntegerSet, NotAffine, Relation, Together, TooLong, Undecided, decide, everything

__all__ = [
    "Formula",
    "IntegerSet",
    "Names",
    "NotAffine",
    "Relation",
    "Together",
    "TooLong",
    "Undecided",
    "decide",
    "everything",
]
