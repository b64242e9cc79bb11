"""Lambda functions: AWS's date, calls that are repeated, and modules of another age."""

from __future__ import annotations

import gzip
import io
import json
import time
import zipfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import botocore
import pytest

from seatrial_laptop.aws.clock import VirtualClock
from seatrial_laptop.aws.functions import RETRY_S, AsynchronousCalls
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seatrial_laptop.aws.json_document import Document

Laptop = Any  # the fixture's class lives in conftest.py, which nobody can import
ROLE = "arn:aws:iam::000000000000:role/a-function"


class HandClock:
    def __init__(self) -> None:
        self.s = 0.0
        self.waited: list[float] = []

    def now_s(self) -> float:
        return self.s

    def wait(self, seconds: float) -> None:
        self.waited.append(seconds)
        self.s += seconds


def waits(function: Document, *answers: Document) -> list[float]:
    """Return what was waited for between the calls of a function that answers so."""
    told, clock = iter(answers), HandClock()
    AsynchronousCalls(clock, lambda _function, _event: next(told)).make(function, {})
    assert next(told, None) is None, "every answer was asked for"
    return clock.waited


FAILED: Document = {"error": True}
SUCCEEDED: Document = {}
THROTTLED: Document = {"error": True, "throttle": True}


def test_a_call_that_fails_is_repeated_twice_after_one_minute_and_after_two() -> None:
    assert waits({}, SUCCEEDED) == []
    assert waits({}, FAILED, SUCCEEDED) == [RETRY_S]
    assert waits({}, FAILED, FAILED, FAILED) == [RETRY_S, 2 * RETRY_S]


@pytest.mark.parametrize("kept", ["event_invoke_config", "event_invoke_configs"])
def test_a_function_says_how_often(kept: str) -> None:
    def function(**config: int) -> Document:
        return {kept: config if kept == "event_invoke_config" else {"$LATEST": config}}

    assert waits(function(MaximumRetryAttempts=0), FAILED) == []
    assert waits(function(MaximumRetryAttempts=1), FAILED, FAILED) == [RETRY_S]
    assert waits(function(MaximumEventAgeInSeconds=100), FAILED, FAILED) == [RETRY_S]


def test_a_throttled_call_is_repeated_until_it_is_too_old() -> None:
    assert waits({}, *[THROTTLED] * 4, SUCCEEDED) == [1.0, 2.0, 4.0, 8.0]


@contextmanager
def function(laptop: Laptop, source: str, *, timeout_s: int = 30) -> Iterator[str]:
    packed, name, client = io.BytesIO(), laptop.name("function"), boto3.client("lambda")
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("index.py", source)
    client.create_function(
        FunctionName=name,
        Runtime="python3.13",
        Handler="index.handler",
        Role=ROLE,
        Code={"ZipFile": packed.getvalue()},
        Timeout=timeout_s,
    )
    try:
        yield name
    finally:
        client.delete_function(FunctionName=name)


def answer(name: str) -> Any:  # noqa: ANN401 (whatever the function returns)
    told = boto3.client("lambda").invoke(FunctionName=name)
    return json.loads(told["Payload"].read())


SLEEPS = """
import time
def handler(event, context):
    began_s, monotonic_s = time.time(), time.monotonic()
    time.sleep(600)
    time.sleep(0.01)
    return {"began_s": began_s, "took_s": time.time() - began_s, "really_s": time.monotonic() - monotonic_s}
"""


def test_a_function_lives_by_the_date_of_aws_and_may_sleep_for_minutes(
    laptop: Laptop, control: Callable[..., dict[str, object]]
) -> None:
    with function(laptop, SLEEPS, timeout_s=900) as name:
        control(wait_speed=600)
        first, second = answer(name), answer(name)
    assert 600 <= first["took_s"] < 660
    assert first["really_s"] < 60
    assert second["began_s"] >= first["began_s"] + first["took_s"]
    assert second["began_s"] > time.time() + 500, "what was skipped stays skipped"


