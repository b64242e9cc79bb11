"""Writes the catalog's known keys of LMI and TGI containers from checkouts of their sources.

    python scripts/build_lint_keys.py --djl GIT_DIR --tgi GIT_DIR

GIT_DIR holds a clone with all branches (djl-serving: one `…-dlc` branch for each release) and tags (TGI). A key is
known to a version when its source names it: a field of a property class, a name looked up in the properties, an
`option.NAME` of the Java sources or the guides; for TGI a launcher argument with `env`, or a variable that is read.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import warnings
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

DATA = (
    Path(__file__).resolve().parent.parent
    / "packages"
    / "seatrial-base"
    / "seatrial_base"
    / "catalog"
    / "data"
    / "lint_keys.json"
)
DJL_BRANCHES = {f"0.{number + 18}.0-dlc": number for number in range(5, 18)}
DJL_BRANCHES |= {f"0.36.0-lmi{number}-dlc": number for number in range(18, 28)}
OLDEST_TGI, NEWEST_TGI = (0, 9, 3), (3, 3, 7)
TGI_PATHS = ("launcher/src/main.rs", "router/src/main.rs", "backends/v2/src/main.rs", "backends/v3/src/main.rs")
SCOPES = (
    ("vllm", ("vllm",)),
    ("lmi-dist", ("lmi_dist", "lmi-dist")),
    ("trtllm", ("trt",)),
    ("neuronx", ("tnx", "neuron", "inf2")),
    ("deepspeed", ("deepspeed", "ds_properties")),
)
DJL_PATHS = (
    "engines/python/setup/djl_python",
    "engines/python/src/main",
    "wlm/src/main",
    "serving/src/main",
    "serving/docs",
)
SKIPPED = re.compile(r"/tests/|chat_properties|chat_utils|parse_input|request_response_utils|three_p|/test_")
OPTION = re.compile(r"\boption\.([a-z][A-Za-z0-9_]*)")
LOOKED_UP = re.compile(
    r"""properties(?:\.get\(|\[|\.pop\()\s*["']([A-Za-z]\w*)["']|["']([a-z]\w*)["'] in (?:self\.)?prop"""
)
JAVA = re.compile(
    r"""(?:getProperty|intProperty|containsKey|getArgument)\(\s*"([a-z][A-Za-z0-9_]*)"|case "([a-z]\w*)":"""
)
PROPERTIES = re.compile(
    r"""["']([a-z]\w*)["'] in \w*(?:\.get_properties\(\)|properties)|get_properties\(\)\.get\(\s*["'](\w+)"""
)
DOCUMENTED = re.compile(r"option\.(\w+)\s*\|\s*>=\s*0\.(\d+)\.0")
READ = re.compile(r"""(?:getenv|environ\.get|environ)[(\[]["']([A-Z][A-Z0-9_]+)["']|env::var\("([A-Z][A-Z0-9_]+)"\)""")
LAUNCHER = re.compile(r"#\[clap\([^\]]*\benv\b[^\]]*\)\]\s*(?:///[^\n]*\s*)*([a-z_0-9]+):")
NOT_OPTIONS = {"getKey", "getValue", "py", "zip", "modeName", "kwargs", "model_config", "extra_args", "my_var", "var"}
Known = dict[tuple[str, str], set[int]]


def main() -> None:
    """Read both clones, write the data file, print what was written."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--djl", type=Path, required=True, help="clone of deepjavalibrary/djl-serving")
    parser.add_argument("--tgi", type=Path, required=True, help="clone of huggingface/text-generation-inference")
    given = parser.parse_args()
    rows = [*_djl_rows(given.djl), *_tgi_rows(given.tgi)]
    lines = ",\n".join(json.dumps(row) for row in rows)
    sources = {
        "lmi": "deepjavalibrary/djl-serving, branches 0.23.0-dlc to 0.36.0-lmi27-dlc (2026-06-24)",
        "tgi": "huggingface/text-generation-inference, all tags from v0.9.3 to v3.3.7 (2026-01-08)",
    }
    DATA.write_text(f'{{\n"sources": {json.dumps(sources)},\n"rows": [\n{lines}\n]\n}}\n', encoding="utf-8")
    print(f"{DATA.name}: {len(rows)} keys")


def _djl_rows(repository: Path) -> Iterator[dict[str, object]]:
    known: Known = defaultdict(set)
    for branch, number in DJL_BRANCHES.items():
        for path in _git(repository, "ls-tree", "-r", "--name-only", branch, *DJL_PATHS).splitlines():
            if not path.endswith((".py", ".java", ".md")) or SKIPPED.search(path):
                continue
            text = _git(repository, "show", f"{branch}:{path}")
            for name in _djl_names(path, text):
                known[_scope(path), name].add(number)
            for name, minor in DOCUMENTED.findall(text) if path.endswith(".md") else ():
                known[_scope(path), name].add(max(int(minor) - 18, min(DJL_BRANCHES.values())))
    last = max(DJL_BRANCHES.values())
    for (scope, name), numbers in sorted(known.items()):
        until = max(numbers)
        yield _row("lmi", scope, name, str(min(numbers)), None if until == last else str(until))


def _djl_names(path: str, text: str) -> set[str]:
    names = set(OPTION.findall(text))
    if path.endswith(".java") and ("engines/python" in path or path.endswith(("ModelInfo.java", "LmiUtils.java"))):
        names |= {name for pair in JAVA.findall(text) for name in pair if name}
    if path.endswith(".py"):
        names |= {name for pair in PROPERTIES.findall(text) for name in pair if name}
        names |= {name for pair in LOOKED_UP.findall(text) for name in pair if name}
        if "properties_manager" in path:
            names |= _fields(text)
    return {name for name in names if name not in NOT_OPTIONS and not name.startswith("_") and len(name) > 1}


def _fields(text: str) -> set[str]:
    """Return the fields of the pydantic classes of a module, and their aliases."""
    names: set[str] = set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(text)
    for owner in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        for node in owner.body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                names.add(node.target.id)
                names |= set(re.findall(r"alias=['\"](\w+)['\"]", ast.unparse(node)))
    return names


def _scope(path: str) -> str:
    name = path.rsplit("/", 2)[-2] + "/" + path.rsplit("/", 1)[-1].lower()
    return next((scope for scope, marks in SCOPES if any(mark in name for mark in marks)), "common")


def _tgi_rows(repository: Path) -> Iterator[dict[str, object]]:
    tags = _tgi_tags(repository)
    known: dict[str, list[str]] = defaultdict(list)
    for tag in tags:
        rust = "".join(_git(repository, "show", f"{tag}:{path}") for path in TGI_PATHS)
        names = {name.upper() for name in LAUNCHER.findall(rust)}
        grep = ("grep", "-hE", r"getenv|environ|env::var", tag, "--", "server", "router", "launcher", "backends")
        names |= {name for pair in READ.findall(_git(repository, *grep)) for name in pair if name}
        names |= set(re.findall(r"\$\{?([A-Z][A-Z0-9_]+)", _git(repository, "show", f"{tag}:sagemaker-entrypoint.sh")))
        for name in names:
            known[name].append(tag)
    for name, seen in sorted(known.items()):
        until = None if seen[-1] == tags[-1] else seen[-1].removeprefix("v")
        yield _row("tgi", "common", name, seen[0].removeprefix("v"), until)


def _tgi_tags(repository: Path) -> list[str]:
    """Return the tags of all releases that are read, oldest first."""
    found = re.findall(r"^v(\d+)\.(\d+)\.(\d+)$", _git(repository, "tag"), re.MULTILINE)
    versions = sorted(tuple(map(int, numbers)) for numbers in found)
    return [f"v{'.'.join(map(str, one))}" for one in versions if OLDEST_TGI <= one <= NEWEST_TGI]


def _row(engine: str, scope: str, name: str, since: str, until: str | None) -> dict[str, object]:
    return {"engine": engine, "scope": scope, "name": name, "since": since, "until": until}


def _git(repository: Path, *arguments: str) -> str:
    command = ["git", "-C", str(repository), *arguments]
    return subprocess.run(command, capture_output=True, check=False).stdout.decode("utf-8", "replace")


if __name__ == "__main__":
    main()
