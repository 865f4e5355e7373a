"""``tvmc compile`` and ``tvmc run`` as users of TVM type them: an ONNX model becomes a ``.tar``, which runs.

The archive has ``mod.so``, the code; ``mod.params``, the weights as they are in memory; ``mod.json``, the graph. The first two
are what ``model.save("mod.so", weights="mod.params")`` writes, and ``tir.load`` reads.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..command import answered
from ..errors import BuildError
from . import models, subjects
from .command_line import Parser, Usage, in_one_line
from .file_verbs import require_writable
from .program_files import require_file

if TYPE_CHECKING:
    from ..graph import Graph

DESCRIPTION = """tvmc compile and tvmc run as users of TVM type them: an ONNX model becomes a .tar, which runs. The command tir has
the rest. Status: 0 right, 1 wrong, 2 for a command line that there is not."""
CODE, PARAMS, GRAPH = "mod.so", "mod.params", "mod.json"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; its exit status, as that of ``tir``.

    >>> main(["compile", "nowhere.onnx"])
    1
    """
    try:
        options = _parser().parse_args(arguments)
    except Usage as error:
        print(error, file=sys.stderr)
        return 2
    return answered(lambda: options.run(options), failed=1, shown=in_one_line)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="tvmc", description=DESCRIPTION)
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=Parser)
    compile_ = commands.add_parser("compile", help="compile an ONNX model", description=_compile.__doc__)
    compile_.add_argument("FILE", help="an .onnx model")
    compile_.add_argument("--target", default="llvm", help="llvm (default), with options as in 'llvm -mcpu=…'")
    compile_.add_argument("-o", "--output", default="module.tar", help="the archive (default module.tar)")
    compile_.add_argument("--input-shapes", metavar="'NAME:[1,3,224,224] …'", help="of inputs whose sizes are open")
    compile_.add_argument("--model-format", choices=["onnx"], help="onnx")
    compile_.add_argument("-O", "--opt-level", type=int, help="taken, and not used: all passes run")
    compile_.set_defaults(run=_compile)
    run = commands.add_parser("run", help="run a model that was compiled", description=_run.__doc__)
    run.add_argument("FILE", help="what tvmc compile wrote")
    run.add_argument("-i", "--inputs", metavar="FILE.npz", help="inputs by name; others are random")
    run.add_argument(
        "-o", "--outputs", "--output", metavar="FILE.npz", help="write the results, as output_0, output_1 …"
    )
    run.add_argument("--device", choices=["cpu"], default="cpu", help="cpu")
    run.add_argument("--print-time", action="store_true", help="time it")
    run.add_argument("--print-top", type=int, metavar="N", help="print the N largest values, with their indices")
    run.add_argument("--repeat", type=int, default=1, help="means that are taken (default 1)")
    run.add_argument("--number", type=int, default=1, help="calls for each mean (default 1)")
    run.set_defaults(run=_run)
    return parser


def _compile(options: argparse.Namespace) -> None:
    """Compile an ONNX model into an archive of code, weights and graph. Sizes that the model leaves open are 1, unless
    --input-shapes gives them."""
    from ..graph import compile_graph
    from ..importers.onnx import from_onnx, open_inputs, read_model

    path = Path(options.output)
    require_file(options.FILE)
    require_writable(path)
    if path.suffix != ".tar":
        raise ValueError(f"the output is an archive, and ends in .tar: {options.output!r} does not")
    read, shapes = read_model(options.FILE), _shapes(options.input_shapes)
    for name, sizes in open_inputs(read).items():
        if name not in shapes:
            shapes[name] = [1 if isinstance(size, str) else size for size in sizes]
            print(f"input {name} has shape {sizes}: compiled for {shapes[name]} (see --input-shapes)", file=sys.stderr)
    graph = from_onnx(read, shapes=shapes)
    model = compile_graph(graph, options.target)
    with tempfile.TemporaryDirectory() as folder:
        code, params, made = (Path(folder, name) for name in (CODE, PARAMS, "made.tar"))
        model.save(code, weights=params)
        Path(folder, GRAPH).write_text(json.dumps(_described(graph)), encoding="utf-8")
        with tarfile.open(made, "w") as archive:
            for name in (CODE, GRAPH, PARAMS):
                archive.add(Path(folder, name), name)
        beside = path.with_name(f"{path.name}.{os.getpid()}.part")
        try:
            shutil.copyfile(made, beside)
            os.replace(beside, path)
        finally:
            beside.unlink(missing_ok=True)


