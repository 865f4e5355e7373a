"""Programs in texts: source code that may use Python, and what was printed, which is read as data."""

from __future__ import annotations

import ast
import builtins
import functools
import re
import sys
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import ParseError
from ..expr import Var
from ..function import IRModule, PrimFunc
from ..visit import with_recursion_limit
from . import source as _source
from .diagnostics import Abort, Diagnostic, Source, parse_error
from .environment import Environment, Printed
from .macro import Macro
from .parse_stmt import StmtParser
from .parser import macro, options_of, parse_function, parse_module, prim_func

_OURS = ("tir", "tvm")


@with_recursion_limit
def parse(text: str, extra_vars: Mapping[str, Any] | None = None) -> PrimFunc | IRModule:
    """The program in ``text``: the last prim_func or module it defines. **This runs the Python in the text**, as importing
    a file would: parse what you would run, and read a program from anywhere else with :func:`parse_data`.

    ``T``, ``I`` and ``tir`` are known, ``extra_vars`` adds names; import lines of the dialect, and of TVM, are
    accepted.
    Constants, macros and plain helper functions may precede the program. Raises ``ParseError`` with every
    error, and for a text without a program; ``TypeError`` if ``text`` is not a string.

    >>> parse('''
    ... @T.prim_func
    ... def double(A: T.Buffer((8,), "float32")):
    ...     for i in range(8):
    ...         A[i] = A[i] * 2.0
    ... ''').name
    'double'
    """
    import tir as package

    from . import ir, tir

    known: dict[str, Any] = {"T": tir, "I": ir, "tir": package, **(extra_vars or {})}
    env = Environment(known, vars(builtins))
    return _last(_programs(text, env, functools.partial(_python_statement, known=known)))


@with_recursion_limit
def parse_data(text: str) -> PrimFunc | IRModule:
    """The program in a text that may be from anywhere: a record, a saved module, another machine. It reads what
    ``program.script()`` prints, in time and memory that the length of the text bounds, and evaluates no Python: the only
    names are ``T``, ``I`` and those of the program.

    Raises ``ParseError`` with the first error, and for a text without a program; ``TypeError`` if ``text`` is not a string.

    >>> import tir
    >>> double = tir.script.parse_data(tir.library.elementwise.scale_add(2).script())
    >>> double.name
    'scale_add'
    >>> tir.script.parse_data('''
    ... @T.prim_func
    ... def f(A: T.Buffer((len("four"),), "float32")):
    ...     A[0] = 1.0
    ... ''')
    Traceback (most recent call last):
    tir.errors.ParseError: 1 error in the text
    error: undefined name `len`
     --> <text>:3:20
    3 | def f(A: T.Buffer((len("four"),), "float32")):
      |                    ^^^
    """
    return _last(programs_in(text))


@with_recursion_limit
def programs_in(text: str, filename: str = "<text>") -> dict[str, PrimFunc | IRModule]:
    """The programs in a text, by name, as :func:`parse_data` reads them; ``filename`` is where errors say it is from. Lines that
    import the names of the dialect may stand in it, and import nothing.

    Raises as :func:`parse_data` does, but gives an empty dict for a text without a program.

    >>> list(programs_in('''from tir.script import tir as T
    ... @T.prim_func
    ... def zero(A: T.Buffer((8,), "int32")):
    ...     A[0] = 0
    ... '''))
    ['zero']
    """
    return _programs(text, Printed(len(text) if isinstance(text, str) else 0), _import_of_the_dialect, filename)


