"""Which threads share a memory: the table of scopes against the axes that are written out here."""

from __future__ import annotations

import pytest

from tir import levels
from tir.buffer import SCOPES
from tir.levels import Level

BLOCKS = ("blockIdx.x", "blockIdx.y", "blockIdx.z")


@pytest.mark.parametrize(
    ("scope", "level", "own", "shared"),
    [
        ("global", Level.LAUNCH, (), ()),
        ("global.texture", Level.LAUNCH, (), ()),
        (
            "shared.dyn",
            Level.BLOCK,
            BLOCKS,
            ("threadIdx.x", "threadIdx.y", "threadIdx.z", "vthread", "vthread.x", "vthread.y", "vthread.z"),
        ),
        ("warp", Level.WARP, (*BLOCKS, "threadIdx.y", "threadIdx.z"), ("threadIdx.x",)),
        ("wmma.accumulator", Level.WARP, (*BLOCKS, "threadIdx.y", "threadIdx.z"), ("threadIdx.x",)),
        ("local", Level.THREAD, (*BLOCKS, "threadIdx.x", "threadIdx.y", "threadIdx.z"), ()),
    ],
)
def test_who_has_a_copy(scope: str, level: Level, own: tuple[str, ...], shared: tuple[str, ...]):
    assert levels.level_of(scope) is level
    assert levels.own_axes(scope) == own
    assert levels.shared_axes(scope) == shared


@pytest.mark.parametrize("scope", SCOPES)
def test_an_axis_has_copies_or_is_shared_by_its_threads(scope: str):
    own, shared = levels.own_axes(scope), levels.shared_axes(scope)
    assert not set(own) & set(shared)
    assert set(levels.THREAD_AXES) <= {*own, *shared} or not levels.ends_with_launch(scope)


def test_each_axis_is_of_one_kind():
    kinds = (levels.is_block_axis, levels.is_thread_axis, levels.is_virtual_axis)
    assert all(sum(kind(axis) for kind in kinds) == 1 for axis in levels.AXES)
    assert [a for a in levels.AXES if levels.is_launch_axis(a)] == list(levels.LAUNCH_AXES)
    assert not any(kind("") for kind in kinds)
