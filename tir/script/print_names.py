"""Names for variables and buffers in printed programs: legal, unique where scopes overlap, reused in siblings."""

from __future__ import annotations

import keyword
import unicodedata
from typing import Any

_RESERVED = {*keyword.kwlist, "T", "I", "range", "float", "int", "bool", "min", "max", "len", "tuple", "list", "dict"}


def legal(name: str, default: str = "v") -> str:
    """``name`` as a Python identifier, as the parser reads it, that does not shadow a name of the dialect.

    >>> legal("threadIdx.x"), legal("lambda"), legal("1"), legal("x²")
    ('threadIdx_x', 'lambda_', 'v1', 'x2')
    """
    text = unicodedata.normalize("NFKC", str(name)) or default
    if not text.isidentifier():
        text = "".join(c if f"v{c}".isidentifier() else "_" for c in text)
        text = text if text.isidentifier() else unicodedata.normalize("NFKC", default + text)
    return text + "_" if text in _RESERVED else text


class Names:
    """The names of variables and buffers, scope by scope."""

    def __init__(self) -> None:
        self.of: dict[Any, str] = {}
        self.live: set[str] = set()
        self.scopes: list[list[tuple[Any, str, str | None]]] = [[]]

    def push(self) -> None:
        self.scopes.append([])

    def pop(self) -> None:
        for item, name, before in reversed(self.scopes.pop()):
            self.live.discard(name)
            if before is None:
                self.of.pop(item, None)
            else:
                self.of[item] = before

    def define(self, item: Any, wanted: str) -> str:
        """A name for ``item`` until the scope ends."""
        base = legal(wanted)
        name = base
        if name in self.live:  # x, x_1, x_2: a name that ends in a number counts on from it
            stem, _, digits = base.rpartition("_")
            if not (stem and digits.isdecimal()):
                stem, digits = base, "0"
            count = int(digits)
            while name in self.live:
                count += 1
                name = f"{stem}_{count}"
        self.live.add(name)
        self.scopes[-1].append((item, name, self.of.get(item)))
        self.of[item] = name
        return name

    def reserved(self, wanted: str) -> str:
        """A name that nothing else gets, in any scope."""
        count, name = 1, f"{wanted}_1"
        while name in self.live:
            count += 1
            name = f"{wanted}_{count}"
        self.live.add(name)
        return name
