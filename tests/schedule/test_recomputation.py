"""Work that is done again: whole reductions made anew, and blocks that loops repeat to the same effect."""

from tests.prim_checks import refused, same, schedule

ROW_SUM = """
@T.prim_func
def main(A: T.Buffer((6, 8), "float32"), C: T.Buffer((6, 5), "float32")):
    B = T.alloc_buffer((6,), "float32")
    for i, k in T.grid(6, 8):
        with T.block("B"):
            v, r = T.axis.remap("SR", [i, k])
            with T.init():
                B[v] = 0.0
            B[v] += A[v, r]
    for i, j in T.grid(6, 5):
        with T.block("C"):
            v, w = T.axis.remap("SS", [i, j])
            C[v, w] = B[v] * A[v, w]
"""


def test_a_reduction_is_made_anew_for_each_use():
    sch = schedule(ROW_SUM)
    sch.compute_at("B", sch.get_loops("C")[1])
    same(sch)


def test_so_is_one_whose_loop_was_split():
    sch = schedule(ROW_SUM)
    sch.compute_at("B", sch.get_loops("C")[0])
    _, k = sch.get_loops("B")
    sch.split(k, [None, 4])
    j = sch.get_loops("C")[1]
    sch.compute_at("B", j)
    same(sch)


def test_a_reduction_of_all_rows_is_made_anew_for_each_row():
    sch = schedule(ROW_SUM.replace("C[v, w] = B[v]", "C[v, w] = B[w]"))
    sch.compute_at("B", sch.get_loops("C")[0])
    same(sch)


def test_an_accumulation_without_a_start_is_not():
    text = ROW_SUM.replace("            with T.init():\n                B[v] = 0.0\n", "")
    sch = schedule(text)
    error = refused(lambda: sch.compute_at("B", sch.get_loops("C")[1]), "run more than once")
    assert error.witness


def test_nor_a_reduction_whose_terms_change_in_between():
    text = ROW_SUM.replace("C: T.Buffer((6, 5)", "C: T.Buffer((6, 8)").replace("T.grid(6, 5)", "T.grid(6, 8)")
    sch = schedule(text.replace("C[v, w] = B[v] * A[v, w]", "A[v, w] = B[v] + C[v, w]"))
    error = refused(lambda: sch.compute_at("B", sch.get_loops("C")[1]), "run more than once")
    assert error.witness
    sch.compute_at("B", sch.get_loops("C")[0])
    same(sch)


def test_a_reduction_of_one_term_has_no_loop_of_its_own():
    text = ROW_SUM.replace("for i, k in T.grid(6, 8)", "for i in range(6)")
    text = text.replace(
        'v, r = T.axis.remap("SR", [i, k])', "v = T.axis.spatial(6, i)\n            r = T.axis.reduce(1, 0)"
    )
    sch = schedule(text)
    sch.compute_at("B", sch.get_loops("C")[1])
    same(sch)


MOMENTS = """
@T.prim_func
def main(A: T.Buffer((6, 8), "float32"), C: T.Buffer((6, 5), "float32")):
    S = T.alloc_buffer((6,), "float32")
    Q = T.alloc_buffer((6,), "float32")
    for i, k in T.grid(6, 8):
        with T.block("sums"):
            v, r = T.axis.remap("SR", [i, k])
            with T.init():
                S[v] = 0.0
                Q[v] = 0.0
            S[v] = S[v] + A[v, r]
            Q[v] = Q[v] + A[v, r] * A[v, r]
    for i, j in T.grid(6, 5):
        with T.block("C"):
            v, w = T.axis.remap("SS", [i, j])
            C[v, w] = Q[v] - S[v] * S[v]
"""


def test_several_sums_are_made_anew_together():
    sch = schedule(MOMENTS)
    sch.compute_at("sums", sch.get_loops("C")[1])
    same(sch)


def test_sums_that_only_partly_start_are_not():
    sch = schedule(MOMENTS.replace("                Q[v] = 0.0\n", ""))
    refused(lambda: sch.compute_at("sums", sch.get_loops("C")[1]), "run more than once")


