"""The features that a processor must have to run code compiled for another one."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from .compile import Machine, architecture, machine, optimised

# Features of the system, of cryptography and of hints: LLVM selects their instructions only for intrinsics, so code does
# not need them. A feature missing from this list makes the check stricter than necessary.
_BY_INTRINSICS = (
    "64bit adx aes cldemote clflushopt clwb clzero cmpccxadd cx8 cx16 enqcmd fsgsbase fxsr hreset invpcid kl lwp movdir64b "
    "mwaitx pclmul pconfig pku prefetchi prfchw ptwrite raoint rdpid rdpru rdrnd rdseed rtm sahf serialize sgx sha sha512 "
    "shstk sm3 sm4 tsxldtrk uintr usermsr vaes vpclmulqdq waitpkg wbnoinvd widekl xsave xsavec xsaveopt xsaves"
)
_ONLY_INTRINSICS = frozenset(_BY_INTRINSICS.split())


@dataclass(frozen=True)
class Needs:
    """The processor and the system that code was compiled for, and the features that it may use."""

    cpu: str
    features: tuple[str, ...]
    triple: str

    @staticmethod
    def of(target: Machine) -> Needs:
        """What the code for ``target`` may use."""
        if not target.is_of_this_architecture:
            return Needs(target.cpu, (), target.triple)  # its code is refused for that
        found = (name for name, has in features_of(target).items() if has and name not in _ONLY_INTRINSICS)
        return Needs(target.cpu, tuple(sorted(found)), target.triple)

    def refusal(self) -> str | None:
        """Why this machine cannot run the code (it would crash); None if it can."""
        if architecture(self.triple) != architecture(machine().triple):
            return (
                f"compiled for {self.triple}; this machine is {machine().triple}: save it, and run it on one of those"
            )
        there = _host()
        missing = [name for name in self.features if not there.get(name, True)]
        if not missing:
            return None
        return (
            f"compiled for {self.cpu}; this CPU ({machine().cpu}) lacks {', '.join(missing)}: "
            f"run it on a CPU that has them, or build for this one (-mcpu={machine().cpu})"
        )


@functools.cache
def _host() -> dict[str, bool]:
    """Every feature that LLVM knows for this architecture, and whether this machine has it."""
    from .compile import llvm

    return dict(llvm().get_host_cpu_features())


@functools.lru_cache(maxsize=16)
def features_of(target: Machine) -> dict[str, bool]:
    """The features that LLVM knows for this architecture, and whether ``target`` has each; none of another architecture."""
    there = _host() if target.is_of_this_architecture else {}
    if not there or target.key() == machine().key():
        return there
    implied = _implied(target, list(there))
    return {name: name in implied for name in there}


def _implied(target: Machine, names: list[str]) -> set[str]:
    """Which of the features ``target`` has. LLVM's interface does not say, but its inliner does: it inlines a function
    only into one that has all of its features."""
    lines = [f'target triple = "{target.triple}"']
    for k, name in enumerate(names):
        lines += [
            f"define i32 @needs{k}(ptr %p) #{k + 1} {{ %v = load volatile i32, ptr %p ret i32 %v }}",
            f"define i32 @has{k}(ptr %p) #0 {{ %v = call i32 @needs{k}(ptr %p) ret i32 %v }}",
            f'attributes #{k + 1} = {{ "target-features"="+{name}" }}',
        ]
    lines.append(f'attributes #0 = {{ "target-cpu"="{target.cpu}" "target-features"="{target.features}" }}')
    generic = Machine("generic", "")
    with optimised("\n".join(lines), generic) as (module, _):
        inlined = {f.name for f in module.functions if f.name.startswith("has") and " call " not in str(f)}
    return {name for k, name in enumerate(names) if f"has{k}" in inlined}
