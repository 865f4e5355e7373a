"""The primitives, one family per file. Files here are discovered automatically; ``@primitive`` registers them."""

from ...extension import load_files

load_files(__name__)
