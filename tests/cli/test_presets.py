"""`seatrial presets`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Seatrial


def test_presets_are_listed_by_model_and_instance_type(seatrial: Seatrial) -> None:
    shown = seatrial("presets", "list", "qwen3-32b", "--instance-type", "g5", "--wide")
    text = shown.stdout.splitlines()
    rows = json.loads(
        seatrial("presets", "list", "Qwen3-32B", "--instance-type", "ml.g5.12xlarge", "--format", "json").stdout
    )

    assert text[0].split() == ["name", "tok/s", "$/1M", "tokens", "in", "flight", "SLO", "provenance", "band"]
    assert len(text) - 1 >= len(rows) == 3
    assert {row["instance_type"] for row in rows} == {"ml.g5.12xlarge"}
    assert {row["model"] for row in rows} == {"Qwen/Qwen3-32B"}
    assert {row["provenance"] for row in rows} >= {"published"}


def test_the_list_fits_80_columns(seatrial: Seatrial) -> None:
    done = seatrial("presets", "list")
    assert done.stdout.splitlines()[0].split() == ["name", "tok/s", "$/1M"]
    assert max(map(len, (*done.stdout.splitlines(), *done.stderr.splitlines()))) <= 80


def test_a_preset_is_shown_as_a_spec_that_validates(seatrial: Seatrial, project: Path) -> None:
    shown = seatrial("presets", "show", "qwen3-32b.g5.12xlarge.eagle3.published").stdout
    (project / "endpoints" / "qwen3-32b.yaml").write_text(shown, encoding="utf-8")

    assert "eagle3" in shown
    assert seatrial("validate", "endpoints/qwen3-32b.yaml", "-e", "dev").returncode == 0


def test_an_unknown_preset_is_told_with_those_alike(seatrial: Seatrial) -> None:
    done = seatrial("presets", "show", "qwen3-32b.g5.12xlarge.eagle4.published")

    assert done.returncode == 2
    assert "SEA250" in done.stderr
    assert "qwen3-32b.g5.12xlarge.eagle3.published" in done.stderr


def test_a_result_that_is_not_there_writes_nothing(seatrial: Seatrial, project: Path) -> None:
    done = seatrial("presets", "add", "nowhere.json")

    assert done.returncode != 0
    assert "SEA501" in done.stderr
    assert not (project / "presets.yaml").exists()
