from __future__ import annotations

from seatrial_base.catalog.resource_types import availability


def test_inference_components_are_not_in_every_region() -> None:
    regions = availability().regions
    assert {"us-east-1", "eu-west-1", "ap-northeast-1"} <= set(regions)
    assert not any(region.startswith("cn-") for region in regions)


def test_the_row_has_its_source_and_date() -> None:
    row = availability()
    assert (row.resource_type, row.date) == ("AWS::SageMaker::InferenceComponent", "2026-10-20")
    assert row.source.startswith("cfn-lint 1.58.0, ")
    assert row.regions == tuple(sorted(row.regions))
