from __future__ import annotations

import pytest

from seatrial_base.catalog.instances import INSTANCES, find_instance


def test_knows_the_instance_types_of_the_published_tables() -> None:
    found = find_instance("ml.g5.12xlarge")

    assert found is not None
    assert (found.accelerator, found.accelerator_count, found.link) == ("NVIDIA A10G", 4, "pcie")
    assert found.accelerator_memory_bytes == 22_888 * 2**20
    assert found.memory_bandwidth_bytes_s == 600 * 10**9
    assert found.flops_16bit == 70 * 10**12
    assert (found.usd_per_hour, found.price_date) == (7.09, "2026-04-21")


def test_an_unknown_instance_type_is_no_error() -> None:
    assert find_instance("ml.g99.xlarge") is None


def test_is_sorted_without_duplicates() -> None:
    names = [instance.instance_type for instance in INSTANCES.rows]

    assert names == sorted(set(names))
    assert len(names) == 58


@pytest.mark.parametrize(
    ("instance_type", "link"),
    [
        ("ml.g5.2xlarge", "single"),
        ("ml.g6.12xlarge", "pcie"),
        ("ml.p4d.24xlarge", "nvlink"),
        ("ml.p5.4xlarge", "single"),
        ("ml.inf2.48xlarge", "neuron"),
    ],
)
def test_knows_how_accelerators_are_joined(instance_type: str, link: str) -> None:
    found = find_instance(instance_type)

    assert found is not None
    assert found.link == link


def test_what_nobody_published_is_none() -> None:
    found = find_instance("ml.g7.2xlarge")

    assert found is not None
    assert (found.flops_16bit, found.memory_bandwidth_bytes_s, found.usd_per_hour) == (None, None, None)


def test_only_turing_lacks_bf16() -> None:
    without = {instance.accelerator for instance in INSTANCES.rows if not instance.has_bf16}

    assert without == {"NVIDIA T4"}


def test_every_row_names_its_source_and_every_price_its_own() -> None:
    for instance in INSTANCES.rows:
        assert instance.source
        assert instance.date
        assert (instance.usd_per_hour is None) == (instance.price_source is None) == (instance.price_date is None)


def test_a_type_without_a_price_has_an_estimate_with_its_sources() -> None:
    unpriced = [one for one in INSTANCES.rows if one.usd_per_hour is None]

    assert {one.instance_type.split(".")[1] for one in unpriced} == {"g7", "p5e", "p6-b200", "p6-b300", "trn1n", "trn2"}
    for one in unpriced:
        assert one.estimated_usd_per_hour is not None
        assert one.estimate_source is not None
        assert " 20" in one.estimate_source.replace("(20", " 20")


def test_an_estimate_is_the_price_of_ec2_times_what_the_family_costs_more() -> None:
    small = find_instance("ml.g7.2xlarge")

    assert small is not None
    assert small.estimated_usd_per_hour == pytest.approx(2.52 * 4.2039 / 3.36312, abs=0.001)
