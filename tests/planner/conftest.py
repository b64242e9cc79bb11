from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest
import yaml

from seatrial.specs.load import load_spec

if TYPE_CHECKING:
    from seatrial.specs.load import LoadedSpec

CHAT: dict[str, object] = {
    "name": "chat",
    "model": {"hub_id": "meta-llama/Llama-2-7b-chat-hf"},
    "workload": {"input_tokens": 256, "output_tokens": 256, "concurrency": 16},
    "serving": {"instance_types": ["ml.g5.2xlarge"]},
}


class Ask(Protocol):
    """Writes and loads a spec: the chat endpoint with some of its fields replaced.

    `region`, `rails`, `purchase` and `kms_key_arn` are the environment's region, guard rails, purchase and key.
    """

    def __call__(self, **fields: object) -> LoadedSpec: ...


def reads(text: str, template: str) -> bool:
    """Tell whether a text reads as a template does, where each # stands for a number that was predicted."""
    return re.fullmatch(re.escape(template).replace(r"\#", r"\d[\d,]*(?:\.\d+)?"), text) is not None


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    monkeypatch.chdir(tmp_path)
    environments = tmp_path / "environments"
    environments.mkdir()

    def asked(**fields: object) -> LoadedSpec:
        place = {"region": fields.pop("region", "us-east-1"), "guard_rails": fields.pop("rails", {})}
        given = {name: fields.pop(name, None) for name in ("kms_key_arn", "purchase")}
        place |= {name: value for name, value in given.items() if value}
        (environments / "dev.yaml").write_text(yaml.safe_dump({"name": "dev", **place}), encoding="utf-8")
        path = Path("chat.yaml")
        path.write_text(yaml.safe_dump({**CHAT, **fields}, sort_keys=False), encoding="utf-8")
        return load_spec(path, "dev", environments=Path("environments"))

    return asked
