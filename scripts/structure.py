"""Counts what the structure of the source costs its reader: `python scripts/structure.py [--json] [--list WHAT]`.

Lines and files; what a command, and what the reader of a lock, imports (reach: run-time and function-level imports,
without those for types alone); the largest circle of imports (those for types too); public function names in more than
one module; functions above a cyclomatic complexity of 10.
"""

import argparse
import ast
import io
import json
import re
import statistics
import sys
import tokenize
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeGuard

ROOT = Path(__file__).resolve().parents[1]
SOURCE_ROOTS = (ROOT, ROOT / "constructs", ROOT / "stacks", *sorted((ROOT / "packages").glob("*")))
PACKAGES = ("seatrial", "seatrial_cdk", "seatrial_stacks", "seatrial_*")
LOCK_READERS = ("seatrial.locks.lock_file", "seatrial.locks.lock_file")
COMMAND_PACKAGE = "seatrial.cli"
NO_COMMANDS = ("app", "__main__")
MOST_DECISIONS = 15
VAGUE_WORDS = ("found", "asked", "told", "said")
_PART_OF_NAME = re.compile(r"[A-Z]?[a-z]+")
PLANNING_PACKAGES = ("seatrial.planner", "seatrial.planner.planner")


@dataclass(frozen=True)
class Module:
    """A file: its imports while it runs (`runtime`) and those for types alone (`typed`)."""

    name: str
    path: Path
    lines: int
    at_import: frozenset[str]
    runtime: frozenset[str]
    typed: frozenset[str]
    import_lines: int
    function_level: int
    public_functions: tuple[str, ...]


@dataclass
class Imports:
    """Names of modules that a file names in its imports."""

    at_import: set[str] = field(default_factory=set)
    runtime: set[str] = field(default_factory=set)
    typed: set[str] = field(default_factory=set)
    lines: int = 0
    function_level: int = 0


def source_files() -> dict[str, Path]:
    """Return the files of the source by the name of their module."""
    files: dict[str, Path] = {}
    for root in SOURCE_ROOTS:
        for package in sorted({found for pattern in PACKAGES for found in root.glob(f"{pattern}/__init__.py")}):
            for path in sorted(package.parent.rglob("*.py")):
                parts = path.relative_to(root).with_suffix("").parts
                files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return files


def read_module(name: str, path: Path, known: frozenset[str]) -> Module:
    """Read a file's imports and definitions."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    imports = Imports()
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    _collect(tree, imports, known, package, typed=False, inside=False)
    return Module(
        name=name,
        path=path,
        lines=text.count("\n"),
        at_import=frozenset(imports.at_import - {name}),
        runtime=frozenset(imports.runtime - {name}),
        typed=frozenset(imports.typed - {name}),
        import_lines=imports.lines,
        function_level=imports.function_level,
        public_functions=tuple(
            node.name
            for node in tree.body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_")
        ),
    )


def _collect(
    node: ast.AST, imports: Imports, known: frozenset[str], package: str, *, typed: bool, inside: bool
) -> None:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            names = _imported(child, known, package)
            (imports.typed if typed else imports.runtime).update(names)
            if not typed and not inside:
                imports.at_import.update(names)
            imports.lines += (child.end_lineno or child.lineno) - child.lineno + 1
            imports.function_level += inside and bool(names)
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            for statement in child.body:
                _collect(ast.Module([statement], []), imports, known, package, typed=True, inside=inside)
        else:
            nested = inside or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
            _collect(child, imports, known, package, typed=typed, inside=nested)


def _imported(node: ast.Import | ast.ImportFrom, known: frozenset[str], package: str) -> set[str]:
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names if alias.name in known}
    base = node.module or ""
    if node.level:
        above = package.split(".")[: len(package.split(".")) - node.level + 1]
        base = ".".join([*above, *([node.module] if node.module else [])])
    names = {f"{base}.{alias.name}" for alias in node.names if f"{base}.{alias.name}" in known}
    return names or ({base} & known)


def reach(start: str, modules: dict[str, Module]) -> set[str]:
    """Return every module that running `start` may import, itself included.

    The functions of a package's `__init__` count where it is imported by name, not where a module below it is.
    """
    reached: set[str] = set()
    waiting = [(start, True)]
    while waiting:
        name, whole = waiting.pop()
        if name in reached or name not in modules:
            continue
        reached.add(name)
        parts = name.split(".")
        waiting += [(".".join(parts[:count]), False) for count in range(1, len(parts))]
        waiting += [(other, True) for other in (modules[name].runtime if whole else modules[name].at_import)]
    return reached


def circles(modules: dict[str, Module]) -> list[list[str]]:
    """Return the groups of modules that import one another, types included, the largest first (Tarjan 1972)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    groups: list[list[str]] = []

    def visit(name: str) -> None:
        order[name] = low[name] = len(order)
        stack.append(name)
        for other in (modules[name].runtime | modules[name].typed) & modules.keys():
            if other not in order:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], order[other])
        if low[name] == order[name]:
            group = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(group) > 1:
                groups.append(sorted(group))

    sys.setrecursionlimit(10_000)
    for name in modules:
        if name not in order:
            visit(name)
    return sorted(groups, key=len, reverse=True)


def repeated_functions(modules: dict[str, Module]) -> dict[str, list[str]]:
    """Return the public function names that more than one module defines, with these modules."""
    homes: dict[str, list[str]] = defaultdict(list)
    for module in modules.values():
        for name in module.public_functions:
            homes[name].append(module.name)
    return {name: sorted(where) for name, where in sorted(homes.items()) if len(where) > 1}


