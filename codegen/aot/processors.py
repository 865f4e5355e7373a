"""One file for several processors: the code for each, and the choice of one when the first function is called.

x86-64 alone: its processors say by the instruction CPUID what they have, and the system by XGETBV which registers it keeps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tir.errors import BuildError
from tir.target import Target

from ..llvm.compile import Machine, architecture
from ..llvm.cpu_features import Needs
from ..llvm.parallel import declared_elsewhere
from ..llvm.text import byte_string, symbol

# Where CPUID says it: leaf, subleaf and register (of eax, ebx, ecx, edx), and LLVM's features by their bits. From the manual.
_FEATURES = {
    (1, 0, 2): "sse3=0 ssse3=9 fma=12 sse4.1=19 sse4.2=20 crc32=20 movbe=22 popcnt=23 avx=28 f16c=29",
    (1, 0, 3): "cmov=15 mmx=23 sse=25 sse2=26",
    (7, 0, 1): "bmi=3 avx2=5 bmi2=8 avx512f=16 avx512dq=17 avx512ifma=21 avx512cd=28 avx512bw=30 avx512vl=31",
    (7, 0, 2): "avx512vbmi=1 avx512vbmi2=6 gfni=8 avx512vnni=11 avx512bitalg=12 avx512vpopcntdq=14 movdiri=27",
    (7, 0, 3): "avx512vp2intersect=8 avx512fp16=23",
    (7, 1, 0): "avxvnni=4 avx512bf16=5",
    (0x80000001, 0, 2): "lzcnt=5 sse4a=6",
}
_BITS = {
    name: (place, 1 << int(bit))
    for place, text in _FEATURES.items()
    for name, bit in (entry.split("=") for entry in text.split())
}
_KEEPS = (1, 0, 2), 1 << 27  # whether XGETBV may be asked
_AVX, _AVX512 = 0x06, 0xE6  # registers that the system keeps, as XGETBV says it

_INSTRUCTIONS = """\
define internal { i32, i32, i32, i32 } @cpuid(i32 %leaf, i32 %subleaf) nounwind {
  %all = call { i32, i32, i32, i32 } asm sideeffect "cpuid", "={ax},={bx},={cx},={dx},{ax},{cx}"(i32 %leaf, i32 %subleaf)
  ret { i32, i32, i32, i32 } %all
}
define internal i32 @xgetbv() nounwind {
  %both = call { i32, i32 } asm sideeffect "xgetbv", "={ax},={dx},{cx}"(i32 0)
  %low = extractvalue { i32, i32 } %both, 0
  ret i32 %low
}
"""


@dataclass(frozen=True)
class Code:
    """What is saved: LLVM assembly for one machine, or for several, the least first; the rest as in ``Compiled``."""

    parts: list[tuple[Machine, str]]
    messages: list[str]
    packed: list[dict[str, Any]]
    parallel: bool

    @staticmethod
    def of(compiled: Any) -> Code:
        parts = [(compiled.machine, compiled.emit().text)]
        return Code(parts, compiled.messages, compiled.packed, compiled.parallel)

    @property
    def least(self) -> Machine:
        return self.parts[0][0]


def code_for(module: Any, levels: Sequence[str]) -> Code:
    """The program of a module for each of the processors ``levels``. Raises ``BuildError`` for processors that are not of
    x86-64, that cannot be told apart when the code runs, or of which one lacks what the one before it has."""
    from ..build import emit_for

    target, emitted, program = module.target, [], None
    for cpu in levels:
        attrs = {name: value for name, value in target.attrs.items() if name not in ("mcpu", "mattr")}
        on, text, program = emit_for(module, Target(target.kind, **attrs, mcpu=cpu), program)
        emitted.append((on, text))
    if program is None:
        raise BuildError("levels: name at least one processor, as in levels=['x86-64-v2', 'x86-64-v4']")
    before: set[str] = set()
    for on, _ in emitted:
        has = _required(on)
        if before - has:
            missing = ", ".join(sorted(before - has))
            raise BuildError(
                f"levels go from the least processor to the best, and {on.cpu} lacks {missing} of those before it"
            )
        before = has
    return Code(emitted, program.messages, program.packed, program.parallel)


def _required(on: Machine) -> set[str]:
    """The features that code for a level may use. Raises ``BuildError`` where they cannot be found out at run time."""
    if architecture(on.triple) != "x86-64":
        raise BuildError(f"levels are processors of x86-64, and this code is for {on.triple}: save a file for each")
    features = set(Needs.of(on).features)
    unknown = sorted(features - set(_BITS))
    if unknown or on.cpu == "generic":
        what = f"uses {', '.join(unknown)}, which" if unknown else "names no features, which"
        raise BuildError(
            f"a level for {on.cpu} {what} saved code does not look for; levels are x86-64, x86-64-v2, x86-64-v3, "
            "x86-64-v4, or processors with their features"
        )
    return features


def part_prefix(code: Code, k: int, prefix: str) -> str:
    """What begins the names of a part, in a file whose names begin with ``prefix``."""
    return prefix if len(code.parts) == 1 else f"{prefix}{code.parts[k][0].cpu}."


def parts_of(code: Code, prefix: str) -> list[tuple[str, str]]:
    """The assembly of each part with the beginning of its names. They share what the first has of the run-time system."""
    if len(code.parts) == 1:
        return [(code.parts[0][1], prefix)]
    texts = [
        (text if k == 0 else declared_elsewhere(text)).replace("@__tir_release(", f"@__tir_release_{k}(")
        for k, (_, text) in enumerate(code.parts)
    ]
    calls = [f"  call void @__tir_release_{k}()\n" for k, text in enumerate(texts) if f"@__tir_release_{k}(" in text]
    others = [f"declare void @__tir_release_{k}()\n" for k, text in enumerate(texts) if k and f"_release_{k}(" in text]
    if calls:
        texts[0] += f"{''.join(others)}define void @__tir_release() {{\n{''.join(calls)}  ret void\n}}\n"
    return [(text, part_prefix(code, k, prefix)) for k, text in enumerate(texts)]


def choice(code: Code, entries: list[str], prefix: str, none: int) -> str:
    """Assembly of the functions ``entries`` that call the part for this processor, and return the error ``none`` where there
    is none."""
    level, count = symbol(f"{prefix}level"), len(code.parts)
    text = _INSTRUCTIONS + detection([_required(on) for on, _ in code.parts], "best_level")
    text = text.replace("@cpuid(", symbol(f"{prefix}cpuid") + "(").replace("@xgetbv(", symbol(f"{prefix}xgetbv") + "(")
    text = text.replace("@best_level(", symbol(f"{prefix}best_level") + "(")
    text += f"""{level} = internal global i32 -1
