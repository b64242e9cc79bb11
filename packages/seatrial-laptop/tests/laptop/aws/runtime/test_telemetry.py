from __future__ import annotations

from collections import defaultdict

from seatrial_laptop.aws.runtime.running_copies import CopyPlace
from seatrial_laptop.aws.runtime.telemetry import Invocation, Telemetry, log_group, metric_data

COMPONENT, VARIANT = CopyPlace("chat"), CopyPlace("host", "main")


def seen(status: int, *, in_flight: int = 1) -> Invocation:
    return Invocation(status=status, model_s=0.25, overhead_s=0.001, in_flight=in_flight)


def sums(place: CopyPlace, *invocations: Invocation, copies: int = 2) -> dict[str, float]:
    totals: defaultdict[str, float] = defaultdict(float)
    for one in metric_data(place, invocations, copies=copies):
        values, counts = one["Values"], one["Counts"]
        assert isinstance(values, list)
        assert isinstance(counts, list)
        assert len(values) <= 150
        totals[str(one["MetricName"])] += sum(value * count for value, count in zip(values, counts, strict=True))
    return dict(totals)


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


def test_the_first_chunk_of_a_stream_is_told_in_microseconds_and_never_of_a_component() -> None:
    streamed = Invocation(status=200, model_s=0.25, overhead_s=0.001, in_flight=1, first_chunk_s=0.125)
    assert sums(VARIANT, streamed, seen(200))["FirstChunkModelLatency"] == 125_000.0
    told = {str(one["MetricName"]): one["Unit"] for one in metric_data(VARIANT, [streamed], copies=1)}
    assert (told["FirstChunkModelLatency"], told["Invocations"]) == ("Microseconds", "Count")
    assert not any(name.startswith("FirstChunk") for name in sums(COMPONENT, streamed))


def test_a_refusal_for_want_of_copies_counts_as_nothing_else() -> None:
    refused = Invocation(status=0, model_s=0.0, overhead_s=0.0, in_flight=0, no_capacity=True)
    assert sums(COMPONENT, refused, refused, copies=0) == {
        "ConcurrentRequestsPerCopy": 0.0,
        "NoCapacityInvocationFailures": 2.0,
    }
    assert sums(COMPONENT, refused, seen(200))["Invocations"] == 1.0


def test_many_values_are_told_in_several_data() -> None:
    invocations = [Invocation(status=200, model_s=float(at), overhead_s=0.0, in_flight=1) for at in range(1, 401)]
    told = [
        one["Values"] for one in metric_data(COMPONENT, invocations, copies=1) if one["MetricName"] == "ModelLatency"
    ]
    assert [len(values) for values in told if isinstance(values, list)] == [150, 150, 100]
    assert sums(COMPONENT, *invocations)["ModelLatency"] == 400 * 401 / 2 * 1e6


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
