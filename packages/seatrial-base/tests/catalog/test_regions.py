from __future__ import annotations

from datetime import date

from seatrial_base.catalog.resource_types import availability


def test_inference_components_are_not_in_every_region() -> None:
    regions = availability().regions
    assert {"us-east-1", "eu-west-1", "ap-northeast-1"} <= set(regions)
    assert not any(region.startswith("cn-") for region in regions)


def test_the_row_has_its_source_and_date() -> None:
    row = availability()
    assert row.resource_type == "AWS::SageMaker::InferenceComponent"
    assert date.fromisoformat(row.date)
    assert row.source.startswith("cfn-lint 1.")
    assert row.regions == tuple(sorted(row.regions))
