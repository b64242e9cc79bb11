"""Writes the catalog's container images from the SageMaker Python SDK's own tables, so that nobody edits them by hand.

    python scripts/build_images.py --date DATE [--dlc CHECKOUT]

Needs the extra `sagemaker` (`pip install 'seatrial[sagemaker]'`); its tables are read as files, nothing of it is
imported. The SDK knows one LMI build for each DJL version; the others come from the container list in CHECKOUT, a
checkout of https://github.com/aws/deep-learning-containers. DATE is the day of the reading. Which tables are read, and
which versions people have read the sources of, is in `scripts/facts/image_lines.json`.

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

OUTPUT = (
    Path(__file__).resolve().parents[1]
    / "packages"
    / "seatrial-base"
    / "seatrial_base"
    / "catalog"
    / "data"
    / "images.json"
)
FACTS = Path(__file__).resolve().parent / "facts" / "image_lines.json"
SDK_TABLES = "sagemaker/core/image_uri_config"
LIST = "docs/src/data"
LIST_REGIONS = "docs/reference/region_availability.md"
BUNDLED = {"tensorrtllm": "TensorRT-LLM", "neuronx-sdk": "Neuron SDK", "deepspeed": "DeepSpeed"}
LMI_BY_MINOR = {minor: minor - 18 for minor in range(25, 36)}  # versions of DJL with one LMI build each
COPIED = ("dns_suffixes", "algorithm_accounts", "upstream", "other_repositories")
MOVING = re.compile(r"-cuda-v\d+$")
NOT_COMPARED = {"source", "date", "bundles", "missing_regions"}


def main() -> None:
    """Read the tables, write the data file, print what was written."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--date", required=True, help="the day of the reading")
    parser.add_argument("--dlc", type=Path, help="a checkout of aws/deep-learning-containers")
    parser.add_argument("--dlc-date", help="day of its last change; the day of the reading by default")
    given = parser.parse_args()
    facts = _row(json.loads(FACTS.read_text(encoding="utf-8")))
    tables, source = sdk_tables(facts)
    accounts = sdk_accounts(tables, facts)
    rows = list(sdk_rows(tables, facts, accounts, {"source": source, "date": given.date}))
    if given.dlc is not None:
        rows += lacking(rows, list_rows(given.dlc, facts, accounts, given.dlc_date or given.date))
    before = _row(json.loads(OUTPUT.read_text(encoding="utf-8"))) if OUTPUT.exists() else {"accounts": {}, "rows": []}
    rows = merged(before, rows)
    OUTPUT.write_text(document(accounts, facts, rows), encoding="utf-8")
    counts = Counter(f"{row['family']}/{row['flavour']}" for row in rows)
    print(f"{OUTPUT.name}: {len(rows)} builds: {', '.join(f'{count} {line}' for line, count in counts.items())}")


def sdk_tables(facts: Row) -> tuple[dict[str, Row], str]:
    """Return the SDK's table of each line by its name, and what they were read from."""
    try:
        core = metadata.distribution("sagemaker-core")
    except metadata.PackageNotFoundError:
        sys.exit("the SageMaker SDK is not installed: pip install 'seatrial[sagemaker]'")
    folder = Path(str(core.locate_file(SDK_TABLES)))
    names = [str(line["sdk"]) for line in _rows(facts["lines"])]
    return {name: _table(folder / f"{name}.json") for name in names}, (
        f"sagemaker-core {core.version} wheel {SDK_TABLES}/*.json"
    )


def _table(path: Path) -> Row:
    table = _row(json.loads(path.read_text(encoding="utf-8")))
    return _row(table.get("inference", table))


