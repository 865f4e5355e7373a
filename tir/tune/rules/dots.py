"""Products of bytes, int16 or bfloat16 by the dot-product instructions of vectors (VNNI, AVX512-BF16): a tile of sums in registers.

Bytes of equal signs are no operands of these: panels then have the other sign (``shift_operand``).

The loops are those of other contractions, with panels whose groups of terms lie side by side: the innermost loops are
replaced by an instruction that multiplies and adds a group in each lane.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...expr import Expr
from ...intrin.dot_products import LANES, DotProduct
from ...schedule import Schedule
from ..contracted import Contraction
from ..nest import Nest, volume
from ..packed import Panels
from ..space import Env, Fork, accepted, rule
from ..staged_operands import Copy
from .contraction import Tiling

SHIFTED = 8  # rows from which on panels with the other sign take less time than the correction of each product
PACKED, TURNED = (
    4,
    12,
)  # rows from which on copying columns, or what lies along the terms, takes less time than it saves


@rule(targets=("llvm",), order=37)
def dots(sch: Schedule, block: str, env: Env) -> Sequence[Fork]:
    """Multiply matrices by dot products of vectors, where the CPU has them for these types."""
    product = Panels.kind_of(Nest.of(sch, block))
    if (
        product is None
        or not Panels.pays(*product)
        or not _has_rows(product[0])
        or not env.has(product[1].vector_feature)
    ):
        return []
    panel = (block, product[0].panel.buffer.name)
    if product[1].needs_other_sign and _is_shifted(product[0]):
        shifted = sch.copy()
        if accepted(shifted.shift_operand, *panel):
            sch = shifted
            product = Panels.kind_of(Nest.of(sch, block)) or product
    return by_vectors(sch, *product, env)


def _is_shifted(found: Contraction) -> bool:
    """Whether there are rows enough to store panels of bytes with the other sign, unless that is done once."""
    return found.is_constant or volume(found.rows) >= SHIFTED


def _has_rows(found: Contraction) -> bool:
    """Whether there are rows enough for panels, unless they are packed once: turning what lies along the terms takes longer."""
    least = TURNED if found.panel.stride(found.terms[-1].var) == 1 else PACKED
    return found.is_constant or volume(found.rows) >= least


def by_vectors(sch: Schedule, found: Contraction, kind: DotProduct, env: Env) -> list[Callable[[], Schedule]]:
    """A contraction by dot products of vectors, for each width of the panels, the cheapest first; whether the CPU has them is
    not asked."""
    tilings = [t for t in (Tiling.of(found, n, LANES, env, n) for n in (1, 2, 3, 4)) if t is not None]
    made = []
    for tiling in sorted(tilings, key=lambda t: min(t.costs)):
        _, high = min((cost, tile % 64) for cost, tile in zip(tiling.costs, tiling.tiles) if tile < 128)
        made.append(_Dots(Panels(found, kind, env, high, tiling.width, kind.group)))
    return [lambda d=d: d.apply(sch.copy(), d.panels.together()[0]) for d in made]


@dataclass(frozen=True)
class _Dots:
    panels: Panels

    def apply(self, sch: Schedule, together: int) -> Schedule:
        """The schedule with ``together`` panels at a time."""
        panels, name, group = self.panels, self.panels.found.nest.name, self.panels.kind.group
        made = panels.stage(sch, (1, panels.width * together, group), "local")
        copies_left = not made.left.is_plain(sch) or not made.left.has_terms_last
        if not made.left.has_terms_last:
            made.left.turn(sch)
        if not copies_left:
            sch.compute_inline(made.left.block)
        self._pack(sch, made.right)

        *batch, row, column, term = (a.loop for a in made.staged.axes)
        io, ii = sch.split(row, [None, panels.high])
        jc, jr, jv, lane = sch.split(column, [None, together, panels.width // LANES, LANES])
        p, q = sch.split(term, [None, group])
        around = [io, jc] if panels.shared == "rows" else [jc, io]
        sch.reorder(*batch, *around, jr, p, ii, jv, lane, q)
        if panels.shared != "rows":
            sch.compute_at(made.right.block, jc, preserve_unit_loops=True)
        if copies_left:
            sch.compute_at(made.left.block, io, preserve_unit_loops=True)
        sch.reverse_compute_at(made.staged.store, jr, preserve_unit_loops=True)
        init = sch.decompose_reduction(name, p)
        inner = sch.get_loops(init)
        *_, store_row, store_column = sch.get_loops(made.staged.store)
        store_column, store_lane = sch.split(store_column, [None, LANES])
        for loop in (inner[-1], store_lane):
            sch.vectorize(loop)
        for loop in (ii, jv, *inner[-3:-1], store_row, store_column):
            sch.unroll(loop)
        sch.tensorize(lane, panels.kind.vector)
        jr, p, jv = sch.get_loops(made.right.block)[-5:-2]
        packing = panels.interleave(sch, made, (p,), (jr, jv))
        panels.share(sch, batch, around[0], packing)
        return sch

    def _pack(self, sch: Schedule, copy: Copy) -> None:
        """Lay the columns out in panels, groups of terms side by side, and order the loops that copy them likewise."""
        group, width = self.panels.kind.group, self.panels.width

        def layout(*at: Expr) -> tuple[Expr, ...]:
            *batch, j, k = at if copy.has_terms_last else (*at[:-2], at[-1], at[-2])
            return *batch, j // width, k // group, j % width // LANES, j % LANES, k % group

        sch.transform_layout(copy.block, ("write", 0), layout)
        sch.transform_block_layout(copy.block, layout)
