"""The single question behind every refusal: do the dependences of the program before hold in the order after?

Two instances depend when they touch one element and at least one writes it. Reduction updates of one block commute
among themselves; its ``init`` comes first. Where an index is not quasi-affine the whole dimension counts as touched;
where an order cannot be written as exact sets, the answer is "cannot prove", with the reason.
"""

from .coverage import check_coverage
from .loops import check_fission, check_merge, check_parallel, check_reorder
from .programs import check
from .violation import Violation, cannot_prove

__all__ = [
    "Violation", "cannot_prove", "check", "check_coverage", "check_fission", "check_merge", "check_parallel", "check_reorder",
]  # fmt: skip
