"""The decorators of the dialect, and what makes a function or a module of a definition."""

from __future__ import annotations

import ast
import builtins
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Annotated, Any, overload

from ..analysis.wellformed import verify
from ..dtype import HANDLE, VOID, DType
from ..errors import ParseError
from ..expr import TRUE, Var
from ..function import IRModule, PrimFunc
from ..node import freeze, frozendict
from ..stmt import Block, BlockRealize, Stmt
from ..visit import rewrite, with_recursion_limit
from . import frames as f
from . import source as _source
from .diagnostics import Abort, Diagnostic, Source, parse_error
from .environment import Environment, ModuleNames
from .macro import Macro
from .parse_names import Again, Definition
from .parse_stmt import StmtParser
from .scope import POISON, Scope, close
from .values import dtype_of, make_buffer


@dataclass
class Options:
    """How a function is decorated."""

    private: bool = False
    check_well_formed: bool = True


@dataclass(eq=False)
class Pending:
    """A prim_func inside an ``@I.ir_module`` class, until the class is complete."""

    func: FunctionType
    class_code: CodeType
    names: dict[str, Any]


def prim_func(
    func: Callable[..., Any] | None = None, *, private: bool = False, check_well_formed: bool = True, **_: Any
) -> Any:
    """Make a function of the dialect a ``PrimFunc``. ``private=True`` leaves out its global symbol.

    Raises ``ParseError`` with every error of the function.

    >>> from tir.script import tir as T
    >>> @T.prim_func
    ... def double(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    ...     for i in range(8):
    ...         B[i] = A[i] * 2.0
    >>> double.name
    'double'
    """
    if func is None:
        options = Options(private, check_well_formed)
        frame_names, code = _caller_names(sys._getframe(1))
        return lambda fn: _decorate(fn, options, frame_names, code)
    frame_names, code = _caller_names(sys._getframe(1))
    return _decorate(func, Options(private, check_well_formed), frame_names, code)


def _caller_names(frame: Any) -> tuple[dict[str, Any], Any]:
    """The local names where a function is decorated; of a class body, also those around the class."""
    names: dict[str, Any] = {}
    code = None
    if _source.is_class_body(frame.f_code, frame.f_locals):
        code = frame.f_code
        outer = frame.f_back
        if outer is not None and outer.f_code.co_filename == frame.f_code.co_filename:
            names.update(outer.f_locals)
    if frame.f_locals is not frame.f_globals:
        names.update(frame.f_locals)
    return names, code


def _decorate(func: Any, options: Options, names: dict[str, Any], class_code: Any) -> Any:
    if not inspect.isfunction(func):
        raise TypeError(f"@T.prim_func decorates a function, not {type(func).__name__}")
    code = class_code
    if code is not None and _source.decorates_class(code, func.__globals__, "ir_module"):
        return Pending(func, code, names)
    source, node = _source.of_function(func)
    env = Environment(_source.closure_of(func), names, func.__globals__, vars(builtins))
    return parse_function(node, source, env, options)


def macro(func: Callable[..., Any] | None = None, *, hygienic: bool = True) -> Any:
    """Make a function of the dialect a macro: its statements are put where it is called.

    A hygienic macro sees the names where it is defined; with ``hygienic=False`` those where it is called.

    >>> from tir.script import tir as T
    >>> @T.macro
    ... def put(buffer, index, value):
    ...     buffer[index] = value
    >>> @T.prim_func
    ... def clear(A: T.Buffer((8,), "float32")):
    ...     put(A, 3, T.float32(0))
    >>> clear.body
    A[3] = T.float32(0)
    """
    names, _ = _caller_names(sys._getframe(1))

    def make(fn: Any) -> Macro:
        source, node = _source.of_function(fn)
        env = Environment(_source.closure_of(fn), names, fn.__globals__, vars(builtins))
        return Macro(fn, node, source, env, hygienic)

    return make if func is None else make(func)


