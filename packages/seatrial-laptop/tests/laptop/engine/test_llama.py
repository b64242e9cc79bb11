"""How llama.cpp is set up for a configuration."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from seatrial_laptop.engine.llama import server_parameters
from seatrial_laptop.engine.settings import EngineSettings, WireFormat
from seatrial_laptop.loopback import HOST

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


def test_an_engine_that_cannot_load_says_why_and_ends_by_itself(tmp_path: Path) -> None:
    """The thread that waits for the end of stdin must not hold its buffer: Python aborts over that when it ends."""
    (tmp_path / "xllamacpp.py").write_text('raise ImportError("libgomp.so.1 is missing")\n')
    (tmp_path / "model").mkdir()
    with socket.create_server((HOST, 0)) as reserved:
        port = reserved.getsockname()[1]
    image = "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.36.0-lmi27.0.0-cu130"
    words = ("--image", image, "--model-dir", str(tmp_path / "model"), "--port", str(port), "--until-stdin-closes")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    with subprocess.Popen(
        [sys.executable, "-m", "seatrial_laptop.engine", *words],
        env=os.environ | {"PYTHONPATH": path, "OPTION_MODEL_ID": "x"},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as engine:
        assert engine.stderr is not None
        told = engine.stderr.read()
    assert (engine.returncode, told.splitlines()[-1]) == (1, "ImportError: libgomp.so.1 is missing")
