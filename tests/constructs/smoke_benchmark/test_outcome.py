"""Whatever an endpoint or AWS says, no credential of it is left behind: neither in documents nor in events."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from seatrial_cdk.smoke_benchmark.runtime.custom_resource import TrialProperties
from seatrial_cdk.smoke_benchmark.runtime.outcome import keep_error, keep_result

if TYPE_CHECKING:
    from seatrial.bench.result import TrialResult
    from seatrial_cdk.smoke_benchmark.runtime.announcement import Detail
    from tests.constructs.conftest import DictStore

SECRET = "aB3dE5fG7hJ9kL1mN2pQ4rS6"
SAID = f"HTTP 403: https://b/k?X-Amz-Signature={SECRET} is refused"
SHOWN = "HTTP 403: https://b/k?X-Amz-Signature=aB3… is refused"


class KeptBus:
    def __init__(self) -> None:
        self.details: list[Detail] = []

    def put(self, detail: Detail) -> None:
        self.details.append(detail)


def test_an_error_is_kept_and_announced_without_its_credential(store: DictStore, properties: dict[str, str]) -> None:
    bus = KeptBus()
    assert keep_error(store, TrialProperties.of(properties), "request-1", SAID, bus=bus) == ""
    assert [json.loads(text) for text in store.texts.values()] == [{"error": SHOWN}]
    assert [detail["because"] for detail in bus.details] == [SHOWN]


def test_a_result_is_kept_and_announced_without_its_credential(
    store: DictStore, properties: dict[str, str], passed: TrialResult
) -> None:
    bus, result = KeptBus(), replace(passed, verdict=replace(passed.verdict, because=SAID), engine_note=SAID)
    keep_result(store, TrialProperties.of(properties), "request-1", result, bus=bus, now_s=0.0)
    assert [detail["because"] for detail in bus.details] == [SHOWN]
    assert store.texts
    assert not any(SECRET in text for text in store.texts.values())
    documents = [json.loads(text) for key, text in store.texts.items() if key.endswith(".json")]
    assert {document["verdict"]["because"] for document in documents} == {SHOWN}
