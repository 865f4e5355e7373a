"""A CUDA module as a C file: its machine code and PTX as arrays, and functions that launch its kernels by the driver's API.

The host function that lowering left becomes C99, statement by statement; :mod:`codegen.host_program` runs the same statements from
Python. A program compiles the file with ``cuda.h`` and links the driver's library (``-lcuda``).
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tir import expr as E
from tir.dtype import DType
from tir.errors import BuildError
from tir.expr import Call, Expr, FloatImm, IntImm, Var
from tir.launches import place_of
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
from tir.visit import substitute

from .. import container
from ..aot.prototypes import Function, Parameter, c_scalar, exported
from ..c_names import identifier, parameter
from ..host_program import LAUNCH_SIZES
from .tensor_map import MapParameter

if TYPE_CHECKING:
    from .module import CUDAModule

SUFFIX = ".c"
_INFIX: dict[Any, str] = {
    **{kind: E.SYMBOLS[kind] for kind in (E.Add, E.Sub, E.Mul, E.Div, *E.COMPARED)}, E.Mod: "%", E.And: "&&", E.Or: "||",
}  # fmt: skip
_CALLED: dict[Any, str] = {E.FloorDiv: "floordiv", E.FloorMod: "floormod", E.Min: "least", E.Max: "most"}
_BITWISE = {"bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^"}
_OWN = (
    "error", "load", "load_in", "unload", "cubin", "ptx", "kernels", "dynamic", "messages", "module", "context",
    "functions",
)  # fmt: skip
_LOCALS = ("code", "stream", "arguments", "sizes")  # names that the functions use


def write(path: Path, header: Path | None, module: CUDAModule) -> None:
    """Write ``path`` and its ``header``, by default beside it. Raises ``BuildError`` without NVRTC, and for a host function
    that C cannot be written of."""
    header = path.with_suffix(".h") if header is None else header
    source = _Source(module, identifier(path.stem), header.name)
    text, declared = source.text(), source.header()
    container.write_bytes(path, text.encode())
    container.write_bytes(header, declared.encode())


class _Source:
    """The two files of a module, in a program that calls it ``stem``."""

    def __init__(self, module: CUDAModule, stem: str, header: str):
        self.module, self.stem, self.header_name = module, stem, header
        self.numbers = {name: k for k, name in enumerate(module.texts)}
        self.messages: list[str] = []
        hosts = {name: SimpleNamespace(func=f.func, written=f.outputs()) for name, f in module.functions.items()}
        own = tuple(f"{stem}_{name}" for name in (*_OWN, *_HELPERS))
        self.functions = exported(hosts, stem, defined=own)

    def header(self) -> str:
        guard = f"{self.stem.upper()}_H"
        functions = "\n".join(self._about(f) + f"{_head(f)};\n" for f in self.functions)
        return f"""#ifndef {guard}
#define {guard}

#include <stdint.h>
#include <cuda.h>

#ifdef __cplusplus
extern "C" {{
#endif

{functions}
/* Loads the kernels in the current context, which the first call does otherwise: 0, or the number of an error. Calls
 * from several threads may begin when it has returned. */
int32_t {self.stem}_load(void);
/* Unloads them, when no call runs. */
int32_t {self.stem}_unload(void);
/* The text of an error; a null pointer for 0. */
const char *{self.stem}_error(int32_t code);

#ifdef __cplusplus
}}
#endif

