"""``s.create_group``: stages between two boundaries, placed together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .tensor import Operation, PlaceholderOp, Tensor

if TYPE_CHECKING:
    from .stage import Stage


@dataclass(frozen=True)
class Group:
    """Stages that :meth:`compute_at` places together; those that are placed elsewhere, or inlined, stay there."""

    stages: tuple[Stage, ...]

    def __repr__(self) -> str:
        return f"Group({', '.join(s.name for s in self.stages)})"

    def compute_at(self, parent: Any, scope: Any) -> None:
        """Run every stage of the group inside ``scope``, an axis of the stage ``parent``. Raises as that of a stage does."""
        for stage in self.stages:
            if stage.attach is None and stage.inlined is None:
                stage.compute_at(parent, scope)

    def compute_root(self) -> None:
        """Run the stages of the group before their consumers, outside of their loops."""
        for stage in self.stages:
            stage.compute_root()


def operations_between(outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> Iterator[Operation]:
    """The operations that make ``outputs`` from ``inputs``, which are not among them; no input of the graph is."""
    edge = {t.op for t in inputs}
    seen: set[Operation] = set()
    left = [t.op for t in outputs]
    while left:
        op = left.pop()
        if op in edge or op in seen or isinstance(op, PlaceholderOp):
            continue
        seen.add(op)
        left += [t.op for t in op.input_tensors]
        yield op
