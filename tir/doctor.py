"""``python -m tir.doctor`` prints what this machine can do; ``tir.doctor()`` gives it."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    """A module that is called as the function of its name: importing ``tir.doctor`` must not hide ``tir.doctor()``."""

    def __call__(self) -> Any:
        from codegen.diagnosis import doctor

        return doctor()


sys.modules[__name__].__class__ = _Callable

if __name__ == "__main__":
    from codegen.diagnosis import doctor

    print(doctor())
