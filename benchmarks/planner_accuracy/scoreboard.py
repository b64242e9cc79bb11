"""The public scoreboard `docs/explanation/accuracy.md`: written wholly by this module from the committed results.

    python -m benchmarks.planner_accuracy.scoreboard [--write]    # or: make scoreboard

It fits nothing and asks no tool anything: `validate.sh` makes the results of left-out rows, `run_peers.sh` the peers'.
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from benchmarks.planner_accuracy import accuracy, compare
from benchmarks.planner_accuracy.cells import PUBLISHED, read_published
from benchmarks.planner_accuracy.compare import markdown
from benchmarks.planner_accuracy.judged import LEFT_OUT, read_judged
from benchmarks.planner_accuracy.questions import ANSWERS, FOLDER, MEASURED, read_answers, read_csv
from benchmarks.planner_accuracy.results import read_origin

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAGE = FOLDER.parents[1] / "docs" / "explanation" / "accuracy.md"
TEXT = FOLDER / "scoreboard.md"
COMMAND = "python -m benchmarks.planner_accuracy.scoreboard --write"
RATES, MEASURED_RATES = FOLDER / "arrivals.csv", FOLDER / "measured_rates.csv"
_MOST_UTILIZATION = 0.8  # of what a copy answers at most
_METRICS = {
    "ttft_p50_error": "TTFT p50",
    "ttft_p95_error": "TTFT p95",
    "e2e_p50_error": "end to end p50",
    "e2e_p95_error": "end to end p95",
}
_PUBLISHED_ROWS = "JumpStart benchmarking article, AWS Machine Learning Blog"


@dataclass(frozen=True, slots=True)
class Peer:
    """A public tool that was asked about the same rows.

    Attributes:
        name: The tool.
        version: As `requirements/` has it.
        asked_on: The day of its answers, ISO 8601.
        file: Of its answers in `predictions/measured/`.
    """

    name: str
    version: str
    asked_on: str
    file: str


PEERS = (
    Peer("aiconfigurator", "0.12.0, the newest on PyPI on 2026-11-26", "2026-11-22", "aiconfigurator"),
    Peer("GenZ (genz-llm)", "0.0.16", "2026-11-22", "genz"),
    Peer("llm-analysis", "0.2.2", "2026-11-22", "llm-analysis"),
    Peer("roofline", "`roofline.py` of this repository", "2026-11-22", "roofline"),
)


def main() -> None:
    """Print the page, or with `--write` write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help=f"write docs/explanation/{PAGE.name}")
    if parser.parse_args().write:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        print(page())


def page() -> str:
    """Return the page: the text of `scoreboard.md`, with the tables that it names in double braces.

    Raises:
        KeyError: The text names a table that there is none of.
    """
    rows = read_judged() if LEFT_OUT.exists() else ()
    made_on, origin = read_origin()
    text = TEXT.read_text(encoding="utf-8")
    parts = {name: table(rows) for name, table in accuracy.TABLES.items() if f"{{{{{name}}}}}" in text}
    parts |= {
        "command": COMMAND,
        "date": made_on,
        "origin": f"constants {origin.constants}, kernels {origin.operators}, rows {origin.rows}",
        "sources": sources(),
        "asked peers": asked_peers(),
        "rates": at_rates(),
        "TGI": compare.tables(),
    }
    for name, part in parts.items():
        text = text.replace(f"{{{{{name}}}}}", part)
    if "{{" in text:
        raise KeyError(text[text.index("{{") :].partition("}}")[0][2:])
    return text


def sources() -> str:
    """Return every file of measured rows: rows, engines, instance types, and where they were published."""
    head = ("file", "what", "engines", "published at", "rows", "models", "types")
    lines = [_source(path) for path in (*sorted(MEASURED.glob("*.csv")), MEASURED_RATES)]
    cells = read_published()
    types = {cell.instance_type for cell in cells}
    lines.append(
        [
            PUBLISHED.stem,
            f"{_PUBLISHED_ROWS}, January 2024",
            "TGI 1.x",
            "the article",
            *map(str, (len(cells), 1, len(types))),
        ]
    )
    return markdown(head, 4, lines)


def at_rates() -> str:
    """Return the mean errors of latencies at given rates, up to four fifths of saturation, from `arrivals.csv`."""
    rows = [row for row in read_csv(RATES) if float(row["utilization"]) <= _MOST_UTILIZATION]
    names = [name for name in rows[0] if name.endswith("_error")]
    head = ("model", "instance type", "workload", "levels", *(_METRICS[name] for name in names))
    groups: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for row in rows:
        groups.setdefault((row["model"], row["instance_type"], row["workload"]), []).append(row)
    lines = [
        [*key, str(len(own)), *(f"{100 * fmean(abs(float(row[name])) for row in own):.1f} %" for name in names)]
        for key, own in groups.items()
    ]
    return markdown(head, 3, lines)


def asked_peers() -> str:
    """Return every peer: its version, when it was asked, and how many rows it answered."""
    head = ("tool", "version", "asked on", "rows answered")
    return markdown(head, 3, [[peer.name, peer.version, peer.asked_on, _answered(peer)] for peer in PEERS])


def _source(file: Path) -> list[str]:
    rows = read_csv(file)
    what = ", ".join(dict.fromkeys(row["source"] for row in rows))
    engines = "; ".join(f"{engine} {', '.join(_versions(rows, engine))}".strip() for engine in _engines(rows))
    where = ", ".join(dict.fromkeys(_repository(row["where"]) for row in rows))
    counts = len(rows), len({row["model"] for row in rows}), len({row["instance_type"] for row in rows})
    return [file.stem, what, engines, where, *map(str, counts)]


def _engines(rows: list[dict[str, str]]) -> Iterator[str]:
    yield from (engine for engine, _ in Counter(row["engine"] for row in rows).most_common())


def _versions(rows: list[dict[str, str]], engine: str) -> list[str]:
    return sorted({row["engine_version"] for row in rows if row["engine"] == engine and row["engine_version"]})


def _repository(where: str) -> str:
    """Return `github.com/OWNER/NAME@COMMIT` of where a row was published."""
    commit = where.rpartition("@")[2].partition(" ")[0]
    return f"{where.partition(':')[0]}@{commit}"


def _answered(peer: Peer) -> str:
    found = read_answers(ANSWERS / f"{peer.file}.csv")
    return f"{sum(figures.e2e_mean_ms is not None for figures in found.values()):,} of {len(found):,}"


if __name__ == "__main__":
    main()
