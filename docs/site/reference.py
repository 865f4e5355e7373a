"""The reference of every public name, as pages of Markdown.

It is made from the objects themselves, since many of the names (operators, primitives, passes) are made from tables when
the package is loaded.
"""

from __future__ import annotations

import inspect
import pkgutil
import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import tir.schedule.schedule  # noqa: F401  (registers every primitive)
from tir.schedule.primitive import GROUPS, PRIMITIVES

Has = Callable[[str, Any], bool]


@dataclass(frozen=True)
class Source:
    """Where public names are: what stands before them, the object that has them, and their pages, by title. A name is on the
    first page whose condition holds, and on none if that has no title."""

    prefix: str
    where: str
    pages: Mapping[str, Has]


def _named(pattern: str) -> Has:
    return lambda name, _: re.fullmatch(pattern, name) is not None


def _from(pattern: str) -> Has:
    """Names that a module defines which matches the pattern."""
    return lambda _, found: re.fullmatch(pattern, getattr(getattr(found, "fget", found), "__module__", "")) is not None


def _elsewhere(*others: str) -> Has:
    """Names that another page explains: what has the name there is defined in the same module."""

    def has(name: str, found: Any) -> bool:
        theirs = [getattr(pkgutil.resolve_name(other), name, None) for other in others]
        return any(t is found or getattr(t, "__module__", 0) == getattr(found, "__module__", 1) for t in theirs)

    return has


def _step_of(group: str) -> Has:
    return lambda name, _: name in PRIMITIVES and PRIMITIVES[name].group == group


def _rest(name: str, found: Any) -> bool:
    return True


_MATH = (
    r"a?(sin|cos|tan)h?|atan2|exp(2|10|m1)?|log(2|10|1p)?|r?sqrt|erfc?|sigmoid|fabs|fma|fmod|hypot|ldexp|copysign|"
    r"ceil|floor|round|trunc|nearbyint|nextafter|popcount|clz|is(finite|inf|nan)|bitwise_\w+|shift_\w+|q_multiply\w+"
)
_DEVICE = (
    r"ptx_\w+|mma_\w+|tvm_\w*(matrix|fragment|mma|warp|barrier|sync|allreduce|thread)\w*|\w*simdgroup\w*|amx_\w+|"
    r"create_barriers|dp4a|texture2d\w+|dma_\w+|get_active_lane_mask|atomic_add"
)
# what has a page of its own, and what stands before its names
WHOLE = {
    "tir.te": "te",
    "tir.ops": "ops",
    "tir.ops.nn": "ops.nn",
    "tir.transform": "tir.transform",
    "tir.tune": "tir.tune",
    "tir.testing": "testing",
    "tir.arith": "tir.arith",
    "tir.target": "tir.target",
    "tir.library.elementwise": "elementwise",
    "tir.library.rows": "rows",
    "tir.library.gemm": "gemm",
    "tir.library.conv": "conv",
    "tir.library.attention": "attention",
    "tir.torch": "tir.torch",
    "tir.jax": "tir.jax",
}
SOURCES = (
    Source(
        "tir",
        "tir",
        {
            "": _elsewhere("tir.script.tir", "tir.te"),
            "Build and run": _from(r"codegen\..*|tir\.(compat|saved|target|transform\..*)"),
            "Programs": _from(r"tir\.(function|buffer|stmt|node|equal|dtype|intrin\..*)"),
            "Expressions": _from(r"tir\.(expr|expr_nodes|arith\b.*|analysis\..*)"),
            "Schedules, errors": _rest,
        },
    ),
    Source(
        "sch",
        "tir:Schedule",
        {
            **{f"Steps: {group}": _step_of(group) for group in GROUPS},
            "Schedule: look, ask, undo": _rest,
        },
    ),
    Source(
        "T",
        "tir.script.tir",
        {
            "T: loops and blocks": _from(r"tir\.script\.(tir|parser)"),
            "T: buffers and types": _from(r"tir\.script\.tir_(buffers|types)"),
            "T: math": _named(_MATH),
            "T: threads, tensor cores": _named(_DEVICE),
            "T: expressions": _from(r"tir\.(expr_nodes|script\.tir_(expr|nodes))"),
            "T: calls, the runtime": _rest,
        },
    ),
    *(Source(prefix, where, {where: _rest}) for where, prefix in WHOLE.items()),
    Source("module", "codegen.module", {"Built modules": _rest}),
)
# title -> where its names are
REFERENCE = {title: source for source in SOURCES for title in source.pages if title}


