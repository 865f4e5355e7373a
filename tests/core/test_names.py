"""Names that steps make from the names of others."""

from __future__ import annotations

import pytest

from tir.names import LONGEST, derived_name, unique_name


def test_a_name_that_is_taken_gets_the_first_free_number():
    assert unique_name("i", {"j"}) == "i"
    assert unique_name("i", {"i", "i_1", "i_3"}) == "i_2"


@pytest.mark.parametrize(
    ("stem", "name"),
    [
        ("i_j", "i_j_fused"),
        ("rows_0_fused_0_columns_1_rows_1_fused_1_columns_0_rows_2", "rows_columns_fused"),  # each word once
        ("_".join(f"word{n}" for n in range(20)), "word0_word1_word2_word3_word4_word5_word6_fused"),
        ("0_1_2_3_4_5_6_7_8_9_10_11_12_13_14_15_16_17_18_19", "loop_fused"),
    ],
)
def test_a_long_name_is_cut_to_its_words(stem, name):
    made = derived_name(stem, "_fused", ())
    assert made == name and len(made) <= LONGEST and made.isidentifier()
    assert derived_name(stem, "_fused", {name}) == f"{name}_1"
