"""The generated parts of the documentation are current, and say what the models say."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import build_docs

DOCS = Path(__file__).parents[2] / "docs"


def test_every_page_is_current() -> None:
    assert [path.name for path in build_docs.stale_pages()] == [], "python scripts/build_docs.py"


@pytest.mark.parametrize(
    "row",
    [
        "| `requests_per_second` | number | none | above 0; at most 1000000 | Requests per second at peak. |",
        "| `error_rate` | number | `0.01` | at least 0; below 1 | Largest share of requests that may fail. |",
        "| `mode` | `rollback` or `report` or `off` | `rollback` |  | Action after a failed trial. |",
        "| `tags` | mapping of names to text | empty |  | Tags of every resource. |",
        "### `slo.ttft_ms`, `slo.tpot_ms`, `slo.e2e_latency_ms`",
        "| `SEA108` | two fields contradict each other |",
    ],
)
def test_a_field_has_type_default_bounds_and_description(row: str) -> None:
    assert row in (DOCS / "spec.md").read_text(encoding="utf-8").splitlines()


def test_a_page_without_its_marks_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "spec.md"
    page.write_text("# Spec\n", encoding="utf-8")
    with pytest.raises(ValueError, match="a page must hold <!-- begin endpoint fields: "):
        build_docs.built(page)
