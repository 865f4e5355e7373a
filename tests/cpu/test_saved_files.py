"""Saved modules as files: a path gives what it holds now, and a file that was changed is refused before it is used."""

from __future__ import annotations

import gc
import os
import random
import shutil
import subprocess
import sys

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

import tir
from codegen import container
from tir.errors import BuildError
from tir.script import parse

COMPILER = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
compiles = pytest.mark.skipif(COMPILER is None, reason="no C compiler")
SUFFIXES = [".o", ".so"]

NUMBER = """
@T.prim_func
def number(A: T.Buffer((1,), "int32")):
    A[0] = {}
"""


def save(number: int, path) -> None:
    tir.build(parse(NUMBER.format(number))).save(path)


def number_of(module) -> int:
    return int(module.new()[0])


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_path_gives_what_was_saved_last_and_older_modules_stay_what_they_are(tmp_path, suffix):
    path, loaded = tmp_path / f"f{suffix}", []
    for number in (1, 2, 3):
        save(number, path)
        loaded.append(tir.load(path))
    assert [number_of(m) for m in loaded] == [1, 2, 3]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_changed_signature_is_the_one_that_arguments_are_checked_against(tmp_path, suffix):
    path = tmp_path / f"f{suffix}"
    save(1, path)
    tir.load(path)
    tir.build(parse(NUMBER.format(2).replace("(1,)", "(7,)"))).save(path)
    assert tir.load(path).new().shape == (7,)


