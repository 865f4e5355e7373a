from tir.tune import Nest, rule


@rule(targets=("llvm",), order=1)
def halves(sch, block, env):
    """Rows in two halves."""
    nest = Nest.of(sch, block)
    if nest is None or len(nest.spatial) < 2:
        return []
    made = sch.copy()
    made.split(nest.axes[0].loop, [2, None])
    return [made]