define internal i32 {symbol(f"{prefix}chosen")}() nounwind {{
  %known = load atomic i32, ptr {level} monotonic, align 4
  %first = icmp slt i32 %known, 0
  br i1 %first, label %find, label %done
find:
  %found = call i32 {symbol(f"{prefix}best_level")}()
  store atomic i32 %found, ptr {level} monotonic, align 4
  ret i32 %found
done:
  ret i32 %known
}}
"""
    cases = " ".join(f"i32 {k}, label %level{k}" for k in range(count))
    for entry in entries:
        text += f"define i32 {symbol(prefix + entry)}(ptr %args) nounwind {{\n"
        text += f"  %level = call i32 {symbol(f'{prefix}chosen')}()\n  switch i32 %level, label %none [ {cases} ]\n"
        text += f"none:\n  ret i32 {none}\n"
        for k in range(count):
            called = symbol(part_prefix(code, k, prefix) + entry)
            text += f"level{k}:\n  %code{k} = call i32 {called}(ptr %args)\n  ret i32 %code{k}\n"
        text += "}\n"
    return text


CPU_PROTOTYPE = """
/* The processor whose code runs on this one, of those that the file is for; a null pointer if there is none. */
const char *{}(void);
"""


def cpu_function(code: Code, name: str, prefix: str) -> str:
    """Assembly of the C function ``name``: which processor's code runs."""
    places = [symbol(f"{prefix}cpu.{k}") for k in range(len(code.parts))]
    texts = [on.cpu.encode() + b"\0" for on, _ in code.parts]
    lines = [f"{p} = private constant [{len(t)} x i8] {byte_string(t)}" for p, t in zip(places, texts)]
    cases = " ".join(f"i32 {k}, label %level{k}" for k in range(len(places)))
    lines += [f"define ptr @{name}() nounwind {{", f"  %level = call i32 {symbol(f'{prefix}chosen')}()"]
    lines += [f"  switch i32 %level, label %none [ {cases} ]", "none:", "  ret ptr null"]
    return "\n".join([*lines, *(f"level{k}:\n  ret ptr {place}" for k, place in enumerate(places)), "}"]) + "\n"


