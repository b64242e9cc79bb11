"""Run the embedded AWS: `python -m seatrial_laptop.aws --port P --state-dir DIR`; `seatrial_laptop.lifecycle` does.

Every ten virtual seconds samples are taken, alarms evaluated and copies scaled.
"""

from __future__ import annotations

import argparse
import asyncio
import faulthandler
import math
import os
import secrets
import signal
import string
import sys
import threading
import traceback
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar, cast

from seatrial_laptop.aws.alarms import Evaluation, MiniStackAlarms, take_over_evaluation
from seatrial_laptop.aws.autoscaling.scaling_actions import ScalingActions
from seatrial_laptop.aws.runtime.sampling import take_samples
from seatrial_laptop.aws.runtime.telemetry import SAMPLE_S
from seatrial_laptop.environment import engine_environment, function_environment
from seatrial_laptop.loopback import HOST
from seatrial_laptop.state import ACCOUNT, LocalAws, StateLock, hold_lock, server_scratch_folder

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping
    from contextvars import Context

    from hypercorn.config import Config
    from hypercorn.typing import ASGIFramework

    from seatrial_laptop.aws.autoscaling.scalable_targets import Scaling
    from seatrial_laptop.aws.control_plane.cloud import Cloud


PRIVATE: Final = 0o077
"""The umask: what it and its engines and functions write is for the user alone."""
KEY_ID_SIGNS: Final = string.ascii_uppercase + "234567"
WATCH_S: Final = 0.5
LONGEST_END_S: Final = 1.0
"""How long requests may end after the stop; more than hypercorn's own `graceful_timeout`."""


@dataclass(frozen=True, slots=True)
class EmbeddedAwsArguments:
    """The command line."""

    port: int
    account: str
    state_dir: Path
    verbose: bool


