"""Analyses of one program; nothing here changes it."""

from .footprint import Footprint, Machine, footprint

__all__ = ["Footprint", "Machine", "footprint"]
