"""What running a program costs: the memory that its loops touch, its operations, and the machine that has these."""

from .footprint import footprint
from .footprint_table import Footprint, Machine

__all__ = ["Footprint", "Machine", "footprint"]
