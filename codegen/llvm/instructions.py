"""The instructions that a program calls by name: what a processor must have for each.

LLVM ends the process when it meets an intrinsic that it cannot select for the processor it compiles for.
"""

from __future__ import annotations

import functools
import re

from tir.errors import BuildError

from .compile import ARCHITECTURES, Machine, architecture, llvm
from .cpu_features import features_of

# the beginnings of names of intrinsics that one architecture has
_PREFIXES = ("x86", "aarch64", "arm", "riscv", "ppc", "s390", "nvvm", "amdgcn", "wasm", "hexagon", "mips", "loongarch")
_CALL = re.compile(rf"@(llvm\.({'|'.join(_PREFIXES)})\.[\w.]+)\(")

# Beginnings of names of the intrinsics of x86, and LLVM's names of the features that each needs: the first that matches
# counts. The last says that many of the rest are called as their feature; what LLVM knows no such feature of is in every
# processor, or is not known here.
_X86 = (
    (r"sse42\.crc32", "crc32"),
    (r"sse4([12])\.", r"sse4.\1"),
    (r"bmi\.p(dep|ext)|bmi\.bzhi", "bmi2"),
    (r"vcvtps2ph\.|vcvtph2ps\.", "f16c"),
    (r"aesni\..*512", "vaes avx512f"),
    (r"aesni\..*256", "vaes"),
    (r"aesni\.", "aes"),
    (r"pclmulqdq\.512", "vpclmulqdq avx512f"),
    (r"pclmulqdq\.256", "vpclmulqdq"),
    (r"pclmulqdq", "pclmul"),
    (r"vgf2p8.*512", "gfni avx512f"),
    (r"vgf2p8.*256", "gfni avx"),
    (r"vgf2p8", "gfni"),
    (r"v(sha512|sm3|sm4)", r"\1"),
    (r"sha", "sha"),
    (r"rdrand", "rdrnd"),
    (r"(rd|wr)[fg]sbase", "fsgsbase"),
    (r"x(begin|end|abort|test)", "rtm"),
    (r"tpause|umonitor|umwait", "waitpkg"),
    (r"v(bcstne|cvtne)", "avxneconvert"),
    (r"avx2\.vpdpw", "avxvnniint16"),
    (r"avx2\.vpdpb", "avxvnniint8"),
    (r"avx10\.vmovrs", "avx10.2 movrs"),
    (r"avx10\.", "avx10.2"),
    (r"avx512\.vpdp(bus|wss)ds?\.(128|256)", "avx512vnni or avxvnni"),
    (r"avx512\.vpdp", "avx512vnni"),
    (r"avx512\.vpmadd52.*(128|256)", "avx512ifma or avxifma"),
    (r"avx512\.vpmadd52", "avx512ifma"),
    (r"avx512\.conflict", "avx512cd"),
    (r"avx512\.vp2intersect", "avx512vp2intersect"),
    (r"avx512\.vpshufbitqmb", "avx512bitalg"),
    (r"avx512\.(vpermi2var\.qi|permvar\.qi|pmultishift)", "avx512vbmi"),
    (
        r"avx512\.(vpermi2var\.hi|permvar\.hi|(mask\.)?(pmov|ps[lr]).*[.w]w[.b]|k.*\.[dq]$|pack|pmadd|pmul\.hr|db?psad|psad|pshuf)",
        "avx512bw",
    ),
    (r"avx512\.(fpclass\.p|mask\.cvt.*u?qq|k.*\.[bw]$)", "avx512dq"),
    (r"avx512\.", "avx512f"),
    (r"tdpbf16ps", "amx-bf16"),
    (r"tdpb[su][su]d", "amx-int8"),
    (r"tdpfp16ps", "amx-fp16"),
    (r"tdp[bh]+f8ps", "amx-fp8"),
    (r"tcmm", "amx-complex"),
    (r"tmmultf32ps", "amx-tf32"),
    (r"tileloaddrs", "amx-movrs"),
    (r"t(ile|dp)|(ld|st)tilecfg", "amx-tile"),
    (r"([a-z]+[a-z0-9]*?)(32|64)?(\.|$)", r"\1"),
)


@functools.cache
def is_intrinsic(name: str, result: str, types: tuple[str, ...]) -> bool:
    """Whether LLVM knows an intrinsic ``name``, which is called with operands of LLVM ``types``: code that calls another one ends the process.

    A call without a declaration is only read where LLVM knows the name.
    """
    operands = ", ".join(f"{t} poison" for t in types)
    try:
        llvm().parse_assembly(f"define void @f() {{\n  call {result} @{name}({operands})\n  ret void\n}}\n").close()
    except RuntimeError as error:
        return not any(message in str(error) for message in ("unknown intrinsic", "use of undefined value"))
    return True


def require_instructions(text: str, on: Machine) -> None:
    """Raise ``BuildError`` if LLVM assembly ``text`` calls an instruction of another architecture, or one for which the
    processor ``on`` lacks a feature."""
    mine = ARCHITECTURES.get(architecture(on.triple))
    for name, prefix in sorted(set(_CALL.findall(text))):
        if mine is not None and prefix != mine:
            raise BuildError(f"{name} is an instruction of {prefix}, and the code is for {on.triple}")
        groups = _needs(name.removeprefix("llvm.x86.")) if prefix == "x86" else ()
        there = features_of(on) if groups else {}
        if groups and not any(all(there.get(feature, True) for feature in group) for group in groups):
            wanted = " or ".join(" and ".join(group) for group in groups)
            raise BuildError(
                f"{name} is an instruction of {wanted}, which {on.cpu} lacks: build for a processor that has it "
                f"(-mcpu=…, or -mattr=+{',+'.join(groups[0])})"
            )


@functools.cache
def _needs(name: str) -> tuple[tuple[str, ...], ...]:
    """Groups of features: the intrinsic of x86 called ``name`` needs all of one of them.

    >>> _needs("avx512.vpdpbusd.256"), _needs("sse2.pavg.b")
    ((('avx512vnni', 'avx512vl'), ('avxvnni',)), (('sse2',),))
    """
    found = next(match.expand(features) for start, features in _X86 if (match := re.match(start, name)))
    groups = [group.split() for group in found.split(" or ")]
    narrow = name.endswith((".128", ".256"))
    return tuple((*g, *(["avx512vl"] if narrow and g[0].startswith("avx512") else [])) for g in groups)
