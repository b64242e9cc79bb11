from __future__ import annotations

import pytest

from seatrial_base.catalog import known_options as options
from seatrial_base.catalog.known_options import all_known_options


@pytest.mark.parametrize(
    ("name", "lmi", "known"),
    [
        ("gpu_memory_utilization", 27, True),
        ("enable_prefix_caching", 27, True),
        ("chat_template", 27, True),  # LMI's own
        ("swap_space", 20, True),
        ("swap_space", 27, False),  # left vLLM by 0.23
        ("rope_scaling", 16, True),
        ("rope_scaling", 17, False),  # left vLLM by 0.11.1
        ("max_rolling_batch", 27, False),  # a seed's slip for max_rolling_batch_size
    ],
)
def test_an_option_is_known_to_the_builds_that_read_it(name: str, lmi: int, known: bool) -> None:  # noqa: FBT001 (a table)
    assert (name not in options.unknown((name,), lmi)) == known


def test_an_unknown_option_comes_with_the_nearest_known() -> None:
    assert options.unknown(("enable_prefix_cache",), 27)["enable_prefix_cache"][0] == "enable_prefix_caching"


def test_a_build_that_was_not_read_knows_no_unknown_option() -> None:
    assert options.unknown(("anything",), 29) == {}


def test_every_row_names_its_source_and_date() -> None:
    assert all(row.source and row.date and row.options for row in all_known_options())
