"""The disk cache: files written atomically, each ending in the hash of its name and of the checksum of its content.

:func:`tir.config.cache_folder` says where it is; ``TIR_CACHE=0`` disables the cache, and so does a user without a home
directory.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tir.config import cache_folder

FORMAT = 3  # version of the files: others are ignored


def place(key: str, suffix: str) -> Path | None:
    """The path of the file of ``key`` (hex digits); None if the cache is disabled."""
    if os.environ.get("TIR_CACHE", "1") == "0":
        return None
    folder = cache_folder()
    return None if folder is None else folder / f"v{FORMAT}" / key[:2] / f"{key}{suffix}"


def read(path: Path, warn: bool = True) -> bytes | None:
    """The cached content; None if there is none, or (with a warning, unless ``warn`` is false) it is damaged."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    content, digest = data[:-32], data[-32:]
    if _digest(path, content) != digest:
        if warn:
            warnings.warn(f"the cached file {path} is damaged; compiling again", RuntimeWarning, stacklevel=2)
        return None
    return content


def read_into(path: Path, memory: Callable[[int], Any]) -> Any:
    """As :func:`read`, the content in the ``memory`` of a number of bytes."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size - 32
            content = memory(size) if size >= 0 else None
            read = -1 if content is None else file.readinto(content)
            digest = file.read()
    except OSError:
        return None
    if read != size or _digest(path, content) != digest:
        warnings.warn(f"the cached file {path} is damaged; compiling again", RuntimeWarning, stacklevel=2)
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # for :func:`trim`
    return content


def write(path: Path, content: Any) -> None:
    """Write a temporary file and rename it, so that readers see all of it or nothing. Failure is not an error; an interrupt leaves no file."""
    name = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.write(_digest(path, content))
        os.replace(name, path)
        name = None
    except OSError:
        pass  # a full disk
    finally:
        if name is not None:
            with contextlib.suppress(OSError):
                os.unlink(name)


def trim(path: Path, most: int) -> None:
    """Remove cached files with the suffix of ``path``, least recently used first, until the rest take at most ``most`` bytes. The last one used stays."""
    found = []
    for file in path.parent.parent.glob(f"*/*{path.suffix}"):
        with contextlib.suppress(OSError):  # removed by another process
            found.append((file.stat().st_mtime_ns, file.stat().st_size, file))
    total = sum(size for _, size, _ in found)
    for _, size, file in sorted(found)[:-1]:
        if total <= most:
            break
        with contextlib.suppress(OSError):
            file.unlink()
        total -= size


def _digest(path: Path, content: Any) -> bytes:
    """What a file ends in: it shows damage. (A hash of the content would take three times as long as reading it.)"""
    about = f"{path.name}\n{memoryview(content).nbytes} {zlib.crc32(content)}"
    return hashlib.sha256(about.encode()).digest()