def _main() -> int:
    """Serve until a signal, or until the state folder no longer leads here; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m seatrial_laptop.aws", description="the embedded AWS")
    parser.add_argument("--port", type=int, required=True, help="the loopback port to listen on")
    parser.add_argument("--account", default=ACCOUNT, help="the account that it is")
    parser.add_argument("--state-dir", type=Path, required=True, help="where state and logs are kept")
    parser.add_argument("--verbose", action="store_true", help="log every request")
    arguments = EmbeddedAwsArguments(**vars(parser.parse_args()))
    # Before anything is written: the folder will hold the access key.
    os.umask(PRIVATE)
    lock = hold_lock(arguments.state_dir)
    if lock is None:
        sys.stderr.write(f"an embedded AWS is already running with the state of {arguments.state_dir}\n")
        return 1
    key_id, secret = new_access_key_id(), secrets.token_urlsafe(32)
    process = LocalAws(os.getpid(), arguments.port, key_id, secret, arguments.account)
    scratch = server_scratch_folder(arguments.state_dir)
    (scratch / "home").mkdir(parents=True)
    engines = engine_environment()
    # Functions inherit what is left.
    os.environ.clear()
    os.environ.update(function_environment(process, scratch=scratch, verbose=arguments.verbose))
    with lock:
        # `asyncio.run` would wait for threads that await functions
        asyncio.new_event_loop().run_until_complete(_serve(arguments, process, lock, engines))
        if lock.is_ours():
            lock.clean()
    sys.stdout.flush()
    # MiniStack leaves threads that are not waited for.
    os._exit(0)


T = TypeVar("T")
_running: Final[set[asyncio.Task[object]]] = set()


def kept_task(
    loop: asyncio.AbstractEventLoop,
    work: Coroutine[object, object, T],
    /,
    *,
    name: str | None = None,
    context: Context | None = None,
) -> asyncio.Task[T]:
    """Make a task that lives until it is done.

    MiniStack keeps no reference to the task of a stack's operation, and asyncio's own are weak: the garbage collector
    may end such a task in the middle (https://docs.python.org/3/library/asyncio-task.html#asyncio.create_task).
    """
    task = asyncio.Task(work, loop=loop, name=name, context=context)
    _running.add(task)
    task.add_done_callback(_running.discard)
    return task


def new_access_key_id() -> str:
    """Return a random access key ID of the form that AWS gives to users."""
    return "AKIA" + "".join(secrets.choice(KEY_ID_SIGNS) for _ in range(16))


async def _serve(
    arguments: EmbeddedAwsArguments, process: LocalAws, lock: StateLock, engines: Mapping[str, str]
) -> None:
    from hypercorn.asyncio import serve  # noqa: PLC0415 (after the lock is held: heavy)
    from ministack.app import app as ministack  # noqa: PLC0415 (after the lock is held: heavy)
    from ministack.core import lambda_runtime  # noqa: PLC0415 (after the lock is held: heavy)

    from seatrial_laptop.aws.autoscaling.scalable_targets import Scaling  # noqa: PLC0415 (after the lock is held: heavy)
    from seatrial_laptop.aws.cloudformation.register import register_types  # noqa: PLC0415 (after the lock is held: heavy)
    from seatrial_laptop.aws.control_plane.cloud import open_cloud  # noqa: PLC0415 (after the lock is held: heavy)
    from seatrial_laptop.aws.control_plane.sagemaker import visible_tags_of  # noqa: PLC0415 (after the lock is held: heavy)
    from seatrial_laptop.aws.functions import run_functions_as_aws  # noqa: PLC0415 (after the lock is held: heavy)
    from seatrial_laptop.aws.gateway.access_control import AccessControl  # noqa: PLC0415 (after the lock is held: heavy)
    from seatrial_laptop.aws.gateway.gateway import Gateway, Throttling  # noqa: PLC0415 (after the lock is held: heavy)
    from seatrial_laptop.aws.object_expiry import start_expiry  # noqa: PLC0415 (after the lock is held: heavy)
    from seatrial_laptop.aws.rights import evaluate_sessions, may_describe_alarm  # noqa: PLC0415 (after the lock is held: heavy)
    from seatrial_laptop.aws.runtime.sampling import start_publishing  # noqa: PLC0415 (after the lock is held: heavy)
    from seatrial_laptop.aws.service_catalog import Catalog  # noqa: PLC0415 (after the lock is held: heavy)

    # Tells in the log where every thread is.
    faulthandler.register(signal.SIGUSR1)
    asyncio.get_running_loop().set_task_factory(kept_task)  # type: ignore[arg-type] # MiniStack has no generators as tasks
    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    alarm_state = MiniStackAlarms().state
    cloud = open_cloud(arguments.state_dir, engines, alarm_state=alarm_state, reads_alarm=may_describe_alarm)
    scaling = Scaling(cloud.store, date_s=cloud.clock.date_s)
    catalog = Catalog()
    register_types(cloud, scaling, catalog)
    evaluate_sessions()
    run_functions_as_aws(cloud.clock, cloud.faults, server_scratch_folder(arguments.state_dir))
    lock.write_state(process)
    start_publishing(cloud)
    start_life(cloud, scaling)
    start_expiry(cloud.clock, cloud.faults)
    watch = asyncio.create_task(_watch(lock, stop))
    try:
        behind = Throttling(cloud.faults, Gateway(cloud, scaling, catalog, ministack))
        app = AccessControl(process, partial(visible_tags_of, cloud), behind, cloud.clock.aws_date_s)
        serving = serve(cast("ASGIFramework", app), _server_config(arguments), shutdown_trigger=stop.wait)
        await _until_stopped(asyncio.create_task(serving), stop)
    finally:
        watch.cancel()
        cloud.running.close()
        # Ends every function.
        lambda_runtime.reset()


def _server_config(arguments: EmbeddedAwsArguments) -> Config:
    from hypercorn.config import Config  # noqa: PLC0415 (after the lock is held: heavy)

    config = Config()
    config.bind = [f"{HOST}:{arguments.port}"]
    config.loglevel = "INFO" if arguments.verbose else "WARNING"
    config.accesslog = "-" if arguments.verbose else None
    # No query: a presigned one is a credential.
    config.access_log_format = "%(m)s %(U)s %(s)s"
    config.graceful_timeout = 0.5
    config.shutdown_timeout = 2.0
    return config


async def _watch(lock: StateLock, stop: asyncio.Event) -> None:
    """Stop when the state folder is gone or another's: `seatrial local down` would not find this process any more."""
    while lock.is_ours():  # noqa: ASYNC110 (no event comes when a file is changed)
        await asyncio.sleep(WATCH_S)
    sys.stderr.write("the state folder was removed or changed: the embedded AWS stops\n")
    stop.set()


async def _until_stopped(serving: asyncio.Task[None], stop: asyncio.Event) -> None:
    """Wait until the server has ended, after the stop a second at most: it waits for requests that await a function."""
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
    await asyncio.wait({serving}, timeout=LONGEST_END_S)
    if serving.done():
        serving.result()


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


if __name__ == "__main__":
    sys.exit(_main())
