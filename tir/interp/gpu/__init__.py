"""The GPU simulator: lowered kernels run thread by thread on the CPU, with every check and count."""

from .debug import Breakpoint, Stop
from .report import Access, Finding, SimReport, SimulationError, Traffic
from .simulate import ORDERS, simulate

__all__ = ["ORDERS", "Access", "Breakpoint", "Finding", "SimReport", "SimulationError", "Stop", "Traffic", "simulate"]
