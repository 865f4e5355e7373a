"""Classes of records, and properties that are computed once, both made for speed: a step makes hundreds of them."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

if TYPE_CHECKING:
    from typing_extensions import Self, dataclass_transform
elif sys.version_info >= (3, 11):
    from typing import dataclass_transform
else:

    def dataclass_transform(**_):
        return lambda decorator: decorator


T = TypeVar("T")


@dataclass_transform(eq_default=False, frozen_default=True, field_specifiers=(dataclasses.field,))
def record(cls: type[T]) -> type[T]:
    """Make a class a dataclass whose instances count by identity and are not changed. That is for pyright to refuse: what
    refuses it at run time (``frozen``) makes each instance four times as slowly.

    >>> @record
    ... class Point:
    ...     x: int
    ...     y: int = 0
    >>> Point(1), Point(1) == Point(1)
    (Point(x=1, y=0), False)
    """
    return dataclasses.dataclass(eq=False)(cls)


def changed(one: T, **fields: Any) -> T:
    """A record with other ``fields``, as ``dataclasses.replace``, which takes five times as long. What cached properties
    hold stays: none may depend on these fields.

    >>> @record
    ... class Point:
    ...     x: int
    ...     y: int = 0
    >>> changed(Point(1), y=2)
    Point(x=1, y=2)
    """
    made = object.__new__(type(one))
    made.__dict__.update(one.__dict__, **fields)
    return made


class cached_property(Generic[T]):
    """``functools.cached_property`` as it is from Python 3.12 on, without a lock, which takes longer than most of what is
    computed here.

    >>> class Square:
    ...     side = 3
    ...
    ...     @cached_property
    ...     def area(self):
    ...         print("computed")
    ...         return self.side**2
    >>> square = Square()
    >>> square.area, square.area
    computed
    (9, 9)
    """

    def __init__(self, compute: Callable[[Any], T]):
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type[Any] | None = None) -> T: ...
    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._compute(instance)
        return value
