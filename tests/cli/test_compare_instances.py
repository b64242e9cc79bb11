"""`seatrial compare-instances` as a user runs it."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

from tests.cli.conftest import SPECS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Seatrial

COMMAND = ("compare-instances", SPECS[1], "-e", "dev")


def test_text_says_what_the_numbers_are(seatrial: Seatrial) -> None:
    done = seatrial(*COMMAND)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(
        "Instance types for llama-2-7b-chat in dev\nPredicted, not measured: 256 + 256 tokens, lmi "
    )
    wide = seatrial(*COMMAND, "--wide")
    assert "\na: throughput ±" not in done.stdout
    assert "\na: throughput ±" in wide.stdout
    for instance_type in ("ml.g5.2xlarge", "ml.g5.12xlarge", "ml.g6e.2xlarge"):
        assert f"{instance_type} " in done.stdout
        assert f"\n{instance_type} " in wide.stdout


def test_json_and_csv_hold_the_same_rows_cheapest_token_first(seatrial: Seatrial) -> None:
    document = json.loads(seatrial(*COMMAND, "--format", "json").stdout)
    rows = list(csv.DictReader(io.StringIO(seatrial(*COMMAND, "--format", "csv").stdout)))
    assert document["predicted"] is True
    assert [row["instance_type"] for row in rows] == [row["instance_type"] for row in document["instances"]]
    prices = [float(row["usd_per_million_output_tokens"]) for row in rows]
    assert prices == sorted(prices)
    assert {row["band"] for row in rows} <= {"measured", "extrapolated", "assumed"}


def test_a_terminal_without_unicode_gets_ascii(seatrial: Seatrial) -> None:
    done = seatrial(*COMMAND, "--wide", env={"PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "\na: throughput +/-" in done.stdout


def test_a_wrong_spec_is_one_message_with_every_problem(seatrial: Seatrial, project: Path) -> None:
    (project / "endpoints" / "bad.yaml").write_text("name: bad\nmodel: {hub_id: a/b}\nworkload: {input_tokens: many}\n")
    done = seatrial("compare-instances", "endpoints/bad.yaml", "-e", "dev")
    assert (done.returncode, done.stdout) == (2, "")
    assert "workload.input_tokens: SEA105" in done.stderr
    assert "workload.output_tokens: SEA106" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unknown_model_is_one_message(seatrial: Seatrial, project: Path) -> None:
    spec = project / SPECS[1]
    spec.write_text(spec.read_text().replace("meta-llama/Llama-2-7b-chat-hf", "nobody/nothing"))
    done = seatrial(*COMMAND)
    assert (done.returncode, done.stdout) == (2, "")
    assert "SEA201: the architecture of nobody/nothing is unknown" in done.stderr
    assert "Traceback" not in done.stderr
