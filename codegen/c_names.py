"""Names that C or C++ gives another meaning: keywords, macros of the standard headers and of compilers, types.

One set for both languages, so that a header serves both.
"""

from __future__ import annotations

import re
from collections.abc import Container

_WORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class co_await
co_return co_yield compl complex concept const const_cast consteval constexpr constinit continue decltype default
delete do double dynamic_cast else enum explicit export extern false float for friend goto if imaginary inline int
long mutable namespace new noexcept noreturn not not_eq nullptr operator or or_eq private protected public register
reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast struct switch template
this thread_local throw true try typedef typeid typename typeof typeof_unqual union unsigned using virtual void
volatile wchar_t while xor xor_eq
"""
KEYWORDS = frozenset(_WORDS.split())
# Macros of the standard headers, macros that compilers predefine, and what the standard keeps for implementations.
_MACROS = re.compile(
    r"[A-Z0-9_]+_(MAX|MIN|WIDTH|DIG|BIT|C)|(u?int_(least|fast)\d+|max_align|[a-z0-9]+)_t|NULL|W?EOF|NAN|INFINITY|BUFSIZ|I|CMPLX[FL]?|linux|unix|i386|mips|sparc|errno|assert"
    r"|offsetof|std(in|out|err)|math_errhandling|atomic_\w+|va_\w+|setjmp|fpclassify|signbit|kill_dependency"
    r"|is(finite|normal|(greater|less)(equal|greater)?|unordered)|__\w*|_[A-Z]\w*|_+",
    re.ASCII,
)
_LIKE_A_MACRO = re.compile(r"[A-Z][A-Z0-9_]+|(PRI|SCN|L_|P_|si_|sa_|sigev_)\w*", re.ASCII)  # of some header


def is_reserved(name: str) -> bool:
    """Whether C or C++ gives ``name`` a meaning of its own, where standard headers are included.

    >>> [is_reserved(name) for name in ("new", "_Bool", "INT8_MAX", "int8_t", "A", "alpha_1")]
    [True, True, True, True, False, False]
    """
    return name in KEYWORDS or _MACROS.fullmatch(name) is not None


def identifier(name: str) -> str:
    """``name`` as a C identifier: other characters as underscores, and one more before a digit.

    >>> identifier("a b"), identifier("1x"), identifier("é")
    ('a_b', '_1x', '_')
    """
    plain = re.sub(r"\W", "_", name, flags=re.ASCII) or "_"
    return f"_{plain}" if plain[0].isdigit() else plain


def parameter(name: str, taken: Container[str]) -> str:
    """``name`` as the name of a parameter: an identifier, with an underscore behind it where it is not free. Nobody uses the
    name, so it also avoids what looks like a macro: more than one capital, and nothing else.

    >>> parameter("new", ()), parameter("a", {"a"}), parameter("ECHO", ()), parameter("A", ())
    ('new_', 'a_', 'ECHO_', 'A')
    """
    found = identifier(name)
    if is_reserved(found) or _LIKE_A_MACRO.fullmatch(found):
        found += "_"
    while found in taken:
        found += "_"
    return found
