"""The disk cache: files written atomically, each ending in the hash of its name and of the checksum of its content.

:func:`tir.config.cache_folder` says where it is; ``TIR_CACHE=0`` disables the cache, and so does a user without a home
directory.
"""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import os
import warnings
import zlib
from pathlib import Path
from typing import Any

from tir.config import cache_folder

FORMAT = 3  # version of the files: others are ignored
NOTED = ".checked"  # of the file beside another that has the version whose checksum was right


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
            _warn_of_damage(path)
        return None
    return content


def mapped(path: Path) -> Any:
    """As :func:`read`, the content in memory that is mapped: its pages are read when they are needed, processes share them, and what one of them writes
    there is its own. The checksum of a file that is as it was when that was last computed is not computed again."""
    try:
        with path.open("rb") as file:
            held = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
            now = version(file)
    except (OSError, ValueError) as error:
        if isinstance(error, ValueError):  # an empty file
            _warn_of_damage(path)
        return None
    noted = path.with_suffix(NOTED)
    content, digest = memoryview(held)[:-32], held[-32:]
    if now is None or read(noted) != now.encode():
        if _digest(path, content) != digest:
            _warn_of_damage(path)
            return None
        if now is not None:
            write(noted, now.encode())
    with contextlib.suppress(OSError):
        os.utime(noted)  # for :func:`trim`
    return content


def version(file: Any) -> str | None:
    """What names a file that is open as it is now: a change of its content changes ``ctime``, which no program can set back. None on systems
    where that is another time."""
    about = os.fstat(file.fileno())
    if os.name != "posix":
        return None
    return f"{about.st_dev} {about.st_ino} {about.st_size} {about.st_mtime_ns} {about.st_ctime_ns}"


def _warn_of_damage(path: Path) -> None:
    warnings.warn(f"the cached file {path} is damaged; compiling again", RuntimeWarning, stacklevel=3)


def write(path: Path, content: Any) -> None:
    """Write a temporary file and rename it, so that readers see all of it or nothing. Failure is not an error; an interrupt leaves no file."""
    import tempfile

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
    """Remove cached files with the suffix of ``path``, those that were :func:`mapped` last at the end, until the rest take at most ``most`` bytes. The last
    one used stays."""
    found = []
    for file in path.parent.parent.glob(f"*/*{path.suffix}"):
        with contextlib.suppress(OSError):  # removed by another process
            about, noted = file.stat(), file.with_suffix(NOTED)
            used = noted.stat().st_mtime_ns if noted.exists() else 0
            found.append((max(about.st_mtime_ns, used), about.st_size, file))
    total = sum(size for _, size, _ in found)
    for _, size, file in sorted(found)[:-1]:
        if total <= most:
            break
        for each in (file, file.with_suffix(NOTED)):
            with contextlib.suppress(OSError):
                each.unlink()
        total -= size


def _digest(path: Path, content: Any) -> bytes:
    """What a file ends in: it shows damage. (A hash of the content would take three times as long as reading it.)"""
    about = f"{path.name}\n{memoryview(content).nbytes} {zlib.crc32(content)}"
    return hashlib.sha256(about.encode()).digest()
