from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.local.aws.runtime.running_copies import Place
from seatrial.local.aws.runtime.telemetry import Invocation, Telemetry, log_group, metric_data

if TYPE_CHECKING:
    from collections.abc import Mapping

COMPONENT, VARIANT = Place("chat"), Place("host", "main")


def seen(status: int, *, in_flight: int = 1) -> Invocation:
    return Invocation(status=status, model_s=0.25, overhead_s=0.001, in_flight=in_flight)


def sums(place: Place, *invocations: Invocation, copies: int = 2) -> dict[str, object]:
    def total(statistics: object) -> object:
        assert isinstance(statistics, dict)
        return statistics["Sum"]

    data: list[Mapping[str, object]] = [*metric_data(place, invocations, copies=copies)]
    return {str(one["MetricName"]): total(one["StatisticValues"]) for one in data}


def test_a_component_is_counted_by_what_its_container_answered() -> None:
    assert sums(COMPONENT, seen(200, in_flight=3), seen(400, in_flight=5), seen(503), seen(0)) == {
        "ConcurrentRequestsPerCopy": 5.0,
        "Invocations": 4.0,
        "Invocation4XXErrors": 1.0,
        "Invocation5XXErrors": 2.0,
        "InvocationModelErrors": 3.0,
        "InvocationsPerCopy": 2.0,
        "ModelLatency": 1_000_000.0,
        "OverheadLatency": 4_000.0,
    }


def test_the_first_chunk_of_a_stream_is_told_in_microseconds() -> None:
    streamed = Invocation(status=200, model_s=0.25, overhead_s=0.001, in_flight=1, first_chunk_s=0.125)
    assert sums(COMPONENT, streamed, seen(200))["FirstChunkModelLatency"] == 125_000.0
    told = {str(one["MetricName"]): one["Unit"] for one in metric_data(COMPONENT, [streamed], copies=1)}
    assert (told["FirstChunkModelLatency"], told["Invocations"]) == ("Microseconds", "Count")


def test_publication_and_samples_each_see_every_invocation_once() -> None:
    telemetry = Telemetry()
    telemetry.saw(COMPONENT, seen(200))
    assert (telemetry.take(), telemetry.take()) == ({COMPONENT: [seen(200)]}, {})
    assert (telemetry.take_sample(), telemetry.take_sample()) == ({COMPONENT: [seen(200)]}, {})


def test_a_place_that_nobody_asks_has_no_requests_in_flight() -> None:
    """Its alarms have data, so that they leave INSUFFICIENT_DATA."""
    assert sums(COMPONENT) == {"ConcurrentRequestsPerCopy": 0.0}
    assert sums(VARIANT) == {"ConcurrentRequestsPerModel": 0.0}


def test_dimensions_and_log_groups_are_those_of_aws() -> None:
    (of_component,) = metric_data(COMPONENT, (), copies=1)
    (of_variant,) = metric_data(VARIANT, (), copies=1)
    assert of_component["Dimensions"] == [{"Name": "InferenceComponentName", "Value": "chat"}]
    assert of_variant["Dimensions"] == [
        {"Name": "EndpointName", "Value": "host"},
        {"Name": "VariantName", "Value": "main"},
    ]
    assert (log_group(COMPONENT), log_group(VARIANT)) == (
        "/aws/sagemaker/InferenceComponents/chat",
        "/aws/sagemaker/Endpoints/host",
    )


def test_what_was_published_is_forgotten() -> None:
    telemetry = Telemetry()
    telemetry.saw(COMPONENT, seen(200))
    assert telemetry.take() == {COMPONENT: [seen(200)]}
    assert telemetry.take() == {}