def test_a_library_that_nobody_uses_leaves_memory(tmp_path):
    def mapped() -> set[str]:
        with open("/proc/self/maps") as maps:
            return {line.split()[5] for line in maps if "tir-load-" in line}

    if not os.path.exists("/proc/self/maps"):
        pytest.skip("this system does not list what is mapped")
    save(4, tmp_path / "f.so")
    before = mapped()
    module = tir.load(tmp_path / "f.so")
    (own,) = mapped() - before
    assert number_of(module) == 4
    del module
    gc.collect()
    assert own not in mapped()


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Saved files by number and suffix, as bytes."""
    folder = tmp_path_factory.mktemp("saved")
    found = {}
    for suffix in SUFFIXES:
        for number in (1, 2, 3):
            save(number, folder / f"f{suffix}")
            found[number, suffix] = (folder / f"f{suffix}").read_bytes()
    return found


NAMES = st.sampled_from(["a.so", "b.o", "c", "d.zip"])


class Files(RuleBasedStateMachine):
    """Names of a folder with the number that each must give; None for a damaged file."""

    saved: dict
    folders: pytest.TempPathFactory

    @initialize()
    def begin(self):
        self.folder = self.folders.mktemp("files")
        self.holds: dict[str, str] = {}  # a name -> the file behind it
        self.number: dict[str, int | None] = {}  # of a file
        self.loaded: list = []
        self.files = 0

    def forget(self, name: str) -> None:
        (self.folder / name).unlink(missing_ok=True)
        self.holds.pop(name, None)

    def new(self, name: str, number: int | None) -> None:
        self.files += 1
        self.holds[name] = str(self.files)
        self.number[str(self.files)] = number

    @rule(name=NAMES, key=st.integers(0, 5))
    def save(self, name, key):
        key = sorted(self.saved)[key % len(self.saved)]
        (self.folder / name).write_bytes(self.saved[key])  # in place: other names of the file see it
        self.holds.get(name) or self.new(name, None)
        self.number[self.holds[name]] = key[0]

    @rule(name=NAMES, to=NAMES)
    def copy(self, name, to):
        if name in self.holds and self.holds.get(to) != self.holds[name]:
            self.forget(to)
            shutil.copyfile(self.folder / name, self.folder / to)
            self.new(to, self.number[self.holds[name]])

    @rule(name=NAMES, to=NAMES)
    def rename(self, name, to):
        if name in self.holds and self.holds.get(to) != self.holds[name]:
            os.replace(self.folder / name, self.folder / to)
            self.holds[to] = self.holds.pop(name)

    @rule(name=NAMES, to=NAMES, hard=st.booleans())
    def link(self, name, to, hard):
        if name in self.holds and to not in self.holds:
            if hard:
                os.link((self.folder / name).resolve(), self.folder / to)
            else:
                os.symlink((self.folder / name).resolve(), self.folder / to)
            self.holds[to] = self.holds[name]

    @rule(name=NAMES, part=st.floats(0, 1, exclude_max=True))
    def cut(self, name, part):
        if name in self.holds and (self.folder / name).exists():
            os.truncate(self.folder / name, int((self.folder / name).stat().st_size * part))
            self.number[self.holds[name]] = None

    @rule(name=NAMES)
    def load(self, name):
        path = self.folder / name
        number = self.number[self.holds[name]] if path.exists() else None
        if number is None:
            with pytest.raises(BuildError, match=r"no file|no whole file"):
                tir.load(path)
        else:
            self.loaded.append((tir.load(path), number))

    @invariant()
    def modules_give_what_their_files_held(self):
        assert all(number_of(module) == number for module, number in getattr(self, "loaded", ()))


def test_any_sequence_of_saving_copying_renaming_linking_and_cutting(saved, tmp_path_factory):
    class Run(Files):
        pass

    Run.saved, Run.folders = saved, tmp_path_factory
    limits = settings(max_examples=30, stateful_step_count=12, database=None, derandomize=True)
    run_state_machine_as_test(Run, settings=limits)


def test_no_damaged_file_is_loaded(saved, tmp_path, monkeypatch):
    monkeypatch.setattr("codegen.aot.Saved", lambda file: pytest.fail("the file was used"))
    draw = random.Random(20261124)
    for data in saved.values():
        for _ in range(100):
            damaged = bytearray(data)
            kind = draw.randrange(4)
            at = draw.choice([draw.randrange(len(data)), len(data) - 1 - draw.randrange(80)])
            if kind == 0:
                del damaged[at:]
            elif kind == 1:
                damaged[at] ^= 1 << draw.randrange(8)
            elif kind == 2:
                damaged[at : at + draw.randrange(1, 9)] = draw.randbytes(draw.randrange(9)) + b"\x03"
            else:
                damaged[:at] = draw.choice(list(saved.values()))[: draw.randrange(at + 1)]
            if damaged in saved.values():
                continue
            (tmp_path / "f.so").write_bytes(damaged)
            with pytest.raises(BuildError, match=r"f\.so is (damaged|no whole file)"):
                tir.load(tmp_path / "f.so")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"parallel": 1}, "has no 'parallel'"),
        ({"packed": [{"name": "f", "args": [], "result": "void"}]}, "has no code for __tir_packed"),
        ({"packed": [[]]}, "has no 'packed'"),
        ({"packed": [{"name": "f", "args": [["x", 3]], "result": "void"}]}, "has no 'packed'"),
        ({"prefix": "other."}, "has no code for main"),
        ({"functions": {"other": {"script": NUMBER.format(1), "written": [0]}}}, "has no code for other"),
        ({"functions": {"main": {"script": 3, "written": [0]}}}, "has no 'functions'"),
        ({"functions": {"main": {"script": NUMBER.format(1), "written": [True]}}}, "has no 'functions'"),
        ({"needs": ["x", [], 3]}, "has no 'needs'"),
        ({"needs": ["x", [3], ""]}, "has no 'needs'"),
        ({"messages": [3]}, "has no 'messages'"),
    ],
)
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_description_that_does_not_fit_its_code_is_refused(suffix, change, message, tmp_path):
    path = tmp_path / f"k{suffix}"
    save(1, path)
    file = container.read(path)
    container.write(path, file.kind, file.code, {**file.about, **change})
    with pytest.raises(BuildError, match=message):
        tir.load(path)


def test_what_is_no_saved_file_is_refused_with_one_sentence(saved, tmp_path):
    (tmp_path / "text.so").write_text("hello")
    (tmp_path / "empty.o").write_bytes(b"")
    for name in ("text.so", "empty.o"):
        with pytest.raises(BuildError, match=f"{name} is no whole file of Module.save"):
            tir.load(tmp_path / name)
    for missing in (tmp_path, tmp_path / "none.so", "a\0b", "/dev/zero"):
        with pytest.raises(BuildError, match="is a folder" if missing is tmp_path else "no file"):
            tir.load(missing)


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ({}, "has no 'functions' as Module.save writes it"),
        ({"functions": {"f": {}}}, "has no 'functions'"),
        ({"functions": {"f": 5}}, "has no 'functions'"),
        ({"messages": 5}, "has no 'messages'"),
        ({"needs": ["a"]}, "has no 'needs'"),
    ],
)
def test_a_description_that_save_does_not_write_is_refused_before_code_is_loaded(saved, tmp_path, about, said):
    (tmp_path / "f.o").write_bytes(saved[1, ".o"])
    file = container.read(tmp_path / "f.o")
    container.write(tmp_path / "f.o", "object", b"no code", {**file.about, **about} if about else {})
    with pytest.raises(BuildError, match=said):
        tir.load(tmp_path / "f.o")
    with pytest.raises(BuildError, match=r"cannot write '/no/such/folder/f\.o': No such file"):
        save(1, "/no/such/folder/f.o")


@compiles
def test_linkers_take_saved_objects_and_libraries_as_they_are(tmp_path):
    program = "#include <stdint.h>\n#include <stdio.h>\nint32_t number(int32_t *);\n"
    program += 'int main(void) { int32_t a = 0; number(&a); printf("%d\\n", a); }\n'
    (tmp_path / "p.c").write_text(program)
    for suffix in (".o", ".so"):
        save(41, tmp_path / f"f{suffix}")
        command = [COMPILER, "p.c", f"./f{suffix}", "-lm", "-o", "p"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        assert subprocess.run(["./p"], cwd=tmp_path, capture_output=True, text=True).stdout == "41\n"


def test_constructors_of_a_library_without_a_digest_do_not_run(tmp_path):
    if COMPILER is None:
        pytest.skip("no C compiler")
    text = '#include <stdio.h>\n__attribute__((constructor)) static void f(void) { fopen("ran", "w"); }\n'
    (tmp_path / "c.c").write_text(text)
    subprocess.run([COMPILER, "-shared", "-fPIC", "c.c", "-o", "c.so"], cwd=tmp_path, check=True)
    script = "import tir, sys\ntry: tir.load('c.so')\nexcept tir.BuildError: sys.exit(7)"
    assert subprocess.run([sys.executable, "-c", script], cwd=tmp_path).returncode == 7
    assert not (tmp_path / "ran").exists()
