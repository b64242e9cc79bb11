"""Renews a table of the catalog from what publishes its facts: shows what changes, and writes it with `--write`.

    python scripts/renew.py TABLE [--write] [--date DATE] [--from NAME=FILE]

| table | is asked |
|---|---|
| accelerators | the CUDA driver of this machine's GPUs |
| engine_choice | images.json; renew that first |
| licences | the model cards of the hub |
| models | the hub's config.json of each model that asks for no licence; `add_models.py` adds models |
| neuron | optimum-neuron on PyPI |
| optimizations | vllm on PyPI, botocore |
| parsers | vllm and sglang on PyPI |
| regions, replacement | cfn-lint on PyPI, which ships the CloudFormation registry and the types of Hosting by region |
| symptoms | vllm on PyPI |

A row that its source tells gets the day and the source's version. What a source contradicts is listed and kept, with
exit code 1; what it does not tell keeps its date. NAME is a package, `hub` (a JSON of cards by model) or `device` (a
JSON of multiprocessors by the driver's name of a GPU); `python scripts/renew.py device` prints that of this machine.
"""

from __future__ import annotations

import argparse
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # of `scripts`, which no package installs

from scripts.renewal.rows import renewed  # noqa: E402 (found by the line above)
from scripts.renewal.sources import FETCHED, Sources, device_multiprocessors  # noqa: E402
from scripts.renewal.tables import TABLES  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scripts.renewal.rows import Renewal

DATA: Final = ROOT / "packages" / "seatrial-base" / "seatrial_base" / "catalog" / "data"
CONTRADICTED: Final = 1


def main(arguments: Sequence[str], *, data: Path = DATA) -> int:
    """Renew a table, tell what changed, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=[*TABLES, "device"])
    parser.add_argument("--write", action="store_true", help="write the table")
    parser.add_argument("--date", default=f"{datetime.now(UTC).date()}", help="the day of the reading")
    parser.add_argument("--from", dest="given", action="append", default=[], metavar="NAME=FILE", help="a file to read")
    asked = parser.parse_args(arguments)
    if asked.table == "device":
        sys.stdout.write(f"{json.dumps(device_multiprocessors())}\n")
        return 0
    table = TABLES[asked.table]
    given = {name: Path(file) for name, _, file in (each.partition("=") for each in asked.given)}
    file = data / table.file
    found = renewed(file.read_text("utf-8"), table, Sources(given, FETCHED), asked.date)
    for line in _lines(found):
        sys.stdout.write(f"{line}\n")
    if asked.write:
        file.write_text(found.text, "utf-8")
    return CONTRADICTED if found.denied else 0


def _lines(found: Renewal) -> list[str]:
    return [
        f"{found.confirmed} rows read as before",
        *(f"changed: {line}" for line in found.changes),
        *(f"contradicted, kept: {line}" for line in found.denied),
        *(f"not told, kept: {count} of {source}" for source, count in found.untold.items()),
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