def sdk_accounts(tables: Mapping[str, Row], facts: Row) -> dict[str, str]:
    """Return the registry account of each region with a known DNS suffix; every table must say the same."""
    found: dict[str, set[str]] = {}
    for table in tables.values():
        for fact in _row(table["versions"]).values():
            for region, account in _row(_row(fact)["registries"]).items():
                found.setdefault(region, set()).add(str(account))
    if mixed := {region: each for region, each in found.items() if len(each) > 1}:
        sys.exit(f"regions with several accounts: {mixed}")
    unverified = tuple(map(str, _list(facts["unverified_regions"])))
    return {region: found[region].pop() for region in sorted(found) if not region.startswith(unverified)}


def sdk_rows(tables: Mapping[str, Row], facts: Row, accounts: Mapping[str, str], read: Row) -> Iterator[Row]:
    """Yield a row for each version of each table."""
    for line in _rows(facts["lines"]):
        name = str(line["sdk"])
        for version, value in _row(tables[name]["versions"]).items():
            fact = _row(value)
            tag = sdk_tag(name, fact)
            if not MOVING.search(tag):
                missing: list[Json] = [*sorted(set(accounts) - set(_row(fact["registries"])))]
                place: Row = {"repository": fact["repository"], "missing_regions": missing, **read}
                yield _build(line, version, tag, place, _bundles(line, tag, {}, facts))


def sdk_tag(name: str, fact: Row) -> str:
    """Compose the tag of a version as the SDK does; a test compares it with the SDK's own answer."""
    prefix, containers = str(fact["tag_prefix"]), fact.get("container_version")
    if not isinstance(containers, dict):
        return prefix
    container = str(containers.get("gpu") or next(iter(containers.values())))
    if fact.get("processor_in_tag") is False:
        return f"{prefix}-{container}"
    processor = "neuronx" if name.endswith("neuronx") else "gpu"
    middle = [str(_list(fact[key])[0]) for key in ("py_versions", "sdk_versions") if key in fact]
    return "-".join([prefix, processor, *middle, container])


def list_rows(checkout: Path, facts: Row, accounts: Mapping[str, str], date: str) -> Iterator[Row]:
    """Yield a row for each SageMaker image of the container list."""
    table = (checkout / LIST_REGIONS).read_text(encoding="utf-8").split("\n## ")[1]
    missing: list[Json] = [*sorted(set(accounts) - set(re.findall(r"\| ([a-z-]+\d) \|", table)))]
    source = f"github aws/deep-learning-containers {LIST}/*/*.yml and {LIST_REGIONS}"
    for line in _rows(facts["lines"]):
        folder = str(line["list"])
        for path in sorted((checkout / LIST / folder).glob("*.yml")):
            fact = _row(yaml.safe_load(path.read_text(encoding="utf-8")))
            tag, mark = str(_list(fact["tags"])[0]), str(line["mark"])
            if fact["platform"] == "sagemaker" and mark in tag and not MOVING.search(tag):
                place: Row = {"repository": fact.get("ecr_repository", folder), "missing_regions": missing}
                place |= {"source": source, "date": date}
                row = _build(line, _listed_version(line, tag), tag, place, _bundles(line, tag, fact, facts))
                yield row | {"cuda": row["cuda"] or fact.get("cuda")}


def _listed_version(line: Row, tag: str) -> str:
    mark = {"server": r"-v([\d.]+)$", "neuronx": r"optimum([\d.]+)-"}.get(str(line["flavour"]), r"^([\d.]+)")
    found = re.search(mark, tag)
    return found[1] if found else tag


def lacking(rows: list[Row], listed: Iterator[Row]) -> list[Row]:
    """Return the listed rows that the SDK lacks; of the others, take what they bundle and their CUDA."""
    known, new = {_key(row): row for row in rows}, []
    for row in listed:
        if _key(row) in known:
            known[_key(row)].update({name: row[name] for name in ("bundles", "cuda") if row[name] is not None})
        else:
            new.append(row)
    return new