def test_elements_that_only_the_first_of_has_a_start_are_not():
    text = ROW_SUM.replace("B = T.alloc_buffer((6,)", "B = T.alloc_buffer((6, 8)").replace("B[v]", "B[v, r]")
    sch = schedule(text.replace("C[v, w] = B[v, r]", "C[v, w] = B[v, 0] + B[v, 7]"))
    refused(lambda: sch.compute_at("B", sch.get_loops("C")[1]))


REPEATED = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((8, 8), "float32")):
    B = T.alloc_buffer((8,), "float32")
    for q, i in T.grid(3, 8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = A[v] * 2.0
    for i, j in T.grid(8, 8):
        with T.block("C"):
            v, w = T.axis.remap("SS", [i, j])
            C[v, w] = B[w] + A[v]
"""


def test_a_repeated_block_moves_to_its_consumer():
    sch = schedule(REPEATED)
    sch.compute_at("B", sch.get_loops("C")[0])
    same(sch)


def test_a_consumer_moves_into_the_loop_that_repeats_its_producer():
    sch = schedule(REPEATED.replace("C[v, w] = B[w]", "C[v, w] = B[v]"))
    sch.reverse_compute_at("C", sch.get_loops("B")[1])
    same(sch)


def test_a_repeated_accumulation_keeps_its_count():
    text = REPEATED.replace("B[v] = A[v] * 2.0", "B[v] = B[v] + A[v]")
    text = text.replace('    B = T.alloc_buffer((8,), "float32")\n', "").replace(
        "C: T.Buffer((8, 8)", 'B: T.Buffer((8,), "float32"), C: T.Buffer((8, 8)'
    )
    sch = schedule(text)
    error = refused(lambda: sch.compute_at("B", sch.get_loops("C")[0]))
    assert "B" in str(error)


CHANGING = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((8,), "float32")
    for q in range(3):
        for i in range(8):
            with T.block("B"):
                v = T.axis.spatial(8, i)
                B[v] = A[v] * 2.0
        for i in range(8):
            with T.block("change"):
                v = T.axis.spatial(8, i)
                A[v] = A[v] + 1.0
    for i in range(8):
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = B[v]
"""


def test_a_repeated_block_whose_input_changes_between_its_runs_stays():
    sch = schedule(CHANGING)
    refused(lambda: sch.compute_at("B", sch.get_loops("C")[0]))
    refused(lambda: sch.reverse_compute_at("C", sch.get_loops("B")[1]))


def test_a_consumer_of_the_first_runs_value_is_not_one_of_the_last():
    # B is overwritten by another block between its runs: which value a consumer sees depends on when it runs
    text = CHANGING.replace("A[v] = A[v] + 1.0", "B[v] = A[v] + 1.0")
    sch = schedule(text)
    refused(lambda: sch.compute_root("B"))
    refused(lambda: sch.reverse_compute_at("C", sch.get_loops("B")[1]))


def test_an_element_that_two_instances_write_in_turn_is_read_after_the_last():
    text = REPEATED.replace("B[v] = A[v] * 2.0", "B[v // 2] = A[v] * 2.0").replace(
        "C[v, w] = B[w]", "C[v, w] = B[v // 2]"
    )
    sch = schedule(text)
    refused(lambda: sch.reverse_compute_at("C", sch.get_loops("B")[1]))


FISSION = """
@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), idx: T.Buffer((1,), "int32"), C: T.Buffer((8,), "float32")):
    P = T.alloc_buffer((1,), "int32")
    for i in range(8):
        with T.block("P"):
            v = T.axis.spatial(1, 0)
            P[v] = idx[v]
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = A[P[0] % 8, v]
"""


def test_a_loop_is_parted_around_a_block_that_it_repeats():
    sch = schedule(FISSION)
    assert [loop.name for loop in sch.fission("i")] == ["i_0", "i_1"]
    same(sch)


def test_but_not_where_each_repeat_makes_another_value():
    sch = schedule(FISSION.replace("P[v] = idx[v]", "P[v] = P[v] + idx[v]"))
    error = refused(lambda: sch.fission("i"), "overwritten before it is read")
    assert error.witness


def test_nor_where_iterations_would_share_what_each_had():
    sch = schedule(FISSION)
    sch.parallel("i")
    refused(lambda: sch.fission("i"))
