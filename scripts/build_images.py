"""Writes the catalog's container images from the SageMaker Python SDK's own tables, so that nobody edits them by hand.

    python scripts/build_images.py --date DATE [--dlc CHECKOUT]

Needs the extra `sagemaker` (`pip install 'seatrial[sagemaker]'`); its tables are read as files, nothing of it is
imported. The SDK knows one LMI build for each DJL version; the others come from the container list in CHECKOUT, a
checkout of https://github.com/aws/deep-learning-containers. DATE is the day of the reading, as 2026-11-20.

A build that was listed before and still reads the same keeps its source and date, and one that is no longer listed
stays: endpoints run it. A refresh therefore reads as a diff of what is new. Tags that move (`server-sagemaker-cuda-v2`)
are left out.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None
Row: TypeAlias = dict[str, Json]
Line: TypeAlias = tuple[str, str]  # family and flavour

OUTPUT = Path(__file__).resolve().parents[1] / "seatrial" / "catalog" / "data" / "images.json"
SDK_TABLES = "sagemaker/core/image_uri_config"
LINES: Mapping[str, Line] = {
    "djl-lmi": ("lmi", "vllm"),
    "djl-tensorrtllm": ("lmi", "trtllm"),
    "djl-neuronx": ("lmi", "neuronx"),
    "djl-deepspeed": ("lmi", "deepspeed"),
    "djl-fastertransformer": ("lmi", "fastertransformer"),
    "huggingface-llm": ("tgi", "cuda"),
    "huggingface-llm-neuronx": ("tgi", "neuronx"),
    "vllm": ("vllm", "cuda"),
    "vllm-server": ("vllm", "server"),
    "huggingface-vllm": ("vllm", "huggingface"),
    "huggingface-vllm-neuronx": ("vllm", "neuronx"),
    "sglang": ("sglang", "cuda"),
    "sglang-server": ("sglang", "server"),
    "huggingface-sglang": ("sglang", "huggingface"),
}
# Folders of the container list; djl-inference holds several lines, told apart by their tags.
LISTED: Mapping[str, Line | None] = {
    "djl-inference": None,
    "vllm": ("vllm", "cuda"),
    "vllm-server": ("vllm", "server"),
    "huggingface-vllm": ("vllm", "huggingface"),
    "huggingface-vllm-inference-neuronx": ("vllm", "neuronx"),
    "sglang": ("sglang", "cuda"),
    "sglang-server": ("sglang", "server"),
    "huggingface-sglang": ("sglang", "huggingface"),
}
# First and last version whose sources or documentation were read; a line that isn't here was not read at all.
READ: Mapping[Line, tuple[tuple[int, ...], tuple[int, ...]]] = {
    ("lmi", "vllm"): ((0, 28), (0, 36, 0, 27, 99)),
    ("lmi", "trtllm"): ((0, 25), (0, 33, 99)),
    ("lmi", "neuronx"): ((0, 23), (0, 29, 99)),
    ("lmi", "deepspeed"): ((0, 23), (0, 27, 99)),
    ("tgi", "cuda"): ((0, 9), (3, 3, 6)),
    ("vllm", "cuda"): ((0, 8), (0, 26, 99)),
    ("sglang", "cuda"): ((0, 5), (0, 5, 20)),
}
# vLLM of LMI builds as their requirements files say; the container list says 0.6.3 of LMI 14, which is lmi-dist's own.
VLLM_OF_LMI = {10: "0.4.2", 11: "0.5.3.post1", 12: "0.6.2", 13: "0.6.3.post1", 14: "0.7.3"}
BUNDLED = {"tensorrtllm": "TensorRT-LLM", "neuronx-sdk": "Neuron SDK", "deepspeed": "DeepSpeed"}
DNS_SUFFIXES = {"cn-": "amazonaws.com.cn", "us-iso-": "c2s.ic.gov", "us-isob-": "sc2s.sgov.gov", "": "amazonaws.com"}
UNVERIFIED = ("eu-isoe-", "us-isof-", "eusc-")  # partitions whose DNS suffix nobody has verified
FIRST_LMI, LAST_ONE_BUILD, MINOR_LESS_LMI = 25, 35, 18  # from DJL 0.25 to 0.35, the LMI number is the minor less 18


def main() -> None:
    """Read the tables, write the data file, print what was written."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--date", required=True, help="the day of the reading")
    parser.add_argument("--dlc", type=Path, help="a checkout of aws/deep-learning-containers")
    parser.add_argument("--dlc-date", help="day of its last change; the day of the reading by default")
    given = parser.parse_args()
    tables, source = sdk_tables()
    accounts = sdk_accounts(tables)
    rows = list(sdk_rows(tables, accounts, source, given.date))
    if given.dlc is not None:
        rows += _unknown(rows, dlc_rows(given.dlc, accounts, given.dlc_date or given.date))
    rows = merged(_previous(), rows)
    OUTPUT.write_text(document(accounts, rows), encoding="utf-8")
    counts = Counter(f"{row['family']}/{row['flavour']}" for row in rows)
    print(f"{OUTPUT.name}: {len(rows)} builds: {', '.join(f'{count} {line}' for line, count in counts.items())}")


