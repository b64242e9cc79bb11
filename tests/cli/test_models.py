"""`seatrial models` as a user runs it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from seatrial.catalog import models

if TYPE_CHECKING:
    from tests.cli.conftest import Seatrial


def test_every_known_model_is_listed(seatrial: Seatrial) -> None:
    done = seatrial("models", "list")
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split()[0] for line in done.stdout.splitlines()] == [model.id for model in models.every()]
    (latent,) = [line for line in done.stdout.splitlines() if line.startswith("deepseek-ai/DeepSeek-V3 ")]
    assert latent.endswith("not planned: multi-head latent attention")


def test_the_list_is_written_for_machines(seatrial: Seatrial) -> None:
    listed = json.loads(seatrial("models", "list", "--format", "json").stdout)
    (llama,) = [model for model in listed if model["id"] == "meta-llama/Llama-2-7b-hf"]
    assert llama == {
        "id": "meta-llama/Llama-2-7b-hf",
        "params_total": 6_738_415_616,
        "params_active": 6_738_415_616,
        "max_context": 4_096,
        "plannable": True,
    }
