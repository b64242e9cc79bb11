"""How llama.cpp is set up for a configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial_laptop.engine.llama import server_parameters
from seatrial_laptop.engine.settings import EngineSettings, WireFormat

xllamacpp = pytest.importorskip("xllamacpp")


@pytest.mark.parametrize(("max_num_seqs", "max_total_tokens"), [(8, 512), (256, 4_096)])
def test_each_slot_has_its_own_part_of_the_kv_cache_for_a_longest_sequence(
    max_num_seqs: int, max_total_tokens: int
) -> None:
    settings = EngineSettings(
        wire_format=WireFormat.LMI_ASYNC,
        model_id="org/model",
        max_num_seqs=max_num_seqs,
        max_in_flight=1_000,
        max_input_tokens=max_total_tokens - 1,
        max_total_tokens=max_total_tokens,
        batch_total_tokens=262_144,
        prefill_tokens=None,
        default_output_tokens=30,
    )
    found = server_parameters(xllamacpp.CommonParams(), Path("model.gguf"), settings, "key")
    assert (found.n_parallel, found.kv_unified) == (settings.slots, False)
    assert found.n_ctx == settings.slots * max_total_tokens
