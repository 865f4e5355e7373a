"""Memory beside arrays that may not be touched."""

import ctypes
import subprocess
import sys

import numpy as np
import pytest

import tir
from tests.page_ends import _PROTECT, at_page_ends

ADDED = tir.build(tir.library.elementwise.scale_add(5)).entry
BEYOND = """
import ctypes, faulthandler, numpy as np, tir
from tests.page_ends import at_page_ends

function = tir.build(tir.library.elementwise.scale_add(5)).entry
faulthandler.enable()
function.on_copies = lambda a, b: print(ctypes.string_at(a.ctypes.data + PLACE, 1)[0], flush=True)
at_page_ends(function, STARTS)(np.arange(5, dtype="float32"), np.zeros(5, "float32"))
"""


@pytest.mark.parametrize("starts", range(4))
def test_a_function_is_called_on_arrays_at_the_ends_of_pages(starts: int):
    seen, given, b = [], np.arange(10, dtype="float32")[::-2], np.zeros(5, "float32")
    at_page_ends(_observed(lambda *args: seen.extend(args)), starts)(given, b)
    for k, array in enumerate(seen):
        begin, end = (array[-1:], array[:1]) if k == 0 else (array[:1], array[-1:])
        place = begin.ctypes.data if starts >> k & 1 else end.ctypes.data + 4
        assert place % 4096 == 0 and array.strides == (given, b)[k].strides
    a = np.arange(5, dtype="float32")
    at_page_ends(ADDED, starts)(a, b)
    np.testing.assert_array_equal(b, ADDED.new(a))


def test_arrays_that_overlap_do_so_in_the_copy():
    memory = np.arange(8, dtype="float32")

    def call(a, b):
        assert b.ctypes.data - a.ctypes.data == 8
        b[:] = 1

    at_page_ends(_observed(call))(memory[:5], memory[2:7])
    assert memory.tolist() == [0, 1, 1, 1, 1, 1, 1, 7]


@pytest.mark.parametrize(("place", "starts"), [(-1, 0), (20, 3)])
def test_what_is_written_beside_an_array_is_found(place: int, starts: int):
    with pytest.raises(AssertionError, match="beside the memory of argument 1"):
        at_page_ends(_observed(lambda a, b: ctypes.memset(b.ctypes.data + place, 0, 1)), starts)(
            np.zeros(5, "float32"), np.zeros(5, "float32")
        )


@pytest.mark.skipif(_PROTECT is None, reason="pages cannot be protected")
@pytest.mark.parametrize(("place", "starts", "ends"), [(19, 0, False), (20, 0, True), (0, 1, False), (-1, 1, True)])
def test_what_is_read_beyond_an_array_ends_the_process(place: int, starts: int, ends: bool):
    code = BEYOND.replace("PLACE", str(place)).replace("STARTS", str(starts))
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (made.returncode < 0, 'File "call of main"' in made.stderr) == (ends, ends), made.stderr


def _observed(call):
    function = tir.build(tir.library.elementwise.scale_add(5)).entry
    function.on_copies = call
    return function
