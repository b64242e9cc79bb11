"""Writes the keys and builds of the table of engine options: what LMI, TGI and vLLM know, by version.

    python scripts/build_engine_options.py
    python scripts/build_engine_options.py --vllm 0.26.0 --lmi 28
    python scripts/build_engine_options.py --djl GIT_DIR --tgi GIT_DIR
    python scripts/build_engine_options.py --sglang WHEEL …

The second first adds the fields of a release of vLLM, from PyPI or from the file of `--from`, as those of an LMI build;
without `--lmi` they are those of a release that no build of LMI is known to have.

The first writes the builds of LMI from `scripts/facts/collected/vllm_engine_args.json`, the fields of vLLM's
`EngineArgs` by version: LMI passes `option.NAME` on to vLLM exactly when NAME is such a field of the bundled version,
and drops any other name without a word, but for its own. The third writes the keys of LMI and TGI too, from their
sources.

The fourth writes the keys of SGLang from all of its wheels: fields of its arguments, and the flags beside them.

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
import sys
import warnings
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # of `scripts`, which no package installs

from scripts.renewal.sources import FETCHED, Archive, Sources

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "packages" / "seatrial-base" / "seatrial_base" / "catalog" / "data" / "engine_options.json"
FACTS = ROOT / "scripts" / "facts" / "collected" / "vllm_engine_args.json"
LMI_SOURCE = "deepjavalibrary/djl-serving@d21927c4 serving/docs/lmi, python handlers' property classes"
LMI_DATE = "2026-06-24"
# Names that LMI itself reads beside vLLM's own.
LMI_NAMES = """
async_mode chat_template chat_template_content_format cpu_offload_gb_per_gpu device_map enable_auto_tool_choice
enable_lora enable_reasoning enable_stateful_sessions enable_streaming entryPoint fully_sharded_loras is_peft_model
lmcache_auto_config lmcache_config_file load_on_devices long_lora_scaling_factors lora_dtype lora_extra_vocab_size
low_cpu_mem_usage max_cpu_loras max_lora_rank max_loras max_rolling_batch_prefill_tokens max_rolling_batch_size
model_id model_loading_timeout output_formatter parallel_loading pipeline_parallel_degree predict_timeout quantize
reasoning_parser revision rolling_batch sessions_expiration sessions_path task tensor_parallel_degree tgi_compat
tool_call_parser trust_remote_code
"""
DJL_SOURCE = "deepjavalibrary/djl-serving, branches 0.23.0-dlc to 0.36.0-lmi27-dlc (2026-06-24)"
TGI_SOURCE = "huggingface/text-generation-inference, all tags from v0.9.3 to v3.3.7 (2026-01-08)"
DJL_BRANCHES = {f"0.{number + 18}.0-dlc": number for number in range(5, 18)}
DJL_BRANCHES |= {f"0.36.0-lmi{number}-dlc": number for number in range(18, 28)}
SGLANG_PATHS = re.compile(r"sglang/srt/(server_args|arg_groups/(fields/)?\w+)\.py$")
_RELEASE = re.compile(r"-(\d+(?:\.\d+)+)")
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
    """Read the facts and, where they are named, both clones; write their parts of the data file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vllm", metavar="VERSION", help="a release of vLLM to read")
    parser.add_argument("--lmi", type=int, metavar="NUMBER", help="the LMI build that has it")
    parser.add_argument("--from", dest="given", type=Path, metavar="FILE", help="its archive, where PyPI is not asked")
    parser.add_argument("--djl", type=Path, help="clone of deepjavalibrary/djl-serving")
    parser.add_argument("--tgi", type=Path, help="clone of huggingface/text-generation-inference")
    parser.add_argument("--sglang", type=Path, nargs="+", metavar="WHEEL", help="every release that is read")
    options = parser.parse_args()
    if options.vllm:
        sources = Sources({"vllm": options.given} if options.given else {}, FETCHED)
        release, today = sources.package("vllm", options.vllm), f"{datetime.now(UTC).date()}"
        facts = with_release(json.loads(FACTS.read_text("utf-8")), release, options.lmi, today)
        FACTS.write_text(f"{json.dumps(facts, indent=1)}\n", "utf-8")
    parts = {"builds": list(_builds())}
    if options.djl and options.tgi:
        parts["keys"] = [*_scopes(_djl_rows(options.djl), DJL_SOURCE), *_scopes(_tgi_rows(options.tgi), TGI_SOURCE)]
    text = DATA.read_text(encoding="utf-8")
    if options.sglang:
        others = [row for row in json.loads(text)["keys"] if row["source"] in {DJL_SOURCE, TGI_SOURCE}]
        parts["keys"] = [*others, sglang_keys(options.sglang)]
    for part, rows in parts.items():
        text = _with_part(text, part, rows)
        print(f"{part}: {len(rows)} rows")
    DATA.write_text(text, encoding="utf-8")


