"""Reads what engines refuse at load out of their wheels, and writes it into the catalog.

    python scripts/build_engine_limits.py [ENGINE==VERSION ...]

Wheels hold the checks as Python: quantization methods and the compute capability of each, sizes of groups,
how a block of scales may be split, which families take no float16. They are downloaded without dependencies (about
0.4 GB for a vLLM), read by `ast`, never run. Without versions it reads those of the catalog's images. A row stands for
the versions from its own up to the next one's; a version that differs in nothing has none. What a person wrote into the
other parts of `engine_limits.json` is kept.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import tempfile
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from seatrial_base.catalog.engine_versions import read_version
from seatrial_base.catalog.images import IMAGES

if TYPE_CHECKING:
    from collections.abc import Iterator

Row: TypeAlias = dict[str, object]
_CATALOG = Path(__file__).resolve().parent.parent / "packages/seatrial-base/seatrial_base/catalog/data"
_FILE = _CATALOG / "engine_limits.json"
_LAYERS = {"vllm": "vllm/model_executor/layers/", "sglang": "sglang/srt/layers/"}
_REGISTRY = ("method_to_config", "BASE_QUANTIZATION_METHODS")
_PLATFORMS = (*(f"manylinux_2_{minor}_x86_64" for minor in (28, 31, 34, 35)), "manylinux1_x86_64", "any")


def main() -> None:
    """Read the wheels and the catalog, write the part `builds`, print what it holds."""
    today = datetime.now(UTC).date().isoformat()
    rows: list[Row] = []
    for named in sys.argv[1:] or _catalog_versions():
        engine, _, version = named.partition("==")
        try:
            row: Row = {"engine": engine, "version": version, **_limits(engine, version), "date": today}
        except subprocess.CalledProcessError:
            print(f"{engine}=={version} is not on PyPI")  # withdrawn, as vLLM 0.21.0
            continue
        last = next((each for each in reversed(rows) if each["engine"] == engine), {})
        if not last or any(row[key] != last[key] for key in row.keys() - {"version", "source", "date"}):
            rows.append(row)
    document: dict[str, list[Row]] = json.loads(_FILE.read_text(encoding="utf-8"))
    parts = {**document, "builds": rows}
    lines = ",\n".join(f"{json.dumps(part)}: {_lines(value)}" for part, value in parts.items())
    _FILE.write_text("{\n" + lines + "\n}\n", encoding="utf-8")
    print(", ".join(f"{len(value)} {part}" for part, value in parts.items()))


def _catalog_versions() -> list[str]:
    built = {(row.family, row.version) for row in IMAGES.rows if row.family in _LAYERS and row.flavour == "cuda"}
    ordered = sorted(built, key=lambda each: (each[0], read_version(each[0], each[1]) or ()))
    return [f"{family}=={version}" for family, version in ordered]


def _lines(rows: list[Row]) -> str:
    return "[\n" + ",\n".join(f"  {json.dumps(row, ensure_ascii=False)}" for row in rows) + "\n]"


def _limits(engine: str, version: str) -> Row:
    """Return what one version's wheel says; `None` for what it has no check of."""
    with tempfile.TemporaryDirectory() as folder:
        platforms = [part for name in _PLATFORMS for part in ("--platform", name)]
        command = ["pip", "download", "-q", "--no-deps", "--only-binary", ":all:", "--python-version", "3.11"]
        subprocess.run([sys.executable, "-m", *command, *platforms, "-d", folder, f"{engine}=={version}"], check=True)
        wheel = next(Path(folder).glob("*.whl"))
        with zipfile.ZipFile(wheel) as archive:
            names = [
                name
                for name in archive.namelist()
                if name.endswith(".py") and name.startswith((_LAYERS[engine], "vllm/config/model"))
            ]
            texts = {name: archive.read(name).decode() for name in names}
    trees = {name: ast.parse(text) for name, text in texts.items()}
    nodes = [node for tree in trees.values() for node in ast.walk(tree)]
    refined = _function(nodes, "refine_fp8_moe_block_shape")
    regrouped = next((text for name, text in texts.items() if name.endswith("/moe_wna16.py")), "")
    return {
        "methods": _methods(nodes),
        "group_sizes": next(iter(_constants(nodes, "MARLIN_SUPPORTED_GROUP_SIZES")), None),
        "smallest_group": _bound(ast.parse(regrouped), ast.Assert),
        "smallest_block": _bound(refined, ast.If) if refined else None,
        "splits_merged": any("allow_fp8_block_shape_mismatch" in text for text in texts.values()),
        "holds_groups": any("% self.group_size != 0" in text for name, text in texts.items() if "_moe_wna16" in name),
        "no_float16": sorted(map(str, next(iter(_constants(nodes, "_FLOAT16_NOT_SUPPORTED_MODELS")), ()))),
        "source": f"{wheel.name}: {_LAYERS[engine]}quantization",
    }


def _methods(nodes: list[ast.AST]) -> dict[str, int | None]:
    """Return the compute capability, times ten, that each method needs at least; `None` where it is computed."""
    classes = {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}
    methods: dict[str, int | None] = {}
    for node in nodes:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = getattr(node, "value", None)
        if isinstance(target, ast.Name) and target.id in _REGISTRY and isinstance(value, ast.Dict):
            for key, named in zip(value.keys, value.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(named, ast.Name):
                    methods[str(key.value)] = _capability(named.id, classes)
    if any("Mxfp4Config" in name for name in classes):  # SGLang registers it below the table, for CUDA too
        methods.setdefault("mxfp4", _capability("Mxfp4Config", classes))
    return dict(sorted(methods.items()))


def _capability(name: str, classes: dict[str, ast.ClassDef]) -> int | None:
    """Return what `get_min_capability` of a class returns at last, its bases' where it has none."""
    made = classes.get(name)
    if made is None:
        return None
    own = _function([*made.body], "get_min_capability")
    if own is None:
        bases = [base.id for base in made.bases if isinstance(base, ast.Name)]
        return next((number for base in bases if (number := _capability(base, classes)) is not None), None)
    returned = [node.value for node in ast.walk(own) if isinstance(node, ast.Return)]
    # Behind the branches for other makers' devices comes what holds for CUDA.
    last = max(returned, key=lambda value: value.lineno if value else 0, default=None)
    last = last.orelse if isinstance(last, ast.IfExp) else last  # as of MXFP8 or of another maker: what is left
    return last.value if isinstance(last, ast.Constant) and isinstance(last.value, int) else None


def _function(nodes: list[ast.AST], name: str) -> ast.AST | None:
    return next((node for node in nodes if isinstance(node, ast.FunctionDef) and node.name == name), None)


def _bound(tree: ast.AST, statement: type[ast.Assert | ast.If]) -> int | None:
    """Return the first number above 1 that a statement of a kind compares with."""
    tests = [node.test for node in ast.walk(tree) if isinstance(node, statement)]
    sides = [side for test in tests if isinstance(test, ast.Compare) for side in test.comparators]
    numbers = [side.value for side in sides if isinstance(side, ast.Constant) and isinstance(side.value, int)]
    return next((number for number in numbers if number > 1), None)


def _constants(nodes: list[ast.AST], name: str) -> Iterator[list[object]]:
    """Yield the literal values of a name; of a dictionary its keys."""
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == name:
            try:
                yield list(ast.literal_eval(node.value))
            except ValueError:
                keys = node.value.keys if isinstance(node.value, ast.Dict) else []
                yield [key.value for key in keys if isinstance(key, ast.Constant)]


if __name__ == "__main__":
    main()
