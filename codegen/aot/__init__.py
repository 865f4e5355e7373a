"""Compiled modules as files: objects and shared libraries that C programs link, and that ``tir.load`` reads back.

Every function is a C function under its ``global_symbol``. All other symbols begin with the file's name, so that several
files can be linked into one program. docs/aot.md has the calling convention.
"""

from .files import SUFFIXES, Extras, Options, write
from .loading import Saved
from .processors import Code, code_for
from .prototypes import exported
from .thread_pools import THREADS

__all__ = ["SUFFIXES", "THREADS", "Code", "Extras", "Options", "Saved", "code_for", "exported", "write"]
