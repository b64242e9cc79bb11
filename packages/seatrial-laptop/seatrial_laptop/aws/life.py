"""What happens by itself: every ten virtual seconds samples are taken, alarms evaluated and copies scaled."""

from __future__ import annotations

import math
import threading
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial_laptop.aws.alarms.alarm_book import Evaluation, MiniStackAlarms, take_over_evaluation
from seatrial_laptop.aws.autoscaling.scaling_actions import ScalingActions
from seatrial_laptop.aws.runtime.metric_history import SAMPLE_S
from seatrial_laptop.aws.runtime.sampling import take_samples

if TYPE_CHECKING:
    from seatrial_laptop.aws.autoscaling.scalable_targets import Scaling
    from seatrial_laptop.aws.control_plane.cloud import Cloud


@dataclass(frozen=True, slots=True)
class Life:
    """One step every ten virtual seconds."""

    cloud: Cloud
    evaluation: Evaluation
    actions: ScalingActions

    def step(self, now_s: float, *, since_s: float) -> None:
        """Take samples, evaluate alarms, scale, then release idle instances; `since_s` is when the last step was."""
        take_samples(self.cloud, now_s, since_s=since_s)
        self.evaluation.evaluate(now_s)
        self.actions.act(now_s)
        self.cloud.fleets.release_idle(now_s)

    def run(self) -> None:
        """Step for ever; when a step took longer than ten virtual seconds, the next one covers what was missed."""
        clock = self.cloud.clock
        last_s = math.floor(clock.now_s() / SAMPLE_S) * SAMPLE_S
        while True:
            next_s = (math.floor(clock.now_s() / SAMPLE_S) + 1) * SAMPLE_S
            clock.wait(next_s - clock.now_s(), is_idle=True)
            try:
                self.step(next_s, since_s=last_s)
            except Exception:  # noqa: BLE001 (the border of a thread)
                traceback.print_exc()
            last_s = next_s


def start_life(cloud: Cloud, scaling: Scaling) -> None:
    """Start the thread that does what happens by itself, until the process ends."""
    take_over_evaluation()
    book = MiniStackAlarms()
    life = Life(cloud, Evaluation(book, cloud.history), ScalingActions(cloud, scaling, book))
    threading.Thread(target=life.run, name="life", daemon=True).start()
