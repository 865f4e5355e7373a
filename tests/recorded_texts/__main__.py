"""``python -m tests.recorded_texts [GROUP…]``: record the texts of these groups, or of all."""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from . import GROUPS, cases, digests, recorded, texts, write


def _digests(group: str, name: str) -> tuple[str, dict[str, str]]:
    return name, digests(texts(group, name))


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m tests.recorded_texts", description=__doc__)
    options.add_argument("groups", nargs="*", metavar="GROUP", help=", ".join(GROUPS))
    options.add_argument("--jobs", type=int, default=2)
    args = options.parse_args()
    unknown = set(args.groups) - set(GROUPS)
    if unknown:
        options.error(f"there is no group {min(unknown)}; there are {', '.join(GROUPS)}")
    with ProcessPoolExecutor(args.jobs) as pool:
        for group in args.groups or GROUPS:
            before, now = recorded(group), dict(pool.map(partial(_digests, group), cases(group), chunksize=4))
            write(group, now)
            changed = [name for name in now if now[name] != before.get(name)]
            gone = sorted(set(before) - set(now))
            print(f"{group}: {len(now)} cases, {len(changed)} changed or new", *changed[:20], *(f"-{n}" for n in gone))


if __name__ == "__main__":
    main()
