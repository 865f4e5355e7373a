"""Pieces of kernels that are written for the threads of a warp: tensor cores' fragments of tiles of 16 by 16 elements.

A fragment is 8 elements a lane. Those of a left operand and of sums are laid out alike: ``row_of`` and ``column_of`` say
which element e of a lane is.
"""

from __future__ import annotations

from tir.script import tir as T

PIECE = 8  # elements of float16 that one copy of 16 bytes takes
ALL = 0xFFFFFFFF  # the lanes of a warp


def row_of(lane, e):
    return lane // 4 + e // 2 % 2 * 8


def column_of(lane, e):
    return e // 4 * 8 + lane % 4 * 2 + e % 2


@T.macro
def load_left(fragments, number, memory, first, stride, lane):
    """Fragment ``number`` of a left operand, of rows in shared memory from element ``first``."""
    T.evaluate(
        T.ptx_ldmatrix(
            "float16", False, 4, ".b16", fragments, number * 8, memory, first + lane % 16 * stride + lane // 16 * 8
        )
    )


@T.macro
def load_right(fragments, memory, first, stride, lane):
    """A fragment of a right operand, of rows along its columns."""
    T.evaluate(
        T.ptx_ldmatrix("float16", True, 4, ".b16", fragments, 0, memory, first + lane % 16 * stride + lane // 16 * 8)
    )


@T.macro
def load_right_transposed(fragments, memory, first, stride, lane):
    """A fragment of a right operand whose transpose lies in rows in shared memory."""
    T.evaluate(
        T.ptx_ldmatrix(
            "float16", False, 4, ".b16", fragments, 0, memory,
            first + (lane // 16 * 8 + lane % 8) * stride + lane % 16 // 8 * 8,
        )
    )  # fmt: skip


@T.macro
def multiply(sums, number, left, left_number, right):
    """Fragment ``number`` of ``sums`` += fragment ``left_number`` of ``left`` @ ``right``."""
    for half in T.unroll(2):
        T.evaluate(
            T.ptx_mma(
                "m16n8k16", "row", "col", "fp16", "fp16", "fp32", left, left_number * 8, right, half * 4, sums,
                number * 8 + half * 4, False, dtype="float32",
            )
        )  # fmt: skip