@overload
def ir_module(cls: type, **_: Any) -> IRModule: ...
@overload
def ir_module(cls: None = None, **_: Any) -> Callable[[type], IRModule]: ...
def ir_module(cls: type | None = None, **_: Any) -> Any:
    """Make a class of prim_funcs an ``IRModule``."""
    if cls is None:
        return ir_module
    if not isinstance(cls, type):
        raise TypeError(f"@I.ir_module decorates a class, not {type(cls).__name__}")
    pending = [item for item in vars(cls).values() if isinstance(item, Pending)]
    if not pending:
        return IRModule(frozendict({k: v for k, v in vars(cls).items() if isinstance(v, PrimFunc)}))
    first = pending[0]
    code = first.class_code
    source, node = _source.block_of(code, first.func.__globals__, f"class `{cls.__name__}`")
    if not isinstance(node, ast.ClassDef):
        raise ParseError(f"{code.co_filename}:{code.co_firstlineno} is not the definition of class `{cls.__name__}`")
    closures: dict[str, Any] = {}
    for item in pending:
        closures.update(_source.closure_of(item.func))  # pyright: ignore[reportArgumentType]
    inner = {k: v for k, v in vars(cls).items() if not isinstance(v, Pending)}
    env = Environment(closures, inner, first.names, first.func.__globals__, vars(builtins))
    return parse_module(node, source, env)


# ---------------------------------------------------------------- functions


@with_recursion_limit
def parse_function(node: ast.FunctionDef, source: Source, env: Environment, options: Options) -> PrimFunc:
    """A function definition as a PrimFunc. Raises ``ParseError`` with all its errors."""
    parser, func = built(source, env, node, options)
    if parser.diagnostics:
        raise parse_error(parser.diagnostics, f"prim_func `{node.name}`") from parser.cause
    assert func is not None
    if options.check_well_formed:
        _verify(func, node, source)
    return func


def _verify(program: PrimFunc | IRModule, node: ast.stmt, source: Source) -> None:
    """Raise ``WellFormedError`` for a program that breaks a rule, ``ParseError`` for one nested too deeply to check."""
    try:
        verify(program)
    except RecursionError:
        what = getattr(node, "name", "the program")
        fault = Diagnostic(source.span(node), f"`{what}` is nested too deeply", ["split long expressions"], source)
        raise parse_error([fault], f"`{what}`") from None


def built(
    source: Source, env: Environment, node: ast.FunctionDef, options: Options
) -> tuple[StmtParser, PrimFunc | None]:
    """A PrimFunc, or None if the parser recorded errors; the parser. A function in which names change is parsed once more
    for each of them."""
    changing: dict[Definition, DType | None] = {}
    while True:
        parser = StmtParser(source, env, changing)
        try:
            return parser, build_function(parser, node, options)
        except Again:
            continue


def build_function(parser: StmtParser, node: ast.FunctionDef, options: Options) -> PrimFunc | None:
    """A PrimFunc, or None if the parser recorded errors."""
    scope = Scope()
    parser.scopes.append(scope)
    parser.size_dtypes = _declared_sizes(node)
    params = _parameters(parser, node, scope)
    ret_type = VOID
    try:
        if node.returns is not None and (kind := parser.ev(node.returns)) is not None:
            ret_type = dtype_of(kind) if not isinstance(kind, Var) else HANDLE
    except Abort:
        pass
    except (TypeError, ValueError) as exc:
        parser.report(node.returns, str(exc))  # pyright: ignore[reportArgumentType]
    parser.scopes.append(Scope())
    parser.function_body(node.body)
    if parser.diagnostics:
        return None
    body = _complete(parser, close(parser.out))
    attrs = dict(parser.func_attrs)
    if options.private and "global_symbol" in attrs:
        parser.report(
            node,
            f"`{node.name}` is private, but has the global_symbol {attrs['global_symbol']!r}",
            "a private function has no name outside of its module: leave one of the two out",
        )
        return None
    if not options.private:
        attrs = {"global_symbol": node.name, **attrs}
    buffer_map = frozendict({p: parser.buffer_map[p] for p in params if p in parser.buffer_map})
    return PrimFunc(tuple(params), body, ret_type, buffer_map, freeze(attrs))  # type: ignore[arg-type]


