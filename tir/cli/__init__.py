"""The command ``tir``: each verb is a function with ``@verb``; what it needs is imported when it runs."""

from __future__ import annotations

from .command_line import main

__all__ = ["main"]
