"""Static archives of one object, as ``ar rcs`` makes them: an index of symbols, and the object under its name."""

from __future__ import annotations

from .objects import LOCAL, read

_MAGIC, _HEAD = b"!<arch>\n", 60


def archive(name: str, member: bytes) -> bytes:
    """The archive of the object ``member``, called ``name``. The object may have other data behind it. Raises ``BuildError``
    for what is no object of ELF."""
    symbols = [s.name for s in read(member).symbols if s.binding != LOCAL and s.section is not None]
    names = _part("//", "", _even(f"{name}/\n".encode(), b"\n")) if len(name) > 15 else b""
    texts = b"".join(symbol.encode() + b"\0" for symbol in symbols)
    size = len(_even(bytes(4 + 4 * len(symbols) + len(texts))))
    start = len(_MAGIC) + _HEAD + size + len(names)
    index = b"".join(number.to_bytes(4, "big") for number in (len(symbols), *[start] * len(symbols))) + texts
    whole = _part("/", _owner(0), index.ljust(size, b"\0")) + names
    return _MAGIC + whole + _even(_part("/0" if names else f"{name}/", _owner(644), member), b"\n")


def member(data: bytes) -> bytes:
    """The object of an :func:`archive`, with what is behind it; other data as they are.

    >>> member(b"no archive"), member(_MAGIC + _part("a.o/", _owner(644), b"held"))
    (b'no archive', b'held')
    """
    held, start = data, len(_MAGIC)
    while data.startswith(_MAGIC) and (size := data[start + 48 : start + 58].strip()).isdigit():
        held, start = data[start + _HEAD : start + _HEAD + int(size)], start + _HEAD + int(size) + int(size) % 2
    return held


def _owner(mode: int) -> str:
    """A date of 0 and nobody, so that the same object gives the same archive."""
    return f"{0:<12}{0:<6}{0:<6}{mode:<8}"


def _part(name: str, owner: str, data: bytes) -> bytes:
    return f"{name:<16}{owner:<32}{len(data):<10}`\n".encode() + data


def _even(data: bytes, rest: bytes = b"\0") -> bytes:
    return data + rest * (len(data) % 2)
