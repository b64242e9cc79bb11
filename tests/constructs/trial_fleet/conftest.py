"""A stack with an endpoint, its trial's results and the fleet; and the order of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from aws_cdk import App, Stack
from aws_cdk.assertions import Template

from seatrial.spec.environment import Network
from seatrial_cdk.llm_endpoint import LlmEndpoint
from seatrial_cdk.smoke_benchmark.runtime.fleet import Fleet
from seatrial_cdk.smoke_benchmark.runtime.turn import take_turn
from seatrial_cdk.smoke_benchmark.trial_results import TrialResults
from seatrial_cdk.trial_fleet.trial_fleet import TrialFleet
from tests.constructs.smoke_benchmark.conftest import Clock
from tests.constructs.trial_fleet.written_course import TRIAL, Bus, WrittenCourse
from tests.sample_plan import sample_plan
from tests.stacks.conftest import serving

if TYPE_CHECKING:
    from seatrial_cdk.smoke_benchmark.runtime.custom_resource import TrialOrder
    from tests.constructs.conftest import DictScaling, DictStore

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    folder = tmp_path_factory.mktemp("fleet")
    app = App(outdir=str(folder), analytics_reporting=False, context=context)
    stack = Stack(app, "fleet")
    endpoint = LlmEndpoint(
        stack, "Endpoint", endpoint_name="dev-chat", plan=sample_plan(), serving=serving(), network=Network()
    )
    results = TrialResults(stack, "Results", kms_key_arn=None, removal="destroy")
    TrialFleet(stack, "Fleet", endpoint=endpoint, results=results, budget_s=600)
    app.synth()
    return folder


@pytest.fixture(scope="session")
def template(folder: Path) -> Template:
    return Template.from_string((folder / "fleet.template.json").read_text())


@pytest.fixture
def order(properties: dict[str, str]) -> TrialOrder:
    return {"RequestId": "request-1", "ResourceProperties": properties, "StartedAt": 1000.0, "Run": 1}


@pytest.fixture
def course() -> WrittenCourse:
    return WrittenCourse()


@pytest.fixture
def bus() -> Bus:
    return Bus()


@pytest.fixture
def clock() -> Clock:
    return Clock(1010.0)


@pytest.fixture
def fleet(
    store: DictStore, scaling: DictScaling, bus: Bus, course: WrittenCourse, order: TrialOrder, clock: Clock
) -> Fleet:
    take_turn(store, "dev-chat", "request-1", document=TRIAL, now_s=1000.0)
    return Fleet(
        order=order,
        store=store,
        scaling=scaling,
        bus=bus,
        course=course,
        region="us-east-1",
        sockets_per_function=4,
        now_s=clock,
        beside=clock.beside,
    )