@with_recursion_limit
def parse_lambda(text: str, names: Mapping[str, Any]) -> Callable[..., Any]:
    """The function of expressions that the text of a lambda computes, read as :func:`parse_data` reads; ``names`` adds names.
    Raises ``ParseError``, and so does the function, for what it cannot compute."""
    source = Source("<text>", text.splitlines())
    body = _source.parse_text(text, source).body
    parser = StmtParser(source, Printed(len(text), names))
    if len(body) != 1 or not isinstance(body[0], ast.Expr) or not isinstance(body[0].value, ast.Lambda):
        raise ParseError("a lambda of arithmetic is expected")

    def reported(compute: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            try:
                return compute(*args)
            except Abort:
                raise parse_error(parser.diagnostics, "the lambda") from parser.cause

        return call

    made = reported(parser.ev)(body[0].value)
    return functools.wraps(made)(reported(made))


Other = Callable[[StmtParser, ast.stmt, Source, Environment], None]


def _programs(text: str, env: Environment, other: Other, filename: str = "<text>") -> dict[str, PrimFunc | IRModule]:
    """The programs that a text defines, by name; ``other`` takes the statements that define none."""
    if not isinstance(text, str):
        raise TypeError(f"a text of a program is a string, not {type(text).__name__}")
    dedented = textwrap.dedent(text) if text[:1] in " \t\n" else text
    source = Source(filename, text.splitlines())
    if dedented is not text:
        source = Source(filename, dedented.splitlines())
    tree = _source.parse_text("\n".join(source.lines), source)
    found: dict[str, PrimFunc | IRModule] = {}
    faults: list[Diagnostic] = []
    cause: BaseException | None = None
    for item in tree.body:
        if faults and env.first_error_only:
            break
        parser = StmtParser(source, env)
        try:
            _top_level(parser, item, source, env, other, found)
        except Abort:
            pass
        except ParseError as exc:
            faults.extend(exc.diagnostics)
            cause = cause or exc.__cause__
        faults.extend(parser.diagnostics)
        cause = cause or parser.cause
    if faults:
        raise parse_error(faults, "the text") from cause
    return found


def _last(programs: dict[str, PrimFunc | IRModule]) -> PrimFunc | IRModule:
    if not programs:
        raise ParseError(
            "the text defines no program: a function with @T.prim_func or a class with @I.ir_module is expected"
        )
    return list(programs.values())[-1]


def _top_level(
    parser: StmtParser,
    item: ast.stmt,
    source: Source,
    env: Environment,
    other: Other,
    found: dict[str, PrimFunc | IRModule],
) -> None:
    """Enter the program that one statement of a text defines, if it defines one, as the last of ``found``."""
    if isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant):
        return
    if isinstance(item, ast.ClassDef):
        made = parse_module(item, source, env)
    elif isinstance(item, ast.FunctionDef) and any(parser.ev(d) is prim_func for d in _decorators(item)):
        made = parse_function(item, source, env, options_of(parser, item))
    else:
        other(parser, item, source, env)
        return
    env.define(item.name, made)
    found.pop(item.name, None)
    found[item.name] = made


def _decorators(item: ast.FunctionDef) -> list[ast.expr]:
    return [d.func if isinstance(d, ast.Call) else d for d in item.decorator_list]


_IMPORTS = re.compile(
    "import tir|from __future__ import annotations"
    f"|from ({'|'.join(_OURS)}).script import (tir as T|ir as I|tir as T, ir as I|ir as I, tir as T)"
)


def _import_of_the_dialect(parser: StmtParser, item: ast.stmt, source: Source, env: Environment) -> None:
    """Accept the lines that give ``T`` and ``I`` the meaning that they have here anyway."""
    if not isinstance(item, (ast.Import, ast.ImportFrom)):
        parser.fail(item, "a printed program is a function with @T.prim_func or a class with @I.ir_module")
    if not _IMPORTS.fullmatch(ast.unparse(item)):
        parser.fail(
            item, "a printed program imports nothing but the dialect", "write from tir.script import ir as I, tir as T"
        )


def _python_statement(
    parser: StmtParser, item: ast.stmt, source: Source, env: Environment, known: dict[str, Any]
) -> None:
    """A statement of a text that runs as Python; what it defines is entered in ``known``."""
    if isinstance(item, (ast.Import, ast.ImportFrom)):
        try:
            _import(parser, item, known)
        except Exception as exc:  # whatever the module's own code raises
            parser.fault(item, exc)
    elif isinstance(item, ast.FunctionDef):
        if any(parser.ev(d) is macro for d in _decorators(item)):
            call = item.decorator_list[0]
            named = {k.arg: parser.ev(k.value) for k in call.keywords} if isinstance(call, ast.Call) else {}
            known[item.name] = Macro(None, item, source, env, bool(named.get("hygienic", True)))
            return
        try:
            code = compile(ast.Module([item], []), source.filename, "exec")
            exec(code, known)  # a helper function of the user's own text
        except Exception as exc:  # whatever its decorators or defaults raise
            parser.fault(item, exc)
    elif isinstance(item, ast.Assign) and all(isinstance(t, ast.Name) for t in item.targets):
        value = parser.ev(item.value)
        for target in item.targets:
            known[target.id] = value.replace(name=target.id) if isinstance(value, Var) and not value.name else value  # type: ignore
    else:
        parser.fail(item, "a text holds prim_funcs, modules, macros, helper functions, constants and imports")


def _import(parser: StmtParser, item: ast.Import | ast.ImportFrom, known: dict[str, Any]) -> None:
    """Import lines: the dialect's names, from this package or TVM's; other modules as Python imports them."""
    from . import ir, tir

    namespaces = {"tir": tir, "tirx": tir, "T": tir, "ir": ir, "I": ir}
    for alias in item.names:
        name = alias.asname or alias.name.split(".")[0]
        if isinstance(item, ast.ImportFrom):
            module = item.module or ""
            if module == "__future__":
                continue
            if module.split(".")[0] in _OURS and ("script" in module) and alias.name in namespaces:
                known[name] = namespaces[alias.name]
            elif module.split(".")[0] == "tvm":
                known.setdefault(name, known["tir"] if alias.name == "tir" else None)
            else:
                known[name] = getattr(__import__(module, fromlist=[alias.name]), alias.name)
        elif alias.name.split(".")[0] == "tvm":
            known.setdefault(name, known["tir"])
        else:
            top = __import__(alias.name)
            known[name] = sys.modules[alias.name] if alias.asname else top