def detection(levels: Sequence[set[str]], name: str) -> str:
    """``i32 name()``: the last of the ``levels``, sets of features, that this processor and its system have; their number if
    none. It calls ``@cpuid`` and ``@xgetbv``."""
    places = sorted({_KEEPS[0], *(_BITS[feature][0] for level in levels for feature in level)})
    lines = [f"define internal i32 @{name}() nounwind {{"]
    limits = {(leaf & 0x80000000, 0): 0 for leaf, _, _ in places} | {(7, 0): 0}  # the last leaf, and its last subleaf
    for leaf, sub in dict.fromkeys([*limits, *((leaf, sub) for leaf, sub, _ in places)]):
        at = f"{leaf:x}.{sub}"
        lines.append(f"  %all.{at} = call {{ i32, i32, i32, i32 }} @cpuid(i32 {_signed(leaf)}, i32 {sub})")
        lines.append(f"  %last.{at} = extractvalue {{ i32, i32, i32, i32 }} %all.{at}, 0")
    for leaf, sub, register in places:
        at, of = f"{leaf:x}.{sub}", f"{leaf & 0x80000000:x}.0"
        lines.append(f"  %raw.{at}.{register} = extractvalue {{ i32, i32, i32, i32 }} %all.{at}, {register}")
        lines.append(f"  %leaf.{at}.{register} = icmp uge i32 %last.{of}, {_signed(leaf)}")
        lines.append(f"  %sub.{at}.{register} = icmp uge i32 {'%last.7.0' if sub else sub}, {sub}")
        lines.append(f"  %there.{at}.{register} = and i1 %leaf.{at}.{register}, %sub.{at}.{register}")
        lines.append(f"  %v.{at}.{register} = select i1 %there.{at}.{register}, i32 %raw.{at}.{register}, i32 0")
    lines += [f"  %asked = and i32 %v.1.0.2, {_KEEPS[1]}", "  %may = icmp ne i32 %asked, 0"]
    lines += ["  br i1 %may, label %ask, label %judge", "ask:", "  %all.kept = call i32 @xgetbv()", "  br label %judge"]
    lines += ["judge:", "  %kept = phi i32 [ %all.kept, %ask ], [ 0, %0 ]"]
    found = str(len(levels))
    for k, features in enumerate(levels):
        masks: dict[str, int] = {"%kept": _kept(features)}
        for (leaf, sub, register), bit in map(_BITS.__getitem__, features):
            value = f"%v.{leaf:x}.{sub}.{register}"
            masks[value] = masks.get(value, 0) | bit
        every = "true"
        for n, (value, mask) in enumerate(sorted(masks.items())):
            lines.append(f"  %bits.{k}.{n} = and i32 {value}, {_signed(mask)}")
            lines.append(f"  %has.{k}.{n} = icmp eq i32 %bits.{k}.{n}, {_signed(mask)}")
            lines.append(f"  %every.{k}.{n} = and i1 {every}, %has.{k}.{n}")
            every = f"%every.{k}.{n}"
        lines.append(f"  %found.{k} = select i1 {every}, i32 {k}, i32 {found}")
        found = f"%found.{k}"
    return "\n".join([*lines, f"  ret i32 {found}", "}"]) + "\n"


def _kept(features: set[str]) -> int:
    """The registers that the system has to keep for code that uses ``features``."""
    if any(name.startswith("avx512") for name in features):
        return _AVX512
    return _AVX if "avx" in features else 0


def _signed(value: int) -> int:
    """A number of 32 bits as LLVM's assembly takes it."""
    return value - (1 << 32) if value >> 31 else value
