"""The reference of every public name, as pages of Markdown.

It is made from the objects themselves, since many of the names (operators, primitives, passes) are made from tables when
the package is loaded.
"""

from __future__ import annotations

import inspect
import pkgutil
import re
import textwrap
from typing import Any

# title -> what stands before the names, and where they are
REFERENCE = {
    "tir": ("tir", "tir"),
    "Schedule": ("sch", "tir:Schedule"),
    "T, the dialect": ("T", "tir.script.tir"),
    "tir.te": ("te", "tir.te"),
    "tir.ops": ("ops", "tir.ops"),
    "tir.ops.nn": ("ops.nn", "tir.ops.nn"),
    "tir.transform": ("tir.transform", "tir.transform"),
    "tir.tune": ("tir.tune", "tir.tune"),
    "tir.testing": ("testing", "tir.testing"),
    "tir.arith": ("tir.arith", "tir.arith"),
    "tir.target": ("tir.target", "tir.target"),
    "tir.library.elementwise": ("elementwise", "tir.library.elementwise"),
    "tir.library.rows": ("rows", "tir.library.rows"),
    "tir.library.gemm": ("gemm", "tir.library.gemm"),
    "tir.library.gemv": ("gemv", "tir.library.gemv"),
    "tir.library.dot_gemm": ("dot_gemm", "tir.library.dot_gemm"),
    "tir.library.conv": ("conv", "tir.library.conv"),
    "tir.library.conv_nchw": ("conv_nchw", "tir.library.conv_nchw"),
    "tir.library.attention": ("attention", "tir.library.attention"),
    "tir.torch": ("tir.torch", "tir.torch"),
    "tir.jax": ("tir.jax", "tir.jax"),
    "Built modules": ("module", "codegen.module"),
}


def members(title: str) -> dict[str, Any]:
    """The public names of a page of the reference, in the order of the alphabet, and what each stands for."""
    return _public(pkgutil.resolve_name(REFERENCE[title][1]))


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
    prefix, where = REFERENCE[title]
    lines = [f"# {title}\n"]
    about = inspect.getdoc(pkgutil.resolve_name(where))
    if about:
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
