"""``tir`` on the command line (``python -m tir`` where the script is not installed)."""

from __future__ import annotations

import sys

from .cli import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