#endif
"""

    def _about(self, function: Function) -> str:
        notes = "".join(f" *   {p.name}: on the device, {p.note}\n" for p in _parameters(function) if p.note)
        return f"/* {function.symbol}: enqueues its kernels on the stream; 0, or the number of an error.\n{notes} */\n"

    def text(self) -> str:
        functions = "\n".join(_Body(self, f).text() for f in self.functions)
        used = [text for name, text in _HELPERS.items() if f"@STEM@_{name}(".replace("@STEM@", self.stem) in functions]
        texts = self.module.texts.values()
        replaced = {
            "STEM": self.stem,
            "HEADER": self.header_name,
            "CUBIN": _bytes(self.module.cubin()),
            "PTX": _bytes(str(self.module.source("ptx")).encode() + b"\0"),
            "KERNELS": str(len(self.numbers)),
            "COUNT": str(max(1, len(self.numbers))),
            "NAMES": ", ".join([*(_quoted(t.name) for t in texts), "0"]),
            "DYNAMIC": ", ".join([*(str(t.dynamic) for t in texts), "0"]),
            "MESSAGES": ", ".join(map(_quoted, [*self.messages, ""])),
            "KNOWN": str(len(self.messages)),
            "MOST": str(self.module.target.limit("max_threads_per_block") or 1024),
        }
        text = "\n".join([_RUNTIME, *used])
        for key, value in replaced.items():
            text = text.replace(f"@{key}@", value)
        return f"{text}\n{functions}"

    def code_of(self, message: str) -> int:
        if message not in self.messages:
            self.messages.append(message)
        return self.messages.index(message) + 1


def _parameters(function: Function) -> list[Parameter]:
    """The parameters in C: pointers of the device for buffers, then sizes."""
    found = function.parameters(_LOCALS)
    return [Parameter(p.name, "CUdeviceptr", "ptr", p.note) if p.llvm_type == "ptr" else p for p in found]


def _head(function: Function) -> str:
    declared = ", ".join([*(p.declared for p in _parameters(function)), "CUstream stream"])
    return f"int32_t {function.symbol}({declared})"


class _Body:
    """The C function of a host function. Each statement does nothing once ``code`` is not 0."""

    def __init__(self, source: _Source, function: Function):
        self.source, self.function, self.lines, self.depth = source, function, [], 1
        given = _parameters(function)
        self.names: dict[Any, str] = dict(zip(function.slots, (p.name for p in given)))
        self.taken = {*_LOCALS, *self.names.values()}
        for param, buffer in function.func.buffer_map.items():
            self.names[buffer.data] = self.names[param]

    def text(self) -> str:
        self.emit(f"int32_t code = {self.source.stem}_load();")
        for pointer, (need, kernel) in self.source.module.functions[self.function.name].alignments.items():
            if pointer not in self.names:
                continue  # memory between kernels, which the driver aligns
            message = f"`{pointer.name}` of {kernel} is not aligned to {need} bytes, as its vector accesses need"
            self.emit(f"if (code == 0 && {self.names[pointer]} % {need} != 0) code = {self.source.code_of(message)};")
        self.stmt(self.function.func.body)
        self.emit("return code;")
        body = "\n".join(self.lines)
        return f"{_head(self.function)} {{\n{body}\n}}\n"

    def emit(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def error(self, message: str) -> BuildError:
        return BuildError(f"{self.function.func.name}: {message}; tir.load of a .zip runs it from Python")

    def new(self, var: Var) -> str:
        name = self.names[var] = parameter(var.name, self.taken)
        self.taken.add(name)
        return name

    def block(self, head: str, body: Any) -> None:
        self.emit(f"{head} {{")
        self.depth += 1
        self.stmt(body)
        self.depth -= 1
        self.emit("}")

    # ---------------------------------------------------------- statements

    def stmt(self, s: Any) -> None:
        if isinstance(s, SeqStmt):
            for part in s.stmts:
                self.stmt(part)
        elif isinstance(s, (AttrStmt, DeclBuffer)):
            self.stmt(s.body)
        elif isinstance(s, Evaluate) and isinstance(s.value, Call) and s.value.op == "tvm_call_packed":
            self.launch(s.value)
        elif isinstance(s, For) and s.kind in ("serial", "unrolled", "parallel"):
            first, count = self.value(s.min), self.value(s.extent)
            name = self.new(s.loop_var)
            type_ = c_scalar(s.loop_var.dtype)
            self.block(f"for ({type_} {name} = {first}; code == 0 && {name} < {first} + {count}; ++{name})", s.body)
        elif isinstance(s, While):
            self.block(f"while (code == 0 && {self.value(s.condition)})", s.body)
        elif isinstance(s, IfThenElse):
            condition = self.value(s.condition)
            self.block(f"if (code == 0 && {condition})", s.then_case)
            if s.else_case is not None:
                self.block("else if (code == 0)", s.else_case)
        elif isinstance(s, AssertStmt):
            code = self.source.code_of(f"{self.function.func.name}: assertion failed: {string_arg(s.message)}")
            self.emit(f"if (code == 0 && !{self.value(s.condition)}) code = {code};")
        elif isinstance(s, (LetStmt, Allocate)):
            self.scope(s)
        elif not is_nop(s):
            raise self.error(f"this statement has no C outside of a kernel:\n{s!r}")

    def scope(self, s: LetStmt | Allocate) -> None:
        """A statement with a variable of its own."""
        self.emit("if (code == 0) {")
        self.depth += 1
        if isinstance(s, LetStmt):
            value = self.value(s.value)
            self.emit(f"{c_scalar(s.var.dtype)} {self.new(s.var)} = {value};")
            self.emit(f"(void){self.names[s.var]};")
            self.stmt(s.body)
        else:
            size = " * ".join([f"(size_t){s.dtype.bytes}", *(f"(size_t){self.value(e)}" for e in s.extents)])
            name = self.new(s.buffer_var)
            self.emit(f"CUdeviceptr {name} = 0;")
            self.emit(f"code = {self.source.stem}_allocate(&{name}, {size}, stream);")
            self.stmt(s.body)
            self.emit(f"code = {self.source.stem}_release({name}, stream, code);")
        self.depth -= 1
        self.emit("}")

    def launch(self, e: Call) -> None:
        name = string_arg(e.args[0])
        text = self.source.module.texts[name]
        axes = tuple(self.source.module.kernels[name].attrs["tir.kernel_launch_params"])
        count = len(text.params)
        self.emit("if (code == 0) {")
        self.depth += 1
        places = []
        for k, (arg, dtype) in enumerate(zip(e.args[1:], text.params)):
            local = parameter(f"a{k}", self.taken)
            places.append(f"&{local}")
            if dtype.is_handle:
                memory, begin = place_of(arg)
                add = "" if isinstance(arg, Var) else f" + (CUdeviceptr){self.value(begin)}"
                self.emit(f"CUdeviceptr {local} = {self.value(memory)}{add};")
            else:
                self.emit(f"{c_scalar(dtype)} {local} = {self.value(arg)};")
        given = dict(zip(self.source.module.kernels[name].params, e.args[1:]))
        places += [self.tensor_map(parameter, given) for parameter in text.maps]
        sizes = dict(zip(axes, map(self.value, e.args[1 + count :])))
        numbers = ", ".join(sizes.get(axis, "0" if axis == LAUNCH_SIZES[-1] else "1") for axis in LAUNCH_SIZES)
        self.emit(f"void *arguments[] = {{{', '.join([*places, '0'])}}};")
        self.emit(f"int64_t sizes[] = {{{numbers}}};")
        call = f"{self.source.stem}_launch({self.source.numbers[name]}, arguments, sizes, stream)"
        self.emit(f"{'if (code == 0) ' * bool(text.maps)}code = {call};")
        self.depth -= 1
        self.emit("}")

    def tensor_map(self, made: MapParameter, given: dict[Var, Expr]) -> str:
        """The address of the tensor map of a kernel's parameter; the other parameters have the values ``given``."""
        tensor = self.value(given[made.pointer])
        message = f"`{made.pointer.name}` of {made.kernel} is not aligned to 16 bytes, as its tensor map needs"
        self.emit(f"if (code == 0 && {tensor} % 16 != 0) code = {self.source.code_of(message)};")
        name = parameter(f"{made.pointer.name}_map", self.taken)
        self.taken.add(name)
        shape, strides, box = ([self.value(substitute(e, given)) for e in part] for part in made.sizes)
        arrays = {
            "cuuint64_t": (shape, [f"{n} * {made.element}" for n in strides[:-1]] or ["0"]),
            "cuuint32_t": (box, ["1"] * len(box)),
        }
        parts = []
        for type_, lists in arrays.items():
            for part in lists:
                parts.append(f"{name}_{len(parts)}")
                self.emit(f"{type_} {parts[-1]}[] = {{{', '.join(f'({type_})({n})' for n in reversed(part))}}};")
        self.emit(f"CUtensorMap {name};")
        self.emit(
            f"if (code == 0) code = -(int32_t)cuTensorMapEncodeTiled(&{name}, CU_TENSOR_MAP_{made.type_name}, {len(box)}, "
            f"(void *)(size_t){tensor}, {', '.join(parts)}, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_{made.swizzle_name}, "
            "CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);"
        )
        return f"&{name}"

    # ---------------------------------------------------------- expressions

    def value(self, e: Expr) -> str:
        """``e`` in C: integers in 64 bits, as in :func:`tir.arith.pointwise.compile_expr`, or a variable or a constant."""
        if isinstance(e, Var):
            if e not in self.names:
                raise self.error(f"variable `{e.name}` is undefined")
            return f"(int64_t){self.names[e]}" if e.dtype.is_int else self.names[e]
        if isinstance(e, FloatImm):
            return _float(e.value, e.dtype)
        if isinstance(e, IntImm):
            return f"INT64_C({e.value})" if e.value > -(2**63) else "INT64_MIN"
        return f"({self._operation(e)})"

    def _operation(self, e: Any) -> str:
        if type(e) in _INFIX and not e.a.dtype.is_float:
            return f"{self.value(e.a)} {_INFIX[type(e)]} {self.value(e.b)}"
        if type(e) in _CALLED and not e.a.dtype.is_float:
            return f"{self.source.stem}_{_CALLED[type(e)]}({self.value(e.a)}, {self.value(e.b)})"
        if isinstance(e, E.Not):
            return f"!{self.value(e.a)}"
        if (parts := E.choice_parts(e)) is not None:
            condition, yes, no = map(self.value, parts)
            return f"{condition} ? {yes} : {no}"
        if isinstance(e, Call) and e.op == "likely":
            return self.value(e.args[0])
        if isinstance(e, Call) and e.op in _BITWISE and e.dtype.is_int:
            return f"{self.value(e.args[0])} {_BITWISE[e.op]} {self.value(e.args[1])}"
        if isinstance(e, E.Cast) and e.dtype.is_int and not e.value.dtype.is_float:
            return f"(int64_t)({c_scalar(e.dtype)}){self.value(e.value)}"
        raise self.error(f"`{e!r}` has no C outside of a kernel")


