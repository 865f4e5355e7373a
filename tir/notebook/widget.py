"""The explorer on a page: an anywidget, for JupyterLab, VS Code, Colab and marimo."""

from __future__ import annotations

import functools
import importlib
import sys
import weakref
from pathlib import Path
from typing import Any

from ..extension import optional
from ..schedule import Schedule
from .explorer import Explorer


def widget(schedule: Schedule) -> Any:
    """The explorer of ``schedule``. Raises ``ImportError`` without anywidget."""
    return _widget_class()(Explorer(schedule))


@functools.cache
def _widget_class() -> Any:
    """The class, made when it is first needed: anywidget is an extra."""
    anywidget = optional("anywidget", "the explorer needs anywidget", "notebook")
    traitlets = importlib.import_module("traitlets")

    class ExplorerWidget(anywidget.AnyWidget):
        """``view`` is what the page draws; messages from the page are handed to ``explorer``."""

        _esm = Path(__file__).with_name("explorer.js")
        _css = Path(__file__).with_name("explorer.css")
        view = traitlets.Dict().tag(sync=True)

        def __init__(self, explorer: Explorer):
            super().__init__(view=explorer.view())
            self.explorer = explorer
            self._drawn = explorer.schedule.state
            self.on_msg(self._receive)
            _after_each_cell(self)

        def _receive(self, _: Any, content: Any, buffers: Any = None) -> None:
            self.explorer.handle(content)
            self.refresh()

        def refresh(self) -> None:
            """Draw the schedule as it is now."""
            self._drawn = self.explorer.schedule.state
            self.view = self.explorer.view()

        def follow(self) -> None:
            """Draw again if the schedule was changed elsewhere."""
            if self.explorer.schedule.state is not self._drawn:
                self.explorer.shown = None
                self.refresh()

    return ExplorerWidget


def _after_each_cell(shown: Any) -> None:
    """In IPython, draw again after each cell that changed the schedule, as long as the widget lives."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None:
        return
    known = weakref.ref(shown)

    def follow(*_: Any) -> None:
        alive = known()
        if alive is None or alive.comm is None:
            shell.events.unregister("post_run_cell", follow)
        else:
            alive.follow()

    shell.events.register("post_run_cell", follow)
