"""Questions about a program; nothing here changes one."""

from .footprint import Footprint, Machine, footprint

__all__ = ["Footprint", "Machine", "footprint"]
