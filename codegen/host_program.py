"""Running the host function that remains after kernels were split off: loops, conditions, buffers, launches.

The statements are compiled to Python closures once; a call then walks them. The caller defines what a launch does and
what memory is, so that a CUDA device and a simulator run the same host function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from tir.arith.pointwise import Unsupported, compile_expr
from tir.dtype import DType
from tir.errors import BuildError, RunError
from tir.expr import Call, Expr, FloatImm, StringImm, Var
from tir.function import PrimFunc
from tir.launches import place_of
from tir.levels import LAUNCH_AXES
from tir.op import string_arg
from tir.stmt import (
    Allocate,
    AssertStmt,
    AttrStmt,
    DeclBuffer,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    SeqStmt,
    While,
    is_nop,
)
from tir.visit import free_vars

DYNAMIC = "tir.use_dyn_shared_memory"
Size3 = tuple[int, int, int]


class Device(Protocol):
    """What a host function launches kernels on."""

    def launch(self, kernel: str, args: Sequence[Any], grid: Size3, block: Size3, dynamic_shared_bytes: int) -> None:
        """Called at each launch, with ``args`` in the order of the kernel's parameters."""

    def allocate(self, dtype: DType, elements: int) -> Any:
        """New memory for a buffer between launches, as a kernel's argument."""

    def part(self, memory: Any, begin: int, dtype: DType) -> Any:
        """The elements ``begin`` bytes after the first of ``memory``, as a kernel's argument."""


Step = Callable[[dict[Var, Any], Device], None]


class _Returned(Exception):
    """A host function returns a value."""


class HostProgram:
    """A host function ready to run.

    ``run(values, device)`` gives the value that the function returns, or None; ``values`` has the value of every pointer and scalar
    variable of the function.

    Raises ``BuildError`` for a statement that cannot run on the host, ``RunError`` for an assertion that fails.
    """

    def __init__(self, host: PrimFunc, kernels: dict[str, PrimFunc]):
        self.host = host
        self._axes = {name: tuple(f.attrs["tir.kernel_launch_params"]) for name, f in kernels.items()}
        self._params = {name: f.params for name, f in kernels.items()}
        self._step = self._compile(host.body)

    def run(self, values: dict[Var, Any], device: Device) -> Any:
        try:
            self._step(dict(values), device)
        except _Returned as returned:
            return returned.args[0]
        return None

    def _compile(self, s: Any) -> Step:
        if isinstance(s, SeqStmt):
            steps = [self._compile(part) for part in s.stmts]

            def in_order(env: Any, device: Device) -> None:
                for step in steps:
                    step(env, device)

            return in_order
        if isinstance(s, (AttrStmt, DeclBuffer)):
            return self._compile(s.body)
        if isinstance(s, Evaluate):
            if isinstance(s.value, Call) and s.value.op == "tvm_call_packed":
                return self._launch(s.value)
            if isinstance(s.value, Call) and s.value.op == "ret":
                return self._return(s.value)
            if is_nop(s):
                return lambda env, device: None
        if isinstance(s, For) and s.kind in ("serial", "unrolled", "parallel"):
            return self._loop(s)
        if isinstance(s, While):
            go_on, body = self._value(s.condition), self._compile(s.body)

            def repeat(env: Any, device: Device) -> None:
                while go_on(env):
                    body(env, device)

            return repeat
        if isinstance(s, IfThenElse):
            return self._branch(s)
        if isinstance(s, LetStmt):
            value, body, var = self._value(s.value), self._compile(s.body), s.var

            def bind(env: Any, device: Device) -> None:
                body({**env, var: value(env)}, device)

            return bind
        if isinstance(s, AssertStmt):
            holds, message = self._value(s.condition), string_arg(s.message)

            def check(env: Any, device: Device) -> None:
                if not holds(env):
                    raise RunError(f"{self.host.name}: assertion failed: {message}")

            return check
        if isinstance(s, Allocate):
            return self._allocate(s)
        raise BuildError(f"{self.host.name}: this statement cannot run outside of a kernel:\n{s!r}")

    def _loop(self, s: For) -> Step:
        first, count, body, var = self._value(s.min), self._value(s.extent), self._compile(s.body), s.loop_var

        def loop(env: Any, device: Device) -> None:
            begin = first(env)
            for k in range(begin, begin + count(env)):
                body({**env, var: k}, device)

        return loop

    def _branch(self, s: IfThenElse) -> Step:
        holds, then = self._value(s.condition), self._compile(s.then_case)
        other = None if s.else_case is None else self._compile(s.else_case)

        def branch(env: Any, device: Device) -> None:
            if holds(env):
                then(env, device)
            elif other is not None:
                other(env, device)

        return branch

    def _allocate(self, s: Allocate) -> Step:
        extents, body, var, dtype = [self._value(e) for e in s.extents], self._compile(s.body), s.buffer_var, s.dtype

        def hold(env: Any, device: Device) -> None:
            count = 1
            for extent in extents:
                count *= extent(env)
            body({**env, var: device.allocate(dtype, count)}, device)

        return hold

    def _launch(self, e: Call) -> Step:
        name = string_arg(e.args[0])
        if name not in self._axes:
            raise BuildError(f"{self.host.name}: it launches `{name}`, which is no kernel of the module")
        axes, params = self._axes[name], self._params[name]
        count = len(params)
        sizes = [self._value(a) for a in e.args[1 + count :]]
        if len(sizes) != len(axes):
            raise BuildError(
                f"{self.host.name}: the launch of `{name}` gives {len(e.args) - 1} values; it takes {count} arguments and "
                f"{len(axes)} extents ({', '.join(axes)})"
            )
        places = [axes.index(a) if a in axes else -1 for a in LAUNCH_SIZES]
        given = [self._argument(a, p) for a, p in zip(e.args[1:], params)]

        def run(env: Any, device: Device) -> None:
            x, y, z, tx, ty, tz = (1 if at < 0 else sizes[at](env) for at in places[:6])
            if 0 in (x, y, z, tx, ty, tz):
                return  # an empty launch
            shared = 0 if places[6] < 0 else sizes[places[6]](env)
            device.launch(name, [v(env, device) for v in given], (x, y, z), (tx, ty, tz), shared)

        return run

    def _argument(self, e: Expr, param: Var) -> Callable[[dict[Var, Any], Device], Any]:
        """An argument of a launch: a number, memory, or a part of memory."""
        if not param.dtype.is_handle or isinstance(e, Var):
            value = self._value(e)
            return lambda env, device: value(env)
        memory, begin = place_of(e)
        at, dtype = self._value(begin), param.pointer_dtype
        assert dtype is not None, "a kernel's pointer has the type of its elements"
        return lambda env, device: device.part(env[memory], at(env), dtype)

    def _return(self, e: Call) -> Step:
        value = self._value(e.args[0])

        def end(env: Any, device: Device) -> None:
            raise _Returned(value(env))

        return end

    def _value(self, e: Expr) -> Callable[[dict[Var, Any]], Any]:
        if isinstance(e, Var):
            return lambda env: env[e]
        if isinstance(e, (FloatImm, StringImm)):
            return lambda env: e.value
        used = free_vars(e)
        try:
            function = compile_expr(e, used)
        except Unsupported as error:
            raise BuildError(f"{self.host.name}: `{e!r}` cannot be computed outside of a kernel") from error
        return lambda env: function(*[env[v] for v in used])


LAUNCH_SIZES = (*LAUNCH_AXES, DYNAMIC)