def _shapes(text: str | None) -> dict[str, list[int]]:
    """Shapes by name, as TVM writes them.

    >>> _shapes("data:[1,3,224,224] mask:[1, 8]")
    {'data': [1, 3, 224, 224], 'mask': [1, 8]}
    """
    found: dict[str, list[int]] = {}
    one = r"\s*([^\s\[\]]+):\[\s*([\d\s,]*?)\s*\],?"
    if text is None:
        return found
    if not re.fullmatch(f"({one})+\\s*", text):
        raise ValueError(f"--input-shapes takes NAME:[SIZE,SIZE,…] NAME:[…], not {text!r}")
    for name, sizes in re.findall(one, text):
        found[name] = [int(size) for size in sizes.split(",") if size.strip()]
    return found


def _described(graph: Graph) -> dict[str, Any]:
    """A graph as plain data, without its constants."""
    from ..graph import Value

    def plain(argument: Any) -> Any:
        if isinstance(argument, Value):
            return {"value": argument.name}
        if isinstance(argument, (list, tuple)):
            return list(map(plain, argument))
        return argument if isinstance(argument, (int, float, str, bool, type(None))) else str(argument)

    def value(of: Value) -> dict[str, Any]:
        return {"name": of.name, "shape": list(of.shape), "dtype": str(of.dtype)}

    nodes = [
        {
            "operator": node.operator,
            "name": node.name,
            "arguments": {name: plain(argument) for name, argument in node.arguments.items()},
            "outputs": list(map(value, node.outputs)),
        }
        for node in graph.nodes
    ]
    return {
        "inputs": list(map(value, graph.inputs)),
        "params": list(map(value, graph.constants)),
        "nodes": nodes,
        "heads": {name: of.name for name, of in graph.outputs.items()},
    }


def _run(options: argparse.Namespace) -> None:
    """Run what tvmc compile wrote, on inputs from a file or random ones."""
    require_file(options.FILE)
    if options.repeat < 1 or options.number < 1:
        raise ValueError(f"--repeat and --number must be at least 1, got {options.repeat} and {options.number}")
    if options.outputs is not None:
        require_writable(Path(options.outputs))
    model = loaded(options.FILE)
    names = [p.name for p in model.inputs]
    given = {} if options.inputs is None else subjects.archive(options.inputs, names)
    args = models.arguments(model.inputs, given, 0, {})
    made = model(*args)
    results = made if isinstance(made, tuple) else (made,)
    if options.outputs is not None:
        subjects.save(options.outputs, {f"output_{n}": array for n, array in enumerate(results)})
    if options.print_top is not None:
        print(_largest(results[0], options.print_top))
    if options.print_time:
        print(_timed(model, args, options))


def _largest(array: Any, count: int) -> str:
    """The largest elements: their indices in a flat array, and below them their values."""
    flat = array.reshape(-1)
    order = flat.argsort()[::-1][: max(count, 0)]
    return f"{order.tolist()}\n{[float(flat[at]) for at in order]}"


def _timed(model: Any, args: list[Any], options: argparse.Namespace) -> str:
    from codegen.module import measure

    from ..display import text_table

    timing = measure(lambda: model(*args), options.number, options.repeat)
    kinds = ("mean", "median", "max", "min", "std")
    cells = [f"{getattr(timing, kind) * 1e3:.4f}" for kind in kinds]
    table = text_table([f"{kind} (ms)" for kind in kinds], [cells], right=range(5))
    return f"Execution time summary:\n{table}"


def loaded(path: str) -> Any:
    """The model in an archive. Of the archive only the code and the weights are read, whatever it says where they belong."""
    from ..graph import Model
    from ..saved import load

    with tempfile.TemporaryDirectory() as folder:
        try:
            with tarfile.open(path, "r:") as archive:
                for name in (CODE, PARAMS):
                    content = None if archive.getmember(name).issparse() else archive.extractfile(name)
                    if content is None:
                        raise KeyError(name)
                    with content, open(Path(folder, name), "wb") as file:
                        shutil.copyfileobj(content, file)
        except (tarfile.TarError, KeyError, EOFError, ValueError) as error:
            raise BuildError(f"{path} is no archive of a model as tvmc compile writes it") from error
        model = load(Path(folder, CODE))
    if not isinstance(model, Model):
        raise BuildError(f"{path}: {CODE} is no model")
    return model


if __name__ == "__main__":
    sys.exit(main())