def _complete(parser: StmtParser, body: Stmt) -> Stmt:
    """The body with its root block, where the function is in block form."""
    if isinstance(body, BlockRealize) and not body.block.iter_vars and not parser.root_buffers:
        return body
    if parser.unregioned:  # blocks taken for the root as they were parsed, which are not
        body = rewrite(body, lambda n: parser.infer_regions(n, None) if n in parser.unregioned else None)
    if not parser.has_block and not parser.root_buffers:
        return body
    name = parser.unique_name("root")
    return BlockRealize((), TRUE, Block((), (), (), name, body, None, tuple(parser.root_buffers)))


def _parameters(parser: StmtParser, node: ast.FunctionDef, scope: Scope) -> list[Var]:
    """Parameters from their annotations; those that mention other parameters after these."""
    args = node.args
    for extra in (args.vararg, args.kwarg, *args.kwonlyargs):
        if extra is not None:
            parser.report(extra, "a prim_func has plain parameters only")
    for default in args.defaults:
        parser.report(default, "a prim_func's parameters have no defaults")
    items = [*args.posonlyargs, *args.args]
    names = {a.arg for a in items}
    made: dict[str, Var] = {}

    def depends(arg: ast.arg) -> bool:
        walk = ast.walk(arg.annotation) if arg.annotation is not None else ()
        return any(isinstance(n, ast.Name) and n.id in names for n in walk)

    for arg in sorted(items, key=depends):
        if parser.diagnostics and parser.env.first_error_only:
            break
        try:
            made[arg.arg] = _parameter(parser, arg, scope)
        except Abort:
            scope.names[arg.arg] = POISON
    return [made[a.arg] for a in items if a.arg in made]


def _parameter(parser: StmtParser, arg: ast.arg, scope: Scope) -> Var:
    if arg.annotation is None:
        return parser.fail(
            arg, f"parameter `{arg.arg}` has no type", 'write one: T.Buffer((128,), "float32"), T.handle, T.int32, …'
        )
    annotation = arg.annotation
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        annotation = _annotation_in(parser, annotation.value, arg.annotation)
    kind = parser.ev(_called(parser, annotation))
    if isinstance(kind, f.BufferSpec):
        shape = tuple(_symbol(s, parser, scope) if isinstance(s, str) else s for s in kind.shape)
        try:
            buffer = make_buffer(kind, arg.arg, shape)
        except (TypeError, ValueError) as exc:
            return parser.fail(annotation, str(exc))
        var = Var(f"{arg.arg}_handle", HANDLE)
        parser.buffer_map[var] = buffer
        scope.names[arg.arg] = buffer
    else:
        try:
            var = kind.replace(name=arg.arg) if isinstance(kind, Var) else Var(arg.arg, dtype_of(kind))  # type: ignore[arg-type]
        except (TypeError, ValueError):
            return parser.fail(
                annotation,
                f"`{ast.unparse(annotation)}` is not a type of the dialect",
                'write T.Buffer((128,), "float32"), T.handle, T.int32, …',
            )
        scope.names[arg.arg] = var
    parser.known.add(var)
    parser.params[var] = arg
    return var


def _called(parser: StmtParser, annotation: ast.expr) -> ast.expr:
    """``Annotated[T.Buffer, (4, 8), "float32"]``, which type checkers take as a type, says ``T.Buffer((4, 8), "float32")``."""
    match annotation:
        case ast.Subscript(ast.Name(name), ast.Tuple([function, *args])) if parser.env.get(name) is Annotated:
            return ast.copy_location(ast.Call(function, args, []), annotation)
    return annotation


def _annotation_in(parser: StmtParser, text: str, node: ast.expr) -> ast.expr:
    """The annotation that a string holds, at the place of the string."""
    try:
        annotation = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as exc:
        parser.fail(node, f"this annotation is not Python syntax: {getattr(exc, 'msg', exc)}")
    for child in ast.walk(annotation):
        ast.copy_location(child, node)
    return annotation