# ------------------------------------------------------------------- the SDK


def sdk_tables() -> tuple[dict[str, Row], str]:
    """Return the SDK's tables of our lines by name, and what they were read from."""
    try:
        core = metadata.distribution("sagemaker-core")
    except metadata.PackageNotFoundError:
        sys.exit("the SageMaker SDK is not installed: pip install 'seatrial[sagemaker]'")
    folder = Path(str(core.locate_file(SDK_TABLES)))
    source = f"sagemaker-core {core.version} wheel {SDK_TABLES}/*.json"
    return {name: _table(folder / f"{name}.json") for name in LINES}, source


def _table(path: Path) -> Row:
    table = _row(json.loads(path.read_text(encoding="utf-8")))
    return _row(table.get("inference", table))


def sdk_accounts(tables: Mapping[str, Row]) -> dict[str, str]:
    """Return the registry account of each region; every table must say the same."""
    found: dict[str, set[str]] = {}
    for table in tables.values():
        for fact in _row(table["versions"]).values():
            for region, account in _row(_row(fact)["registries"]).items():
                found.setdefault(region, set()).add(str(account))
    if mixed := {region: each for region, each in found.items() if len(each) > 1}:
        sys.exit(f"regions with several accounts: {mixed}")
    return {region: found[region].pop() for region in sorted(found) if not region.startswith(UNVERIFIED)}


def sdk_rows(tables: Mapping[str, Row], accounts: Mapping[str, str], source: str, date: str) -> Iterator[Row]:
    """Yield a row for each version of each table, tags that move left out."""
    for name, table in tables.items():
        for version, fact in _row(table["versions"]).items():
            facts = _row(fact)
            if "." in version:
                tag = sdk_tag(name, facts)
                missing = sorted(set(accounts) - set(_row(facts["registries"])))
                yield _build(LINES[name], version, str(facts["repository"]), tag, missing, source=source, date=date)


def sdk_tag(name: str, fact: Row) -> str:
    """Compose the tag of a version as the SDK does; a test compares it with the SDK's own answer."""
    prefix, containers = str(fact["tag_prefix"]), fact.get("container_version")
    if not isinstance(containers, dict):
        return prefix
    container = str(containers.get("gpu") or next(iter(containers.values())))
    if fact.get("processor_in_tag") is False:
        return f"{prefix}-{container}"
    processor = "neuronx" if name.endswith("neuronx") else "gpu"
    return "-".join([prefix, processor, *_first(fact, "py_versions"), *_first(fact, "sdk_versions"), container])


def _first(fact: Row, key: str) -> list[str]:
    values = fact.get(key)
    return [str(values[0])] if isinstance(values, list) else []


# -------------------------------------------------------- the container list


def dlc_rows(checkout: Path, accounts: Mapping[str, str], date: str) -> Iterator[Row]:
    """Yield a row for each SageMaker image of the container list."""
    table = (checkout / "docs/reference/region_availability.md").read_text(encoding="utf-8").split("\n## ")[1]
    missing = sorted(set(accounts) - set(re.findall(r"\| ([a-z-]+\d) \|", table)))
    source = "github aws/deep-learning-containers docs/src/data/*/*.yml and docs/reference/region_availability.md"
    for folder, line in LISTED.items():
        for path in sorted((checkout / "docs/src/data" / folder).glob("*.yml")):
            fact = _row(yaml.safe_load(path.read_text(encoding="utf-8")))
            tag = _first(fact, "tags")[0]
            of = line or _djl_line(tag)
            if fact["platform"] == "sagemaker" and of is not None and not re.search(r"cuda-v\d+$", tag):
                repository = str(fact.get("ecr_repository", folder))
                yield _build(
                    of, _listed_version(of, tag), repository, tag, missing, source=source, date=date, fact=fact
                )


def _djl_line(tag: str) -> Line | None:
    flavours = {"-lmi": "vllm", "-tensorrtllm": "trtllm", "-neuronx": "neuronx", "-deepspeed": "deepspeed"}
    return next((("lmi", flavour) for mark, flavour in flavours.items() if mark in tag), None)


