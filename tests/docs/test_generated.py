"""The generated parts of the documentation are current, and say what the models say."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import build_docs

DOCS = Path(__file__).parents[2] / "docs"
SPEC = "reference/spec.md"


def test_every_page_is_current() -> None:
    assert [path.name for path in build_docs.stale_pages()] == [], "python scripts/build_docs.py"


@pytest.mark.parametrize(
    ("page", "row"),
    [
        (SPEC, "| `requests_per_second` | number | none | above 0; at most 1000000 | Requests per second at peak. |"),
        (SPEC, "| `error_rate` | number | `0.01` | at least 0; below 1 | Largest share of requests that may fail. |"),
        (SPEC, "| `mode` | `rollback` or `report` or `off` | `rollback` |  | Action after a failed trial. |"),
        (SPEC, "### `slo.ttft_ms`, `slo.tpot_ms`, `slo.e2e_latency_ms`"),
        (
            "reference/environment.md",
            "| `tags` | mapping of names to text | empty |  | Tags of every resource; keys that begin with `aws:` or "
            "`seatrial:` are reserved. |",
        ),
        ("reference/rules.md", "| `SEA108` | error | two fields contradict each other |"),
        ("reference/trial-result.md", "| `levels` | list of [LevelResult](#levelresult) |"),
        ("reference/cli.md", "### seatrial trial watch"),
        ("reference/cli.md", "| `--form simulation\\|closed` | `simulation` |"),
        ("reference/constructs.md", "| `endpoint_name` | `str` | **required** |"),
        ("reference/engine-choice.md", "| excludes | TGI | quantization: mxfp4, nvfp4, int8, w8a16, int4 |"),
    ],
)
def test_what_the_code_defines_has_its_row(page: str, row: str) -> None:
    lines = (DOCS / page).read_text(encoding="utf-8").splitlines()
    assert any(line.startswith(row) for line in lines)


def test_a_page_without_its_marks_is_refused(tmp_path: Path) -> None:
    page = tmp_path / SPEC
    page.parent.mkdir()
    page.write_text("# Spec\n", encoding="utf-8")
    with pytest.raises(ValueError, match="a page must hold <!-- begin endpoint fields: "):
        build_docs.built(page)
