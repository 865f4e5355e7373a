"""Dataclasses that compile their ``__init__`` late are those of the standard library in all else."""

import copy
import dataclasses
import pickle

import pytest

from tir import lazy_dataclass


def classes(module, dataclass):
    """The same classes by either decorator, as attributes of ``module``."""

    @dataclass(frozen=True)
    class Frozen:
        a: int
        b: list = dataclasses.field(default_factory=list, compare=False)
        c: int = dataclasses.field(default=3, kw_only=True, repr=False)

    @dataclass(frozen=True)
    class Below(Frozen):
        d: int = 4

        def __post_init__(self):
            object.__setattr__(self, "sum", self.a + self.d)

    @dataclass
    class Open:
        a: int
        later: int = dataclasses.field(init=False, default=7)

        def __repr__(self):
            return f"<{self.a}>"

    @dataclass(frozen=True, eq=False)
    class ByIdentity:
        a: int = 1

    @dataclass(frozen=True)
    class Hashed:
        a: list

        def __hash__(self):
            return 5

    @dataclass(frozen=True)
    class Empty:
        pass

    for made in (Frozen, Below, Open, ByIdentity, Hashed, Empty):
        setattr(module, made.__name__, made)


class Late:
    pass


class Usual:
    pass


classes(Late, lazy_dataclass.dataclass)
classes(Usual, dataclasses.dataclass)

CALLS = {
    "Frozen(1)": lambda m: m.Frozen(1),
    "Frozen(1, [2], c=5)": lambda m: m.Frozen(1, [2], c=5),
    "Frozen()": lambda m: m.Frozen(),
    "Frozen(1, 2, 3)": lambda m: m.Frozen(1, 2, 3),
    "own lists": lambda m: m.Frozen(1).b is m.Frozen(1).b,
    "equal": lambda m: [m.Frozen(1) == m.Frozen(1, [9]), m.Frozen(1) == m.Frozen(2), m.Frozen(1) == m.Below(1), m.Frozen(1) == 1],
    "hash": lambda m: [hash(m.Frozen(1)) == hash(m.Frozen(1, [9])), hash(m.Hashed([])), hash(m.Empty()) == hash(m.Empty())],
    "no hash": lambda m: hash(m.Open(1)),
    "identity": lambda m: [m.ByIdentity() == m.ByIdentity(), len({m.ByIdentity(), m.ByIdentity()})],
    "below": lambda m: (m.Below(1), m.Below(1).sum, m.Below(1, d=2).sum),
    "set": lambda m: setattr(m.Frozen(1), "a", 2),
    "set another": lambda m: setattr(m.Frozen(1), "z", 2),
    "set below": lambda m: setattr(m.Below(1), "a", 2),
    "delete": lambda m: delattr(m.Frozen(1), "a"),
    "open": lambda m: (m.Open(1), m.Open(1).later, m.Open(1) == m.Open(1), setattr(m.Open(1), "a", 2)),
    "given later": lambda m: m.Open(1, 2),
    "replace": lambda m: dataclasses.replace(m.Below(1), a=5),
    "copy": lambda m: copy.copy(m.Frozen(1, [2])),
    "as a dict": lambda m: dataclasses.asdict(m.Below(1)),
    "empty": lambda m: (m.Empty(), m.Empty() == m.Empty()),
    "match": lambda m: (m.Frozen.__match_args__, m.Below.__match_args__),
}  # fmt: skip


def outcome(call, module):
    try:
        return repr(call(module))
    except Exception as error:
        return type(error).__name__, str(error)


@pytest.mark.parametrize("name", CALLS)
def test_instances_are_those_of_usual_dataclasses(name):
    assert outcome(CALLS[name], Late) == outcome(CALLS[name], Usual)


def test_frozen_classes_of_both_kinds_may_be_below_each_other():
    @dataclasses.dataclass(frozen=True)
    class Usual(Late.Frozen):
        d: int = 0

    @lazy_dataclass.dataclass(frozen=True)
    class Again(Usual):
        e: int = 1

    assert repr(Again(1)).endswith("Again(a=1, b=[], d=0, e=1)")
    with pytest.raises(dataclasses.FrozenInstanceError):
        Again(1).e = 2


@lazy_dataclass.dataclass(frozen=True)
class Kept:
    a: int
    b: str = "x"


def test_instances_are_pickled_before_and_after_the_first_is_made():
    data = pickle.dumps(Kept(1))
    assert pickle.loads(data) == Kept(1)