def complex_functions(files: dict[str, Path]) -> dict[str, int]:
    """Return the functions above a complexity of 15, the most complex first.

    One, and one more for each branch, loop, handler, case, conditional expression, further operand of `and` and `or`,
    and loop of a comprehension; what a function nests counts for it too.
    """
    counts = {
        f"{name}:{node.lineno} {node.name}": 1 + sum(map(_decisions, ast.walk(node)))
        for name, path in files.items()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    above = {name: count for name, count in counts.items() if count > MOST_DECISIONS}
    return dict(sorted(above.items(), key=lambda item: -item[1]))


def _decisions(node: ast.AST) -> int:
    if isinstance(node, ast.BoolOp):
        return len(node.values) - 1
    counted = (
        ast.If,
        ast.For,
        ast.AsyncFor,
        ast.While,
        ast.IfExp,
        ast.ExceptHandler,
        ast.match_case,
        ast.comprehension,
    )
    return int(isinstance(node, counted))


def idioms(files: dict[str, Path]) -> dict[str, float]:
    """Count what the code of a house is told by, over all files."""
    counts: Counter[str] = Counter()
    for path in files.values():
        text = path.read_text(encoding="utf-8")
        nodes = [*ast.walk(ast.parse(text))]
        uses = Counter(node.id if isinstance(node, ast.Name) else node.attr for node in nodes if _is_use(node))
        functions = [node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        counts["functions"] += len(functions)
        counts["called once"] += sum(name.startswith("_") and name[1] != "_" and uses[name] == 1 for name in functions)
        counts["copies"] += sum(
            isinstance(node, ast.keyword) and isinstance(node.value, ast.Attribute) and node.value.attr == node.arg
            for node in nodes
        )
        counts["protocols"] += sum(
            isinstance(node, ast.ClassDef) and any(ast.unparse(base).startswith("Protocol") for base in node.bases)
            for node in nodes
        )
        tokens = [*tokenize.generate_tokens(io.StringIO(text).readline)]
        counts["comments"] += sum(t.type == tokenize.COMMENT and not t.line[: t.start[1]].strip() for t in tokens)
        counts["lines"] += text.count("\n")
        names = (t.string for t in tokens if t.type == tokenize.NAME)
        counts["vague"] += sum(part.lower() in VAGUE_WORDS for name in names for part in _PART_OF_NAME.findall(name))
    return {
        "private_functions_called_once_percent": round(100 * counts["called once"] / counts["functions"], 1),
        "copies_by_hand": counts["copies"],
        "protocols": counts["protocols"],
        "comment_lines_percent": round(100 * counts["comments"] / counts["lines"], 2),
        "vague_words_in_identifiers": counts["vague"],
    }


def _is_use(node: ast.AST) -> TypeGuard[ast.Name | ast.Attribute]:
    return isinstance(node, ast.Name | ast.Attribute)


def measure() -> dict[str, object]:
    """Return every count with what it consists of."""
    files = source_files()
    known = frozenset(files)
    modules = {name: read_module(name, path, known) for name, path in files.items()}
    lines = {name: module.lines for name, module in modules.items()}
    packages = {name for name, path in files.items() if (ROOT / "packages") in path.parents}

    def reach_lines(name: str) -> int:
        return sum(lines[reached] for reached in reach(name, modules))

    commands = {
        name: reach_lines(name)
        for name in sorted(modules)
        if name.rpartition(".")[0] == COMMAND_PACKAGE
        and name.rpartition(".")[2] not in NO_COMMANDS
        and files[name].name != "__init__.py"
    }
    plans = {name for name in commands if any(r.startswith(PLANNING_PACKAGES) for r in reach(name, modules))}
    reading = {name: count for name, count in commands.items() if name not in plans}
    groups = circles(modules)
    repeated = repeated_functions(modules)
    complicated = complex_functions(files)
    return {
        "lines": sum(lines.values()),
        "files": len(files),
        "lines_outside_packages": sum(count for name, count in lines.items() if name not in packages),
        "median_reach_of_commands": statistics.median(commands.values()),
        "median_reach_of_reading_commands": statistics.median(reading.values()) if reading else 0,
        "reading_commands": len(reading),
        "reach_of_a_lock": next((reach_lines(name) for name in LOCK_READERS if name in modules), 0),
        "largest_circle": len(groups[0]) if groups else 0,
        "circles": [len(group) for group in groups],
        "repeated_function_names": len(repeated),
        "complex_functions": len(complicated),
        "highest_complexity": max(complicated.values(), default=0),
        "import_share_percent": round(100 * sum(m.import_lines for m in modules.values()) / sum(lines.values()), 1),
        "function_level_imports": sum(module.function_level for module in modules.values()),
        **idioms(files),
        "detail": {
            "commands": commands,
            "circles": groups,
            "functions": repeated,
            "complex": complicated,
        },
    }


def main() -> None:
    """Print the counts, or one of the lists behind them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="all counts and lists as JSON")
    parser.add_argument("--list", choices=["commands", "circles", "functions", "complex"], help="one list")
    parser.add_argument("--reach", metavar="MODULE", help="what a module imports, with lines")
    options = parser.parse_args()
    if options.reach:
        files = source_files()
        modules = {name: read_module(name, path, frozenset(files)) for name, path in files.items()}
        for name in sorted(reach(options.reach, modules)):
            print(f"{modules[name].lines:6} {name}")
        return
    counts = measure()
    detail = counts.pop("detail")
    if options.json:
        print(json.dumps({**counts, "detail": detail}, indent=2))
    elif options.list:
        assert isinstance(detail, dict)  # noqa: S101 -- for the type checker
        listed = detail[options.list]
        rows = listed.items() if isinstance(listed, dict) else enumerate(listed, 1)
        for key, value in rows:
            print(key, value)
    else:
        for key, value in counts.items():
            print(f"{key.replace('_', ' '):36} {value}")


if __name__ == "__main__":
    main()
