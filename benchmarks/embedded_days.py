"""Days of traffic through the embedded AWS itself, by a clock that jumps, beside their simulation.

Each request goes to its router; its samples, alarms, policies, schedules, starts and releases do the rest. What both
share is how long an answer takes, and how long a start takes.
"""

from __future__ import annotations

import json
import time
from collections import deque
from dataclasses import replace
from functools import cache
from heapq import heappop, heappush
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from seatrial.deployment.starts import start_parts
from seatrial.documents.simulation import Traffic
from seatrial.locks.locked_plan import read_locked_plan
from seatrial.operations.fleet import PERIOD_S, planned_service, simulate_days
from seatrial.operations.traffic import answer_lengths, midnight_s, traffic_source
from seatrial.specs.load import load_spec
from seatrial.specs.scaling import ScalingSpec
from seatrial_base.autoscaling import IDLE_MINUTES
from seatrial_base.units import S_PER_MINUTE
from seatrial_laptop.aws.clock import VirtualClock
from seatrial_laptop.aws.control_plane.records import Kind
from seatrial_laptop.aws.runtime.running_copies import CopyPlace, CopyProcess
from seatrial_laptop.aws.runtime.telemetry import Invocation
from tests.stub_cloud import CHAT, CONCURRENCY, REFUSED_AT_ZERO, component, scaling_world, step_policy, tracking

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from seatrial.documents.simulation import Simulation
    from seatrial.operations.fleet import Answer
    from seatrial.operations.traffic import Minute
    from tests.stub_cloud import World

ROOT, SHAPES = Path(__file__).parent.parent, Path(__file__).with_name("simulation.json")
# Of each day: the profile of its traffic, `scaling` as in a spec, and the seconds of a start.
DAYS: Final[dict[str, Any]] = json.loads(SHAPES.read_text(encoding="utf-8"))["days"]
PLACE, TARGET, _SERIAL = CopyPlace("chat"), 8.0, count()
REFUSED: Final = Invocation(status=0, model_s=0.0, overhead_s=0.0, in_flight=0, no_capacity=True)


class JumpingClock(VirtualClock):
    """Stands still until it jumps; what waits goes on when its time has come."""

    def __init__(self, epoch_s: float) -> None:
        self.at_s, self.due = 0.0, list[float]()
        super().__init__(lambda: self.at_s, epoch_s=epoch_s)

    def wait(self, seconds: float, *, is_idle: bool = False) -> None:  # noqa: ARG002 (as that of the base)
        """Return when the clock has jumped that far."""
        with self._changed:
            end_s = self.at_s + seconds
            self.due.append(end_s)
            while self.at_s < end_s:
                self._changed.wait()
            self.due.remove(end_s)

    def jump(self, to_s: float, world: World) -> None:
        """Let it be another time, and return when all that changes waits for a later one."""
        with self._changed:
            self.at_s = to_s
            self._changed.notify_all()
        while True:
            for copy in tuple(world.stub.running._draining):  # noqa: SLF001 (its answers end in virtual time alone)
                copy.outstanding = 0
            status = world.stub.cloud.store.need(Kind.INFERENCE_COMPONENT, "chat").status
            with self._changed:
                if [end_s > self.at_s for end_s in self.due] == [True] * bool(status and status.in_transit):
                    return
            time.sleep(0.0005)


def embedded_minutes(
    world: World, clock: JumpingClock, minutes: Iterable[Minute], answers: Callable[[int], Sequence[Answer]]
) -> Iterator[tuple[int, int]]:
    """Yield the copies in service and the instances at the end of each minute; no copy refuses a request."""
    running, fleet = world.stub.running, world.stub.cloud.fleets.find("host", "main")
    ends: list[tuple[float, int, CopyProcess]] = []

    def end(until_s: float) -> None:
        while ends and ends[0][0] <= until_s:
            copy = heappop(ends)[-1]
            copy.outstanding = max(copy.outstanding - 1, 0)

    for number, (times, kinds) in enumerate(minutes):
        requests = deque(zip(times, kinds, strict=True))
        for passed_s in range(PERIOD_S, int(S_PER_MINUTE) + 1, PERIOD_S):
            now_s = number * S_PER_MINUTE + passed_s
            while requests and requests[0][0] <= now_s:
                at, kind = requests.popleft()
                end(at)
                if copy := running.reserve(PLACE):
                    heappush(ends, (at + answers(copy.outstanding)[kind][0], next(_SERIAL), copy))
                else:
                    world.stub.cloud.telemetry.saw(PLACE, REFUSED)
            end(now_s)
            clock.jump(now_s, world)
            world.life.step(now_s, since_s=now_s - PERIOD_S)
            clock.jump(now_s, world)
        yield len(running.copies(PLACE)), fleet.desired if fleet else 0


def _deploy(world: World, scaling: ScalingSpec, day: dict[str, Any]) -> None:
    """Create the endpoint and its scaling as the stacks do."""
    component(world, least=scaling.min_copies, most=scaling.max_copies, minutes=IDLE_MINUTES)
    world.stub.cloud.faults.change({"instance_start_s": float(day["instance_s"]), "startup_s": float(day["copy_s"])})
    cooldowns = {"ScaleOutCooldown": scaling.scale_out_cooldown_s, "ScaleInCooldown": scaling.scale_in_cooldown_s}
    tracking(world, CHAT, TARGET, **CONCURRENCY, **cooldowns)
    if scaling.goes_to_zero:
        step_policy(world, CHAT, REFUSED_AT_ZERO)
    for each in scaling.schedules:
        action = {"ScheduledActionName": each.name, "Schedule": each.schedule, "Timezone": each.timezone or "UTC"}
        limits = (("MinCapacity", each.min_copies), ("MaxCapacity", each.max_copies))
        wanted = {name: value for name, value in limits if value is not None}
        world.call("PutScheduledAction", **CHAT, **action, ScalableTargetAction=wanted)


def both(day: dict[str, Any]) -> tuple[Simulation, list[tuple[int, int]]]:
    """Return a day as it is simulated, and the copies and instances of each minute in the embedded AWS."""
    loaded = load_spec(ROOT / "endpoints/llama-2-7b-chat.yaml", "dev", environments=ROOT / "environments")
    plan, scaling = read_locked_plan(loaded), ScalingSpec.model_validate(day["scaling"])
    held = plan.target_concurrency_per_copy.model_copy(update={"value": TARGET})
    plan = plan.model_copy(update={"target_concurrency_per_copy": held, "max_instances": scaling.max_copies})
    loaded = replace(loaded, endpoint=loaded.endpoint.model_copy(update={"scaling": scaling}))
    traffic = traffic_source("", Traffic.model_validate({"timezone": "Europe/Berlin", "profile": day["profile"]}))
    starts = start_parts(plan, loaded, instance_s=day["instance_s"], copy_s=day["copy_s"])
    simulated = simulate_days(loaded, plan, traffic, days=1, seed=1, starts=starts)
    service = planned_service(plan, answer_lengths(loaded.lengths.output), ())
    clock = JumpingClock(midnight_s(traffic.start, traffic.zone))
    with TemporaryDirectory() as folder, scaling_world(Path(folder), clock) as world:
        _deploy(world, scaling, day)
        embedded = [*embedded_minutes(world, clock, traffic.minutes(1, 1), cache(service.answers))]
    return simulated, embedded