def _build(line: Row, version: str, tag: str, place: Row, bundles: str | None) -> Row:
    cuda = re.search(r"\bcu\d+", tag)
    is_lmi = line["family"] == "lmi"
    version = tag.removesuffix(f"-{cuda[0]}" if cuda else "") if is_lmi else version
    return {
        "family": line["family"],
        "flavour": line["flavour"],
        "version": version,
        "lmi": _lmi_number(tag) if is_lmi else None,
        "repository": place["repository"],
        "tag": tag,
        "cuda": cuda[0] if cuda else None,
        "bundles": bundles,
        "documented": _is_read(line, version),
        "missing_regions": place["missing_regions"],
        "source": place["source"],
        "date": place["date"],
    }


def _lmi_number(tag: str) -> int | None:
    if found := re.search(r"-lmi(\d+)\.", tag):
        return int(found[1])
    return LMI_BY_MINOR.get(int(tag.split(".")[1]))


def _bundles(line: Row, tag: str, fact: Row, facts: Row) -> str | None:
    """Return the inference library inside, where the version of the build is not its own."""
    if line["sdk"] == "djl-lmi":
        read = _row(facts["vllm_of_lmi"]).get(str(_lmi_number(tag)))
        listed = re.search(r"vLLM [\w.]+", str(fact.get("engine")))
        return f"vLLM {read}" if read else listed[0] if listed else None
    if line["sdk"] == "huggingface-vllm-neuronx":
        return f"vLLM {tag.partition('-')[0]}"
    if line["flavour"] == "server":
        return f"{fact['framework']} {str(fact['version']).partition('+')[0]}" if fact else None
    found = re.search(r"-(tensorrtllm|neuronx-sdk|deepspeed)([\d.]+\d)", tag)
    return f"{BUNDLED[found[1]]} {found[2]}" if found and line["family"] == "lmi" else None


def _is_read(line: Row, version: str) -> bool:
    if line["read"] is None:
        return False
    first, last = (_numbers(bound) for bound in _list(line["read"]))
    return first <= _numbers(version) and _numbers(version)[: len(last)] <= last


def _numbers(version: Json) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", str(version)))


def merged(before: Row, after: list[Row]) -> list[Row]:
    """Return the rows sorted: what reads as before keeps its source and date, what is no longer listed stays.

    A region that no build was listed for before makes no difference.
    """
    rows, known = {_key(row): row for row in after}, set(_row(before["accounts"]))
    for old in _rows(before["rows"]):
        row = rows.setdefault(_key(old), old)
        row.update({name: row[name] or old[name] for name in ("bundles", "cuda")})
        same_regions = known.isdisjoint(set(_list(row["missing_regions"])) ^ set(_list(old["missing_regions"])))
        if same_regions and all(old[name] == value for name, value in row.items() if name not in NOT_COMPARED):
            row.update({"source": old["source"], "date": old["date"]})
    return sorted(rows.values(), key=lambda row: (str(row["family"]), str(row["flavour"]), _numbers(row["version"])))


def _key(row: Row) -> tuple[str, str]:
    return str(row["repository"]), str(row["tag"])


def document(accounts: Mapping[str, str], facts: Row, rows: list[Row]) -> str:
    """Return the data file's text, one row a line: the builds, and what the facts have beside them."""
    parts = {"accounts": dict(accounts), **{name: facts[name] for name in COPIED}, "rows": rows}
    return "{\n" + ",\n".join(f'"{name}": {_lines(part)}' for name, part in parts.items()) + "\n}\n"


def _lines(part: object) -> str:
    if not isinstance(part, list):
        return json.dumps(part)
    return "[\n" + ",\n".join(f"  {json.dumps(row, ensure_ascii=False)}" for row in part) + "\n]"


def _row(value: Json) -> Row:
    if not isinstance(value, dict):
        raise TypeError(f"expected a JSON object, not {value!r}")
    return value


def _list(value: Json) -> list[Json]:
    if not isinstance(value, list):
        raise TypeError(f"expected a JSON array, not {value!r}")
    return value


def _rows(value: Json) -> list[Row]:
    return [_row(item) for item in _list(value)]


if __name__ == "__main__":
    main()
