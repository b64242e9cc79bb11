from __future__ import annotations

from pathlib import Path

from seatrial.documents.plan import Plan
from seatrial.specs.endpoint import ServingOverrides
from seatrial_base.catalog.engine_options import ENGINE_OPTIONS, options_decided_by
from seatrial_lint.engines.config import ServingConfig

ROOT = Path(__file__).parents[2]
OF_A_CONTAINER = {"runtime", "batcher", "compilation", "hub_token"}  # rows that no field of a configuration says


def test_the_rows_are_the_fields_of_a_configuration() -> None:
    names = {option.name for option in ENGINE_OPTIONS.rows}
    assert names - OF_A_CONTAINER == set(ServingConfig.model_fields) - {"extra"}


def test_what_the_planner_decides_a_spec_may_fix_and_a_plan_holds() -> None:
    assert set(options_decided_by("planner")) <= set(ServingOverrides.model_fields) & set(Plan.model_fields)


def test_what_a_spec_alone_decides_is_no_field_of_a_plan() -> None:
    decided = set(options_decided_by("spec"))
    assert decided <= set(ServingOverrides.model_fields)
    assert not decided & set(Plan.model_fields) - {"speculative_decoding"}


def test_an_option_that_a_spec_alone_decides_is_five_files() -> None:
    folders = ("seatrial", "constructs", "stacks", "packages", "docs")
    files = (file for folder in folders for kind in ("py", "json", "md") for file in (ROOT / folder).rglob(f"*.{kind}"))
    naming = (file.relative_to(ROOT).as_posix() for file in files if "enforce_eager" in file.read_text("utf-8"))
    assert sorted(name for name in naming if "/tests/" not in name and "docs/how-to/" not in name) == [
        "docs/reference/spec.md",
        "docs/schema/endpoint.schema.json",
        "docs/schema/product.schema.json",
        "packages/seatrial-base/seatrial_base/catalog/data/engine_options.json",
        "packages/seatrial-lint/seatrial_lint/engines/engine_options.py",
    ]
