"""The steps of a schedule up to here, each with the program after it."""

from __future__ import annotations

import html
from dataclasses import dataclass

from ..function import IRModule


@dataclass(frozen=True)
class Step:
    """One applied step: its number, the call as text, and the module after it."""

    number: int
    text: str
    mod: IRModule

    def __repr__(self) -> str:
        return f"{self.number}: {self.text}"


class History(list[Step]):
    """The steps of a schedule, a line each; in a notebook, each expands to its diff."""

    def __repr__(self) -> str:
        return "\n".join(map(repr, self))

    def _repr_html_(self) -> str:
        from ..script.change import program_diff
        from ..script.highlight import to_html

        rows = []
        for step in self:
            if step.number:
                inside = program_diff(self[step.number - 1].mod, step.mod, step.text)._repr_html_()
            else:
                inside = to_html(step.mod.script())
            rows.append(f"<details><summary><code>{html.escape(repr(step))}</code></summary>{inside}</details>")
        return "".join(rows)
