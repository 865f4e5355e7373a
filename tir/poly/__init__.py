"""Exact integer sets and relations: the only package that imports islpy, on first use."""

from .formula import Formula, Names
from .relation import IntegerSet, NotAffine, Relation, Together, TooLong, Undecided, bounded, everything

__all__ = [
    "Formula",
    "IntegerSet",
    "Names",
    "NotAffine",
    "Relation",
    "Together",
    "TooLong",
    "Undecided",
    "bounded",
    "everything",
]
