"""What a call does in another process, done here: its result or its error, its log records and its warnings."""

from __future__ import annotations

import logging
import logging.handlers
import pickle
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from .errors import TirError
from .visit import with_recursion_limit

_SHOWN: dict[Any, Any] = {}  # warnings that were given here: Python shows one of a place once


class Elsewhere(TirError):
    """The traceback of the process where an error was raised: the last of its causes."""


class _Records(logging.handlers.QueueHandler):
    """Log records in a list, as they can be pickled."""

    def enqueue(self, record: logging.LogRecord) -> None:
        self.queue.append(record)  # type: ignore[union-attr]


def _loggers() -> list[logging.Logger]:
    known = logging.root.manager.loggerDict.values()
    return [logging.root, *(one for one in known if isinstance(one, logging.Logger))]


def log_level() -> int:
    """The least level of log records that a logger of this process takes."""
    return min(one.getEffectiveLevel() for one in _loggers())


def without_handlers() -> None:
    """Take the handlers of all loggers away, in a copy of a process: records are for those of the process itself, which outcomes bring them to."""
    for logger in _loggers():
        logger.handlers.clear()
        logger.propagate = True


@dataclass
class Outcome:
    """What a call made, or the exception that ended it and its causes, and its log records and warnings. It can be pickled if what was made can.

    >>> Outcome.of(lambda: 3, log_level()).take()
    3
    """

    made: Any = None
    errors: list[BaseException] = field(default_factory=list)
    records: list[logging.LogRecord] = field(default_factory=list)
    warnings: list[tuple[Warning, str, int]] = field(default_factory=list)  # what is said, the file, the line

    @staticmethod
    def of(call: Callable[[], Any], level: int) -> Outcome:
        """The outcome of a call, with log records from ``level`` on, and all warnings: nobody sees them here."""
        outcome = Outcome()
        before, handler = logging.root.level, _Records(outcome.records)  # type: ignore[arg-type]
        logging.root.addHandler(handler)
        logging.root.setLevel(level)
        try:
            with warnings.catch_warnings(record=True) as given:
                warnings.simplefilter("always")
                outcome.made = call()
        except Exception as error:
            outcome.errors = [*_causes(error), Elsewhere("".join(traceback.format_exception(error)))]
        finally:
            outcome.warnings = [(_portable(one.message, RuntimeWarning), one.filename, one.lineno) for one in given]
            logging.root.setLevel(before)
            logging.root.removeHandler(handler)
        return outcome

    @with_recursion_limit
    def pickled(self) -> bytes:
        return pickle.dumps(self, protocol=pickle.HIGHEST_PROTOCOL)

    @staticmethod
    @with_recursion_limit
    def unpickled(data: bytes) -> Outcome:
        return pickle.loads(data)

    def take(self) -> Any:
        """Log and warn, as this process wants it, and return or raise, as the call did."""
        for record in self.records:
            logger = logging.getLogger(record.name)
            if logger.isEnabledFor(record.levelno):
                logger.handle(record)
        for message, file, line in self.warnings:
            warnings.warn_explicit(message, type(message), file, line, registry=_SHOWN)
        for error, cause in zip(self.errors, self.errors[1:]):
            error.__cause__ = cause
        if self.errors:
            raise self.errors[0]
        return self.made


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An exception and its causes, as they can be pickled."""
    while error is not None:
        yield _portable(error, TirError)
        error = error.__cause__


def _portable(error: Any, otherwise: Callable[[str], Any]) -> Any:
    """An exception or a warning, or one that only names it where it cannot be pickled."""
    try:
        return pickle.loads(pickle.dumps(error))
    except Exception:  # whatever the classes of others do
        return otherwise(f"{type(error).__name__}: {error}")
