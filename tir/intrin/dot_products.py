"""The sums of products that a CPU takes several at a time: by vectors (VNNI, AVX512-BF16), and by tiles (AMX)."""

from __future__ import annotations

from dataclasses import dataclass

from ..dtype import DType
from . import x86

LANES = 16  # sums in a vector, and in a row of a tile


@dataclass(frozen=True)
class DotProduct:
    """How products of ``left`` and ``right`` are summed in ``sums``: ``group`` neighbours along the reduction at a time.

    ``vector`` is the tensor intrinsic that does so for 16 sums, where the CPU has ``vector_feature`` (LLVM's name). ``tiles`` is
    the kind of product of AMX tiles, where it has ``tile_feature``; int16 has none. ``interleave`` is the intrinsic that puts
    16 groups of the right operand side by side.
    """

    left: str
    right: str
    sums: str
    group: int
    vector: str
    vector_feature: str
    tiles: str
    tile_feature: str
    interleave: str

    @property
    def needs_other_sign(self) -> bool:
        """Whether ``vector`` is several instructions, where it would be one if one operand had the other sign.

        >>> DotProduct.of(DType("int8"), DType("int8"), DType("int32")).needs_other_sign
        True
        >>> DotProduct.of(DType("int16"), DType("int16"), DType("int32")).needs_other_sign
        False
        """
        return self.left == self.right and self.group == 4

    @staticmethod
    def of(left: DType, right: DType, sums: DType) -> DotProduct | None:
        """The dot product of these types; None if there is none.

        >>> of = DotProduct.of
        >>> of(DType("uint8"), DType("int8"), DType("int32")).vector
        'dot_16x4_vnni'
        >>> of(DType("float32"), DType("float32"), DType("float32")) is None
        True
        """
        wanted = (str(left), str(right), str(sums))
        return next((d for d in _DOT_PRODUCTS if (d.left, d.right, d.sums) == wanted), None)


def _of_bytes(left: str, right: str, tiles: str) -> DotProduct:
    interleave = x86.INTERLEAVE_INT8 if right == "int8" else x86.INTERLEAVE_UINT8
    return DotProduct(left, right, "int32", 4, x86.VNNI[left, right], "avx512vnni", tiles, "amx-int8", interleave)


_DOT_PRODUCTS = (
    _of_bytes("uint8", "int8", "us"),
    _of_bytes("int8", "int8", "ss"),
    _of_bytes("int8", "uint8", "su"),
    _of_bytes("uint8", "uint8", "uu"),
    DotProduct("int16", "int16", "int32", 2, x86.VNNI_INT16, "avx512vnni", "", "", x86.INTERLEAVE_INT16),
    DotProduct(
        *("bfloat16", "bfloat16", "float32", 2), *(x86.BF16_512, "avx512bf16", "bf16", "amx-bf16", x86.INTERLEAVE_BF16)
    ),
)