def sglang_keys(archives: list[Path]) -> dict[str, object]:
    """Return the keys that releases of SGLang read, with the first and the last one that has each."""
    known: dict[str, list[str]] = defaultdict(list)
    numbers = {path: _RELEASE.findall(path.name)[0] for path in archives}
    releases = sorted(archives, key=lambda path: [int(part) for part in numbers[path].split(".")])
    for path in releases:
        files = Archive("sglang", numbers[path], path)._texts(".py")  # noqa: SLF001 (several files by their paths)
        texts = [text for name, text in files if SGLANG_PATHS.search(name)]
        names = set().union(*map(_fields, texts))
        names |= {flag.replace("-", "_") for text in texts for flag in re.findall(r'"--([a-z][a-z0-9-]+)"', text)}
        for name in names:
            known[name].append(numbers[path])
    first, last = numbers[releases[0]], numbers[releases[-1]]
    spans = {
        name: f"{'' if seen[0] == first else seen[0]}-{'' if seen[-1] == last else seen[-1]}"
        for name, seen in sorted(known.items())
        if not name.startswith("_")
    }
    source = f"sglang {first} to {last}: sglang/srt/server_args.py and arg_groups/"
    return {"engine": "sglang", "scope": "common", "source": source, "names": spans}


def with_release(facts: dict[str, Any], release: Archive, lmi: int | None, date: str) -> dict[str, Any]:
    """Return the collected facts with the fields of a release's `EngineArgs`, as those that an LMI build reads.

    Args:
        facts: The facts of `scripts/facts/collected/vllm_engine_args.json`.
        release: A release of vLLM.
        lmi: The number of the build that has it; `None` where none is known.
        date: The day of the reading.

    Raises:
        LookupError: The release has no such class there.
    """
    for node in ast.walk(ast.parse(release.text("vllm/engine/arg_utils.py"))):
        if isinstance(node, ast.ClassDef) and node.name == "EngineArgs":
            targets = [each.target for each in node.body if isinstance(each, ast.AnnAssign)]
            names = sorted(each.id for each in targets if isinstance(each, ast.Name))
            added = {"lmi": lmi, "dates": date, "engine_args": names}
            return {**facts, **{part: {**facts[part], release.version: value} for part, value in added.items()}}
    raise LookupError(f"{release.words} has no class EngineArgs in vllm/engine/arg_utils.py")


def _with_part(text: str, part: str, rows: list[dict[str, object]]) -> str:
    """Return the data file with other rows in one part; keys that no clone has, of other sources, stay."""
    kept = [row for row in json.loads(text)[part] if part == "keys" and row["source"] not in (DJL_SOURCE, TGI_SOURCE)]
    kept = [row for row in kept if row["engine"] != "sglang" or all(one["engine"] != "sglang" for one in rows)]
    lines = ",\n".join(_line(row) for row in [*rows, *kept])
    return re.sub(
        rf'(?<=^"{part}": \[\n).*?(?=\n\],?$)', lambda _: lines, text, count=1, flags=re.DOTALL | re.MULTILINE
    )


def _line(row: dict[str, object]) -> str:
    """Return a row as a line; the names of keys stand one a line."""
    head = {name: value for name, value in row.items() if name != "names"}
    names = f', "names": {json.dumps(row["names"], indent=2)}' if "names" in row else ""
    return f"{json.dumps(head).removesuffix('}')}{names}}}"


def _builds() -> Iterator[dict[str, object]]:
    """Yield the names that LMI reads in every build, then what each build's vLLM added and removed."""
    own = sorted(LMI_NAMES.split())
    yield {"lmi": None, "vllm": None, "added": own, "removed": [], "source": LMI_SOURCE, "date": LMI_DATE}
    facts = json.loads(FACTS.read_text(encoding="utf-8"))
    before: set[str] = set()
    for version, lmi in sorted(facts["lmi"].items(), key=lambda pair: [int(part) for part in pair[0].split(".")]):
        names = set(facts["engine_args"][version])
        added, removed = sorted(names - before), sorted(before - names)
        yield {
            "lmi": lmi,
            "vllm": version,
            "added": added,
            "removed": removed,
            "source": facts["_meta"]["source"],
            "date": facts["dates"][version],
        }
        before = names


def _scopes(rows: Iterator[dict[str, str | None]], source: str) -> Iterator[dict[str, object]]:
    """Yield the keys of each scope, with the first and the last version that names each."""
    scopes: dict[tuple[str | None, str | None], dict[str | None, str]] = defaultdict(dict)
    for row in rows:
        scopes[row["engine"], row["scope"]][row["name"]] = f"{row['since']}-{row['until'] or ''}"
    for (engine, scope), names in scopes.items():
        yield {"engine": engine, "scope": scope, "source": source, "names": names}


def _djl_rows(repository: Path) -> Iterator[dict[str, str | None]]:
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


def _tgi_rows(repository: Path) -> Iterator[dict[str, str | None]]:
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


def _row(engine: str, scope: str, name: str, since: str, until: str | None) -> dict[str, str | None]:
    return {"engine": engine, "scope": scope, "name": name, "since": since, "until": until}


def _git(repository: Path, *arguments: str) -> str:
    command = ["git", "-C", str(repository), *arguments]
    return subprocess.run(command, capture_output=True, check=False).stdout.decode("utf-8", "replace")


if __name__ == "__main__":
    main()
