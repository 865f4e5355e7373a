"""Optimized LLVM assembly without what LLVM's code for AVX-512 computes wrongly (docs/llvm_faults.md)."""

from __future__ import annotations

import re

_SHIFTED = re.compile(r"(= ashr (?:exact )?<\d+ x (i\d+)> [^,\n]+, )<([^>\n]*)>")
_FUNCTION = re.compile(r"^(define [^\n]*\{\n(?:[\w.]+:[^\n]*\n)?)(.*?^\})", re.M | re.S)
# the bits of a mask in scalar registers, and masks that are the signs of lanes
_BITS = re.compile(r"(?:extractelement|bitcast) <\d+ x i1>|reduce\.\w+\.v\d+i1\(|llvm\.masked\.(?:gather|scatter)")
_SIGNS = re.compile(r"^  %(\S+) = icmp (?:samesign )?slt <(\d+) x (i8|i16|i32|i64)> (\S+), zeroinitializer$", re.M)
MENDS = f"{_SHIFTED.pattern}{_BITS.pattern}{_SIGNS.pattern}"


def mended(text: str) -> str:
    """The optimized module ``text``, which computes the same."""
    text = _SHIFTED.sub(_in_range, text)
    return _FUNCTION.sub(_compared, text) if _SIGNS.search(text) and _BITS.search(text) else text


def _in_range(found: re.Match[str]) -> str:
    """A shift of vectors by constants, each less than the width. The superword vectorizer makes others, of lanes that nothing uses, and what
    the processor makes of these LLVM takes for zeros."""
    head, kind, lanes = found.groups()
    amounts = [lane.split()[1] for lane in lanes.split(",")]
    is_right = [not a.lstrip("-").isdigit() or 0 <= int(a) < int(kind[1:]) for a in amounts]
    other = next((a for a, right in zip(amounts, is_right) if right and a.isdigit()), "0")
    return f"{head}<{', '.join(f'{kind} {a if right else other}' for a, right in zip(amounts, is_right))}>"


def _compared(found: re.Match[str]) -> str:
    """A function whose masks of signs are comparisons with a zero that LLVM does not know. Others it takes with ``vmovmskps`` and its kin, also
    from the upper half of the registers, which these instructions do not have: they read one of the lower half."""
    head, body = found.groups()
    if not _BITS.search(body):
        return found[0]
    made, times = _SIGNS.subn(_with_unknown, body)
    return f'{head}  %mends.zero = call i64 asm "", "=r,0"(i64 0)\n{made}' if times else found[0]


def _with_unknown(found: re.Match[str]) -> str:
    name, lanes, element, x = found.groups()
    type_, own = f"<{lanes} x {element}>", "mends." + name.strip('"')
    zero = "%mends.zero" if element == "i64" else f'%"{own}"'
    lines = [] if element == "i64" else [f"{zero} = trunc i64 %mends.zero to {element}"]
    lines += [
        f'%"{own}.0" = insertelement {type_} poison, {element} {zero}, i64 0',
        f'%"{own}.all" = shufflevector {type_} %"{own}.0", {type_} poison, <{lanes} x i32> zeroinitializer',
        f'%{name} = icmp slt {type_} {x}, %"{own}.all"',
    ]
    return "\n".join(f"  {line}" for line in lines)
