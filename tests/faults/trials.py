"""Small trials of the endpoint behind the proxy."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from seatrial_load.aws.credentials import Credentials
from seatrial_load.documents.progress import LevelEnded, unwatched
from seatrial_load.documents.request import Load, Objective, TrialRequest, TrialTarget, Workload
from seatrial_load.documents.result import TrialResult
from seatrial_load.slo.verdict import verdict_at
from seatrial_load.trial.dependencies import Tools
from seatrial_load.trial.run import run_trial
from tests.faults.cloud import COMPONENT, ENDPOINT

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_load.aws.credentials import CredentialSource
    from seatrial_load.documents.progress import TrialEvent, Watch
    from seatrial_load.documents.result import Verdict
    from tests.faults.cloud import Cloud
    from tests.faults.order import Order, Tally
    from tests.faults.proxy import Proxy

OUTPUT_TOKENS = 8
GATE = 4
LOAD = Load(
    concurrency_levels=(1, GATE),
    requests_per_concurrency=10,
    warmup_requests=0,
    budget_s=30.0,
    request_timeout_s=10.0,
    workers=1,
    search="every_level",
)
OBJECTIVES = (
    Objective(metric="error_rate", statistic="value", bound=0.01, sense="at_most"),
    Objective(metric="e2e_latency_ms", statistic="p95", bound=60_000.0, sense="at_most"),
)
CREDENTIALS = Credentials("AKIDEXAMPLE", "secret", "token-1")


@dataclass
class Trials:
    """Runs trials through the proxy; the first level is without faults, so that the second one's are counted alone."""

    proxy: Proxy
    cloud: Cloud
    tallies: list[Tally] = field(default_factory=list)

    def request(self, **changes: object) -> TrialRequest:
        fields: dict[str, object] = {
            "endpoint": "chat",
            "environment": "local",
            "plan_digest": "0123456789abcdef",
            "target": self.target(),
            "expected": None,
            "workload": Workload(input_tokens=16, output_tokens=OUTPUT_TOKENS, schema="lmi"),
            "load": LOAD,
            "objectives": OBJECTIVES,
            "gate_concurrency": GATE,
            "copy_count": 1,
            "mode": "report",
            "usd_per_hour_per_copy": 1.0,
            "fallback_target_concurrency": 2.0,
            "target_utilization": 0.75,
            **changes,
        }
        return TrialRequest(**fields)  # type: ignore[arg-type]  # a maker for tests: keywords of any type

    def target(self, component: str = COMPONENT) -> TrialTarget:
        return TrialTarget(
            endpoint_name=ENDPOINT,
            inference_component=component,
            region=self.cloud.local.region,
            endpoint_url=self.proxy.url,
        )

    @property
    def hit(self) -> int:
        """How many requests of the second level got the fault."""
        return self.tallies[1].hit

    def run(
        self,
        order: Order,
        *,
        request: TrialRequest | None = None,
        credentials: CredentialSource = CREDENTIALS,
        then: Callable[[], None] = lambda: None,
    ) -> TrialResult:
        """Run a trial whose second level, and no other, meets a fault.

        Args:
            order: Whom the fault meets, and which.
            request: The trial's request; `self.request()` when not given.
            credentials: What signs.
            then: Called when the first level is over.
        """
        self.proxy.obey()
        self.tallies = []

        def turn(event: TrialEvent) -> None:
            if not isinstance(event, LevelEnded):
                return
            if self.tallies:
                self.tallies.append(self.proxy.obey())
            else:
                self.tallies.append(self.proxy.obey(order))
                then()

        return self.run_as_it_is(request=request, credentials=credentials, watch=turn)

    def run_as_it_is(
        self,
        *,
        request: TrialRequest | None = None,
        credentials: CredentialSource = CREDENTIALS,
        watch: Watch = unwatched,
    ) -> TrialResult:
        """Run a trial on the proxy as it was told to be.

        The client isn't calibrated, which would take a second; CloudWatch, which isn't embedded, isn't asked.
        """
        tools = Tools(
            credentials=credentials,
            sagemaker=self.cloud.sagemaker,
            watch=watch,
            calibrates=False,
            asks_cloudwatch=False,
        )
        result = run_trial(request or self.request(), tools=tools)
        assert isinstance(result, TrialResult)
        return result


def verdict_of(result: TrialResult) -> Verdict:
    """Judge once more, as if the client had had a core for itself: a machine that runs tests seldom has one to spare.

    A level that the client limited proves nothing, whatever the endpoint did; that is tested where validity is.
    """
    levels = [replace(level, void=None) for level in result.levels]
    return verdict_at(result.request.gate_concurrency, levels, result.request.objectives)


def miss_of(result: TrialResult) -> str:
    """Say why the SLO is missed, which the trial's own verdict must not contradict."""
    verdict = verdict_of(result)
    assert (verdict.status, result.verdict.status == "pass") == ("fail", False)
    return verdict.because