def _symbol(name: str, parser: StmtParser, scope: Scope) -> Var:
    """A size given by name, ``T.Buffer(("n", 4), …)``: the same variable wherever it is named."""
    found = scope.names.get(name)
    if not isinstance(found, Var):
        found = scope.names[name] = parser.sizes[name] = Var(name, DType(parser.size_dtypes.get(name, "int32")))
    return found


def _declared_sizes(node: ast.FunctionDef) -> dict[str, str]:
    """The types in ``n = T.int64()`` and ``n, m = T.int64(), T.int64()``, which may name sizes of the signature."""
    found: dict[str, str] = {}
    for statement in node.body:
        if not isinstance(statement, ast.Assign):
            continue
        target, value = statement.targets[0], statement.value
        targets = target.elts if isinstance(target, ast.Tuple) else [target]
        for name, made in zip(targets, value.elts if isinstance(value, ast.Tuple) else [value]):
            if isinstance(name, ast.Name) and isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute):
                if made.func.attr in ("int32", "int64") and not made.args:
                    found[name.id] = made.func.attr
    return found


# ---------------------------------------------------------------- modules


@dataclass(eq=False)
class GlobalFunction:
    """A function of the module being parsed; calling it makes a ``call_global``."""

    name: str
    dtype: str = "void"

    def __call__(self, *args: Any) -> Any:
        from .tir import call_global

        return call_global(self.name, *args, dtype=self.dtype)


@with_recursion_limit
def parse_module(node: ast.ClassDef, source: Source, env: Environment) -> IRModule:
    """A class of prim_funcs as an IRModule. Raises ``ParseError`` with all errors of all functions."""
    definitions = [item for item in node.body if isinstance(item, ast.FunctionDef)]
    reader = StmtParser(source, env)
    names = {d.name: GlobalFunction(d.name, _return_type(reader, d)) for d in definitions}
    module = ModuleNames(names)
    faults: list[Diagnostic] = []
    functions: dict[str, PrimFunc] = {}
    attrs: dict[str, Any] = {}
    constants: dict[str, Any] = {}
    cause = None
    unchecked = False
    for item in node.body:
        if faults and env.first_error_only:
            break
        inner = env.inside({node.name: module, "cls": module}, constants)
        parser = StmtParser(source, inner)
        try:
            if isinstance(item, ast.FunctionDef):
                options = options_of(parser, item)
                parser, func = built(source, inner, item, options)
                if func is not None:
                    functions[item.name] = func
                    unchecked |= not options.check_well_formed
            elif isinstance(item, ast.Expr):
                value = parser.ev(item.value)
                if isinstance(value, f.Directive) and value.key == "module_attrs":
                    attrs.update(value.value)
            elif isinstance(item, ast.Assign) and isinstance(item.targets[0], ast.Name):
                constants[item.targets[0].id] = parser.constant(item.value)
            elif not isinstance(item, ast.Pass):
                parser.fail(item, "a module holds prim_funcs, constants and I.module_attrs")
        except Abort:
            pass
        faults.extend(parser.diagnostics)
        cause = cause or parser.cause
    if faults:
        raise parse_error(faults, f"module `{node.name}`") from cause
    made = IRModule(frozendict(functions), freeze(attrs))
    if not unchecked:
        _verify(made, node, source)
    return made


def _return_type(parser: StmtParser, node: ast.FunctionDef) -> str:
    if node.returns is None or (isinstance(node.returns, ast.Constant) and node.returns.value is None):
        return "void"
    try:
        return dtype_of(parser.ev(node.returns))
    except (Abort, TypeError, ValueError):
        return "void"  # reported when the function itself is parsed


def options_of(parser: StmtParser, node: ast.FunctionDef) -> Options:
    """The options in a prim_func's decorator. Records an error for any other decorator."""
    for item in node.decorator_list:
        call = item if isinstance(item, ast.Call) else None
        target = parser.ev(call.func if call is not None else item)
        if target is prim_func:
            named = {k.arg: parser.ev(k.value) for k in call.keywords if k.arg} if call is not None else {}
            return Options(bool(named.get("private")), bool(named.get("check_well_formed", True)))
    return parser.fail(node, f"`{node.name}` is not decorated with @T.prim_func")


# ---------------------------------------------------------------- text