def _float(value: float, dtype: DType) -> str:
    from .plan import pack

    packed = pack(value, dtype).value
    if isinstance(packed, int):  # the bits of a small float
        return str(packed)
    return (
        "NAN"
        if packed != packed
        else f"{'-' if packed < 0 else ''}INFINITY"
        if abs(packed) == float("inf")
        else packed.hex()
    )


def _bytes(data: bytes) -> str:
    return "\n".join(f"    {','.join(map(str, data[at : at + 32]))}," for at in range(0, len(data), 32))


def _quoted(text: str) -> str:
    plain = (chr(b) if 32 <= b < 127 and b not in b'"\\?' else f"\\{b:03o}" for b in text.encode())
    return f'"{"".join(plain)}"'


_RUNTIME = """\
#include <math.h>
#include <stddef.h>
#include "@HEADER@"

static const unsigned char @STEM@_cubin[] = {
@CUBIN@
};
static const unsigned char @STEM@_ptx[] = {
@PTX@
};
static const char *const @STEM@_kernels[] = {@NAMES@};
static const int @STEM@_dynamic[] = {@DYNAMIC@};
static const char *const @STEM@_messages[] = {@MESSAGES@};
static CUmodule @STEM@_module;
static CUcontext @STEM@_context;
static CUfunction @STEM@_functions[@COUNT@];

/* An error of the driver is its negative number. */
static int32_t @STEM@_load_in(CUcontext context) {
    CUmodule module;
    CUfunction functions[@COUNT@];
    CUresult result = cuModuleLoadData(&module, @STEM@_cubin);
    if (result == CUDA_ERROR_NO_BINARY_FOR_GPU || result == CUDA_ERROR_INVALID_SOURCE) /* of another architecture */
        result = cuModuleLoadData(&module, @STEM@_ptx);
    if (result != CUDA_SUCCESS) return -(int32_t)result;
    for (int k = 0; k < @KERNELS@ && result == CUDA_SUCCESS; ++k) {
        result = cuModuleGetFunction(&functions[k], module, @STEM@_kernels[k]);
        if (result == CUDA_SUCCESS && @STEM@_dynamic[k] > 0)
            result = cuFuncSetAttribute(functions[k], CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, @STEM@_dynamic[k]);
        @STEM@_functions[k] = functions[k];
    }
    if (result != CUDA_SUCCESS) {
        cuModuleUnload(module);
        return -(int32_t)result;
    }
    @STEM@_module = module;
    @STEM@_context = context;
    return 0;
}

int32_t @STEM@_load(void) {
    CUcontext context;
    CUresult result = cuCtxGetCurrent(&context);
    if (result != CUDA_SUCCESS) return -(int32_t)result;
    if (context == NULL) return -(int32_t)CUDA_ERROR_INVALID_CONTEXT;
    if (@STEM@_module == NULL) return @STEM@_load_in(context);
    return context == @STEM@_context ? 0 : -(int32_t)CUDA_ERROR_INVALID_CONTEXT;
}

int32_t @STEM@_unload(void) {
    CUmodule module = @STEM@_module;
    @STEM@_module = NULL;
    return module == NULL ? 0 : -(int32_t)cuModuleUnload(module);
}

const char *@STEM@_error(int32_t code) {
    const char *text = NULL;
    if (code < 0 && cuGetErrorString((CUresult)-code, &text) != CUDA_SUCCESS) return "an unknown error of the CUDA driver";
    return code > 0 && code <= @KNOWN@ ? @STEM@_messages[code - 1] : text;
}
"""
_HELPERS = {
    "launch": """\
/* sizes: the grid and the block in x, y and z, and the bytes of dynamic shared memory. An empty launch is none. */
static int32_t @STEM@_launch(int kernel, void **arguments, const int64_t *sizes, CUstream stream) {
    static const int64_t most[] = {2147483647, 65535, 65535, @MOST@, @MOST@, 64, 2147483647};
    for (int k = 0; k < 6; ++k)
        if (sizes[k] == 0) return 0;
    for (int k = 0; k < 7; ++k)
        if (sizes[k] < 0 || sizes[k] > most[k]) return -(int32_t)CUDA_ERROR_INVALID_VALUE;
    return -(int32_t)cuLaunchKernel(@STEM@_functions[kernel], (unsigned)sizes[0], (unsigned)sizes[1], (unsigned)sizes[2],
        (unsigned)sizes[3], (unsigned)sizes[4], (unsigned)sizes[5], (unsigned)sizes[6], stream, arguments, NULL);
}
""",
    "allocate": """\
static int32_t @STEM@_allocate(CUdeviceptr *memory, size_t bytes, CUstream stream) {
    return -(int32_t)cuMemAllocAsync(memory, bytes > 0 ? bytes : 1, stream);
}
static int32_t @STEM@_release(CUdeviceptr memory, CUstream stream, int32_t code) {
    CUresult result = memory != 0 ? cuMemFreeAsync(memory, stream) : CUDA_SUCCESS;
    return code != 0 ? code : -(int32_t)result;
}
""",
    "floordiv": """\
static int64_t @STEM@_floordiv(int64_t a, int64_t b) {
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
""",
    "floormod": """\
static int64_t @STEM@_floormod(int64_t a, int64_t b) {
    return a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0);
}
""",
    "least": """\
static int64_t @STEM@_least(int64_t a, int64_t b) {
    return a < b ? a : b;
}
""",
    "most": """\
static int64_t @STEM@_most(int64_t a, int64_t b) {
    return a > b ? a : b;
}
""",
}