def members(title: str) -> dict[str, Any]:
    """The public names of a page of the reference, in the order of the alphabet, and what each stands for."""
    source = REFERENCE[title]
    found = public(source.where)
    return {n: v for n, v in found.items() if next(t for t, has in source.pages.items() if has(n, v)) == title}


def public(where: str) -> dict[str, Any]:
    """The public names of an object, by its path."""
    return _public(pkgutil.resolve_name(where))


def _public(holder: Any) -> dict[str, Any]:
    names = vars(holder).get("__all__") or [n for n in dir(holder) if not n.startswith("_")]
    found = {name: getattr(holder, name, None) for name in sorted(names, key=str.lower)}
    return {name: value for name, value in found.items() if _is_shown(value) and _is_of(holder, value)}


def _is_of(holder: Any, value: Any) -> bool:
    """Whether a name is the holder's own: in a module that does not say which are, what it defines."""
    says = {"__all__", "__dir__"} & vars(holder).keys()
    return not inspect.ismodule(holder) or bool(says) or getattr(value, "__module__", None) == holder.__name__


def _is_shown(value: Any) -> bool:
    return not inspect.ismodule(value) and (callable(value) or isinstance(value, property))


def has_sentence(name: str, found: Any) -> bool:
    """Whether the docstring begins with a sentence that somebody wrote."""
    first = (inspect.getdoc(found) or "").partition("\n\n")[0]
    return first.endswith((".", ":")) and not first.startswith((f"{name}(", "The operator ``"))


def has_example(found: Any) -> bool:
    """Whether the docstring shows code: lines after ``>>>``, or programs in a block of their own."""
    doc = inspect.getdoc(found) or ""
    return ">>> " in doc or "::\n\n    " in doc


def _signature(name: str, found: Any) -> str:
    if isinstance(found, property):
        return name
    try:
        text = str(inspect.signature(found))
    except (TypeError, ValueError):
        return f"{name}(…)"
    text = re.sub(r"<(function|object|class)[^>]*>|<[\w. ]+ object at 0x[0-9a-f]+>", "…", text)
    text = re.sub(r"(: |-> )'([^']*)'", r"\1\2", text)  # annotations
    text = re.sub(r"\btyping\.|\b_\w+\.", "", text)  # modules
    return name + re.sub(r"\((self|cls)(, )?", "(", text, count=1)


def _prose(doc: str) -> str:
    """A docstring as Markdown: examples and code in fences, roles as code."""
    doc = re.sub(r":\w+:`~?([\w.]+)`", r"`\1`", doc)
    parts: list[str] = []
    for part in re.split(r"\n\s*\n", re.sub(r"::$", ":", doc, flags=re.M)):
        if part.lstrip().startswith(">>>"):
            parts.append(f"```pycon\n{textwrap.dedent(part)}\n```")
        elif part.startswith("    "):
            parts.append(f"```python\n{textwrap.dedent(part)}\n```")
        else:
            parts.append(part)
    return "\n\n".join(parts)


def _entry(prefix: str, name: str, found: Any, level: str) -> str:
    signature = _signature(name, found)
    doc = _prose(inspect.getdoc(found) or "")
    return f"{level} `{prefix}.{name}`\n\n```python\n{signature}\n```\n\n{doc}\n"


def _own_name(found: Any) -> str:
    return getattr(found, "__name__", "") or str(getattr(found, "dtype", ""))


def reference_page(title: str) -> str:
    """A page of the reference."""
    source = REFERENCE[title]
    prefix = source.prefix
    lines = [f"# {title}\n"]
    about = inspect.getdoc(pkgutil.resolve_name(source.where))
    if about and len(source.pages) == 1:
        lines.append(_prose(about) + "\n")
    shown = members(title)  # which keeps the objects, so that each has an id of its own
    named = {id(found): name for name, found in shown.items() if name == _own_name(found)}
    for name, found in shown.items():
        if named.setdefault(id(found), name) != name:
            lines.append(f"## `{prefix}.{name}`\n\nAnother name of `{prefix}.{named[id(found)]}`.\n")
            continue
        lines.append(_entry(prefix, name, found, "##"))
        if inspect.isclass(found) and prefix in ("tir", "module") and name != "Schedule":
            lines += [_entry(name, n, m, "###") for n, m in _public(found).items() if n in vars(found)]
    return "\n".join(lines)


def slug(title: str) -> str:
    """The file of a page on the site."""
    return "reference/" + re.sub(r"\W+", "_", title.lower()).strip("_") + ".md"