def _listed_version(line: Line, tag: str) -> str:
    mark = {"server": r"-v([\d.]+)$", "neuronx": r"optimum([\d.]+)-"}.get(line[1], r"^([\d.]+)")
    found = re.search(mark, tag)
    return found[1] if found else tag


def _unknown(rows: list[Row], listed: Iterator[Row]) -> list[Row]:
    """Return the listed rows that the SDK lacks; of the others, take what they bundle and their CUDA."""
    known = {_key(row): row for row in rows}
    lacking = []
    for row in listed:
        if _key(row) in known:
            known[_key(row)].update({name: row[name] for name in ("bundles", "cuda") if row[name] is not None})
        else:
            lacking.append(row)
    return lacking


# ---------------------------------------------------------------------- rows


def _build(
    line: Line,
    version: str,
    repository: str,
    tag: str,
    missing: list[str],
    *,
    source: str,
    date: str,
    fact: Row | None = None,
) -> Row:
    lmi = _lmi_number(tag) if line[0] == "lmi" else None
    version = tag.removesuffix(f"-{_cuda(tag)}") if line[0] == "lmi" else version
    return {
        "family": line[0],
        "flavour": line[1],
        "version": version,
        "lmi": lmi,
        "repository": repository,
        "tag": tag,
        "cuda": _cuda(tag) or str((fact or {}).get("cuda", "")) or None,
        "bundles": _bundles(line, tag, lmi, fact or {}),
        "documented": _is_read(line, version),
        "missing_regions": [*missing],
        "source": source,
        "date": date,
    }


def _lmi_number(tag: str) -> int | None:
    if found := re.search(r"-lmi(\d+)\.", tag):
        return int(found[1])
    minor = int(tag.split(".")[1])
    return minor - MINOR_LESS_LMI if FIRST_LMI <= minor <= LAST_ONE_BUILD else None


def _cuda(tag: str) -> str | None:
    found = re.search(r"\bcu\d+", tag)
    return found[0] if found else None


def _bundles(line: Line, tag: str, lmi: int | None, fact: Row) -> str | None:
    """Return the inference library inside, where the version of the build is not its own."""
    if line == ("lmi", "vllm"):
        listed = re.search(r"vLLM [\w.]+", str(fact.get("engine")))
        return f"vLLM {VLLM_OF_LMI[lmi]}" if lmi in VLLM_OF_LMI else listed[0] if listed else None
    if line == ("vllm", "neuronx"):
        return f"vLLM {tag.partition('-')[0]}"
    if line[1] == "server":
        return f"{fact['framework']} {str(fact['version']).partition('+')[0]}" if fact else None
    found = re.search(r"-(tensorrtllm|neuronx-sdk|deepspeed)([\d.]+\d)", tag)
    return f"{BUNDLED[found[1]]} {found[2]}" if found and line[0] == "lmi" else None


def _is_read(line: Line, version: str) -> bool:
    bounds = READ.get(line)
    return bounds is not None and bounds[0] <= _numbers(version) <= bounds[1]


def _numbers(version: object) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", str(version)))


# ------------------------------------------------------------------ the file


def _previous() -> list[Row]:
    rows = json.loads(OUTPUT.read_text(encoding="utf-8"))["rows"] if OUTPUT.exists() else []
    return [_row(row) for row in rows]


def merged(before: list[Row], after: list[Row]) -> list[Row]:
    """Return the rows sorted: what reads as before keeps its source and date, what is no longer listed stays."""
    rows = {_key(row): row for row in before if "flavour" in row} | {_key(row): row for row in after}
    for old in before:
        row = rows[_key(old)]
        row["bundles"] = row.get("bundles") or old.get("bundles")
        if all(
            old.get(name, value) == value for name, value in row.items() if name not in {"source", "date", "bundles"}
        ):
            row.update({"source": old["source"], "date": old["date"]})
    return sorted(rows.values(), key=lambda row: (str(row["family"]), str(row["flavour"]), _numbers(row["version"])))


def _key(row: Row) -> tuple[str, str]:
    return str(row["repository"]), str(row["tag"])


def document(accounts: Mapping[str, str], rows: list[Row]) -> str:
    """Return the data file's text, one row a line."""
    lines = ",\n".join(f"  {json.dumps(row, ensure_ascii=False)}" for row in rows)
    head = f'"accounts": {json.dumps(accounts)},\n"dns_suffixes": {json.dumps(DNS_SUFFIXES)},\n'
    return f'{{\n{head}"rows": [\n{lines}\n]\n}}\n'


def _row(value: Json) -> Row:
    if not isinstance(value, dict):
        raise TypeError(f"expected a JSON object, not {value!r}")
    return value


if __name__ == "__main__":
    main()