def test_time_is_skipped_only_while_something_waits_and_no_function_runs() -> None:
    class RealTime:
        s = 0.0

        def __call__(self) -> float:
            return self.s

    real = RealTime()
    clock = VirtualClock(real, epoch_s=1_000.0)
    told: list[float] = []
    clock.tell_skipped(told.append)
    clock.set_wait_speed(100)
    real.s += 10
    assert (clock.now_s(), clock.aws_date_s(), told[-1]) == (10.0, 1_010.0, 0.0)
    with clock.function_runs():
        with clock.function_sleeps():
            real.s += 1
            assert (clock.now_s(), clock.aws_date_s()) == (110.0, 1_110.0)
        assert told[-1] == 99.0
        real.s += 5
        assert (clock.now_s(), clock.aws_date_s()) == (115.0, 1_115.0)
        clock.set_speed(60)
        real.s += 1
        assert (clock.now_s(), clock.aws_date_s()) == (175.0, 1_116.0), "functions don't see the speed of the clock"
    clock.set_wait_speed(None)
    with clock.function_runs(), clock.function_sleeps():
        real.s += 1
    assert clock.aws_date_s() == 1_117.0


FAILS_FIRST = """
import json, os, pathlib, urllib.request
def handler(event, context):
    calls = pathlib.Path(os.environ["TMPDIR"], context.function_name)
    with calls.open("a") as file:
        file.write(".")
    if len(calls.read_text()) < 3:
        raise RuntimeError("not yet")
    calls.unlink()
    told = {"Status": "SUCCESS", "PhysicalResourceId": "one", "Data": {}}
    ask = urllib.request.Request(event["ResponseURL"], data=json.dumps(told).encode(), method="PUT")
    urllib.request.urlopen(ask)
"""


def test_a_custom_resource_is_asked_again_when_its_function_fails(
    laptop: Laptop, control: Callable[..., dict[str, object]]
) -> None:
    stack, client = laptop.name("stack"), laptop.cloudformation
    with function(laptop, FAILS_FIRST) as name:
        arn = boto3.client("lambda").get_function(FunctionName=name)["Configuration"]["FunctionArn"]
        custom = {"Type": "Custom::Trial", "Properties": {"ServiceToken": arn}}
        control(clock_speed=600)
        for change in (client.create_stack, client.delete_stack):
            template = {"TemplateBody": json.dumps({"Resources": {"Trial": custom}})}
            change(StackName=stack, **(template if change == client.create_stack else {}))
            until(lambda: not any(each.endswith("PROGRESS") for each in statuses(laptop, stack)), stack)
            assert statuses(laptop, stack) in (["CREATE_COMPLETE"], [])


def statuses(laptop: Laptop, stack: str) -> list[str]:
    return [
        each["StackStatus"] for each in laptop.cloudformation.describe_stacks()["Stacks"] if each["StackName"] == stack
    ]


def older_botocore(folder: Path, *, without: str) -> Path:
    """Make a botocore whose SageMaker has no member of a name, and whose other files are the installed one's."""
    installed, older = Path(botocore.__path__[0]), folder / "botocore"
    (older / "data").mkdir(parents=True)
    for each in installed.iterdir():
        if each.name not in ("data", "__init__.py", "__pycache__"):
            (older / each.name).symlink_to(each)
    for each in (installed / "data").iterdir():
        if each.name != "sagemaker":
            (older / "data" / each.name).symlink_to(each)
    text = (installed / "__init__.py").read_text(encoding="utf-8")
    (older / "__init__.py").write_text(text.replace(botocore.__version__, "1.35.0"), encoding="utf-8")
    for model in (installed / "data" / "sagemaker").glob("*/service-2.json.gz"):
        document = json.loads(gzip.decompress(model.read_bytes()))
        for shape in document["shapes"].values():
            shape.get("members", {}).pop(without, None)
        (older / "data" / "sagemaker" / model.parent.name).mkdir(parents=True)
        (older / "data" / "sagemaker" / model.parent.name / "service-2.json").write_text(json.dumps(document))
    return folder


TELLS_BOTO = """
import boto3, botocore
def handler(event, context):
    model = boto3.client("sagemaker").meta.service_model
    return [botocore.__version__, "SchedulingConfig" in model.shape_for("InferenceComponentSpecification").members]
"""


def test_a_function_may_find_a_botocore_of_another_age(
    laptop: Laptop, control: Callable[..., dict[str, object]], tmp_path: Path
) -> None:
    with function(laptop, TELLS_BOTO) as name:
        assert answer(name) == [botocore.__version__, True]
        control(function_python_path=str(older_botocore(tmp_path, without="SchedulingConfig")))
        assert answer(name) == ["1.35.0", False]
        control(function_python_path=None)
        assert answer(name) == [botocore.__version__, True]
