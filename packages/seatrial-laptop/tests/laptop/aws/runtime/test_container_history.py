"""What engines tell of their queue is read, kept and told as CloudWatch tells it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from seatrial_laptop.aws.runtime.container_history import (
    BadQueryError,
    ContainerHistory,
    answer_range,
    exposed,
    read_copies,
)
from seatrial_laptop.engine.container import ENGINE_NAME, Container
from seatrial_laptop.engine.family import read_settings
from seatrial_laptop.engine.weights import ServedWeights
from seatrial_laptop.loopback import HOST
from seatrial_load.aws.container_metrics import selector
from tests.stub_cloud import variant

if TYPE_CHECKING:
    from pathlib import Path

    from seatrial_laptop.aws.json_document import Document
    from tests.stub_cloud import StubSageMaker

WAITING = "vllm:num_requests_waiting"
CHAT = {"aws.sagemaker.endpoint.name": "chat", "aws.sagemaker.variant.name": "AllTraffic"}
LMI, TGI = "r/djl-inference:0.36.0", "r/huggingface-pytorch-tgi-inference:3"


def told_by(image: str, folder: Path, *, waiting: int = 0) -> list[tuple[str, dict[str, str], float]]:
    """Return what a container of an image tells while requests of a quarter of its tokens run."""

    async def scenario() -> list[tuple[str, dict[str, str], float]]:
        settings = read_settings(image, {"HF_MODEL_ID": "org/m", "OPTION_MAX_ROLLING_BATCH_SIZE": "1"}, folder)
        weights = ServedWeights(path=folder / "m.gguf", text="none", bytes=0, gguf_type="F16")
        served: list[Container] = []
        server = await asyncio.start_server(lambda reader, writer: served[0].connected(reader, writer), HOST, 0)  # noqa: PLW0108 (it is made below)
        served.append(Container(settings, weights, port=server.sockets[0].getsockname()[1]))
        async with server, served[0].admission.slot(settings.batch_total_tokens // 4):
            others = [asyncio.create_task(hold(served[0])) for _ in range(waiting)]
            await asyncio.sleep(0)
            told = await asyncio.to_thread(exposed, server.sockets[0].getsockname()[1])
        await asyncio.gather(*others)
        return told

    return asyncio.run(scenario())


async def hold(container: Container) -> None:
    async with container.admission.slot(1):
        await asyncio.sleep(0)


def test_the_local_engine_tells_its_queue_under_vllms_names_and_says_what_it_is(tmp_path: Path) -> None:
    labels = {"model_name": "org/m", "seatrial.simulated_by": ENGINE_NAME}
    assert told_by(LMI, tmp_path, waiting=2) == [
        ("vllm:num_requests_running", labels, 1.0),
        (WAITING, labels, 2.0),
        ("vllm:kv_cache_usage_perc", labels, 0.25),
        ("vllm:num_preemptions_total", labels, 0.0),
    ]


def test_what_is_not_told_is_nothing(tmp_path: Path) -> None:
    assert told_by(TGI, tmp_path) == []
    assert exposed(1) == []


@pytest.fixture
def history() -> ContainerHistory:
    kept = ContainerHistory()
    for at_s, value in ((100.0, 1.0), (110.0, 4.0)):
        kept.add(WAITING, {**CHAT, "engine": "0"}, at_s, value)
    kept.add(WAITING, {**CHAT, "aws.sagemaker.endpoint.name": "other"}, 100.0, 9.0)
    return kept


def asked(query: str, *, start: str = "95", end: str = "120", step: str = "10") -> dict[str, list[str]]:
    return {"query": [query], "start": [start], "end": [end], "step": [step]}


def series_of(answer: Document) -> object:
    data = answer["data"]
    assert isinstance(data, dict)
    return data["result"]


def test_each_step_has_the_newest_sample_before_it(history: ContainerHistory) -> None:
    assert series_of(answer_range(history, asked(selector(WAITING, CHAT)))) == [
        {"metric": {"__name__": WAITING, **CHAT, "engine": "0"}, "values": [[105.0, "1"], [115.0, "4"]]}
    ]


def test_a_sample_of_five_minutes_answers_no_step(history: ContainerHistory) -> None:
    late = asked(selector(WAITING, CHAT), start="400", end="420")
    assert series_of(answer_range(history, late)) == [
        {"metric": {"__name__": WAITING, **CHAT, "engine": "0"}, "values": [[400.0, "4"]]}
    ]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (asked("sum(up)"), 'the embedded AWS answers queries like {"METRIC","LABEL"="VALUE"} alone'),
        (asked('{"up"}', step="ten"), "step is no number of seconds"),
        (asked('{"up"}', end="1"), "start, end and step give no or too many points"),
        (asked('{"up"}', step="0.001"), "start, end and step give no or too many points"),
    ],
)
def test_another_query_is_refused(history: ContainerHistory, query: dict[str, list[str]], message: str) -> None:
    with pytest.raises(BadQueryError) as refused:
        answer_range(history, query)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("config", "reads"),
    [
        ({}, [60]),
        ({"MetricsConfig": {"MetricPublishFrequencyInSeconds": 10}}, [10]),
        ({"MetricsConfig": {"EnableDetailedObservability": False}}, []),
    ],
)
def test_copies_are_read_as_often_as_the_endpoint_publishes(
    stub: StubSageMaker, monkeypatch: pytest.MonkeyPatch, config: dict[str, object], reads: list[int]
) -> None:
    stub.config("c", variant("AllTraffic", stub.model("m")), **config)
    stub.endpoint("chat", "c")
    now_s = 1_000.0
    monkeypatch.setattr(type(stub.cloud.clock), "aws_date_s", lambda _clock: now_s)
    monkeypatch.setattr(
        "seatrial_laptop.aws.runtime.container_history.exposed", lambda _port: [(WAITING, {"engine": "0"}, 3.0)]
    )
    seen: list[int] = []
    for later_s in range(0, 61, 10):
        now_s = 1_000.0 + later_s
        read_copies(stub.cloud)
        samples = [sample for _, kept in stub.cloud.containers.select(WAITING, CHAT) for sample in kept]
        if later_s and len(samples) > 1 and not seen:
            seen.append(later_s)
    assert seen == reads
