"""Converts the configurations of a corpus to every container, and lints what is written."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from seatrial_base.catalog.engine_versions import EngineName, version_text
from seatrial_base.errors import SeatrialError
from seatrial_lint.convert import convert_config, default_dialect
from seatrial_lint.engines.properties import write_env
from seatrial_lint.lint.lint import Given, lint_sources
from seatrial_lint.lint.read import read_content, read_path
from seatrial_lint.lint.source import ConfigSource
from seatrial_lint.lint.target import newest_build

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

OLDEST: dict[EngineName, str] = {"lmi": "lmi9", "tgi": "0.9.3", "vllm": "0.8.4", "sglang": "0.5.5"}
"""The oldest version of each container that is configured through the environment and of which sources were read."""


@dataclass(frozen=True, slots=True)
class ConversionMiss:
    """A configuration that was written and has a finding.

    Attributes:
        case: Where it comes from.
        target: What it was written for.
        finding: What the lint says.
    """

    case: str
    target: str
    finding: str


def convert_all(cases: Iterable[Mapping[str, object]], *, verbose: bool) -> int:
    """Convert each case and print what the lint says of the results; return the exit status."""
    began_s, counts = time.perf_counter(), Counter[str]()
    misses = [miss for case in cases for miss in _misses(case, counts)]
    for miss in misses if verbose else misses[:40]:
        print(f"{miss.case} -> {miss.target}\n    {miss.finding}")
    told = ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))
    print(f"{told}; {len(misses)} findings of errors and warnings; {time.perf_counter() - began_s:.1f} s")
    return 1 if misses else 0


def _misses(case: Mapping[str, object], counts: Counter[str]) -> Iterator[ConversionMiss]:
    for source in _sources(case):
        for engine in get_args(EngineName):
            newest = version_text(engine, newest_build(default_dialect(engine, None)))
            for version in dict.fromkeys((newest.rpartition(" ")[2], OLDEST[engine])):
                for finding in converted_findings(source, engine, version, case, counts):
                    yield ConversionMiss(str(case["id"]), f"{engine} {version}", finding)


def converted_findings(
    source: ConfigSource, engine: EngineName, version: str, case: Mapping[str, object], counts: Counter[str]
) -> Iterator[str]:
    """Yield what the lint says of a configuration that was converted for a version of a container."""
    given: Mapping[str, object] = {name: case[name] for name in ("engine", "version")}
    try:
        dialect = default_dialect(engine, version)
        done = convert_config(source, dialect, version, **given)  # type: ignore[arg-type]  # of a file
    except (SeatrialError, ValueError):
        counts["refused"] += 1
        return
    counts["with losses" if done.lost else "whole"] += 1
    report = lint_sources(read_content(write_env(done.rendered.env).encode(), "container.env"), Given(engine, version))
    yield from (str(one) for one in report.findings if one.severity != "note")


def _sources(case: Mapping[str, object]) -> list[ConfigSource]:
    files = case["files"]
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items() if isinstance(files, dict) else ():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        found = list(read_path(Path(folder)))
    return [one for one in found if isinstance(one, ConfigSource) and one.kind != "endpoint config"]
