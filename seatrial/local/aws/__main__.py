"""Run the embedded AWS: `python -m seatrial.local.aws --port P --state-dir DIR`; `seatrial.local.lifecycle` does."""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from seatrial.local.environment import server_environment
from seatrial.local.loopback import HOST
from seatrial.local.state import RunningProcess, hold_lock, scratch_folder, write_state

if TYPE_CHECKING:
    from hypercorn.typing import ASGIFramework


LONGEST_END_S: Final = 1.0
"""How long requests may end after the stop; more than hypercorn's own `graceful_timeout`."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """The command line."""

    port: int
    state_dir: Path
    verbose: bool


def main() -> int:
    """Serve until a signal; return the exit status."""
    arguments = _arguments()
    lock = hold_lock(arguments.state_dir)
    if lock is None:
        sys.stderr.write(f"an embedded AWS runs already with the state of {arguments.state_dir}\n")
        return 1
    os.environ.update(server_environment(arguments.port, verbose=arguments.verbose))
    os.environ.pop("PYTHONPATH", None)  # a Lambda function must not find what its package lacks
    with lock:
        asyncio.new_event_loop().run_until_complete(_serve(arguments))  # `run` waits for threads that await functions
        shutil.rmtree(scratch_folder(arguments.state_dir), ignore_errors=True)
    sys.stdout.flush()
    os._exit(0)  # MiniStack leaves threads that nobody waits for


async def _serve(arguments: Arguments) -> None:
    from hypercorn.asyncio import serve  # noqa: PLC0415 (after the lock is held: heavy)
    from hypercorn.config import Config  # noqa: PLC0415 (after the lock is held: heavy)
    from ministack.app import app as ministack  # noqa: PLC0415 (after the lock is held: heavy)
    from ministack.core import lambda_runtime  # noqa: PLC0415 (after the lock is held: heavy)

    from seatrial.local.aws.autoscaling import Scaling  # noqa: PLC0415 (after the lock is held: heavy)
    from seatrial.local.aws.cloud import open_cloud  # noqa: PLC0415 (after the lock is held: heavy)
    from seatrial.local.aws.cloudformation import register_types  # noqa: PLC0415 (after the lock is held: heavy)
    from seatrial.local.aws.gateway import Gateway  # noqa: PLC0415 (after the lock is held: heavy)

    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    cloud = open_cloud(arguments.state_dir)
    scaling = Scaling(cloud.store)
    register_types(cloud, scaling)
    config = Config()
    config.bind = [f"{HOST}:{arguments.port}"]
    config.loglevel = "INFO" if arguments.verbose else "WARNING"
    config.accesslog = "-" if arguments.verbose else None
    config.graceful_timeout = 0.5
    config.shutdown_timeout = 2.0
    write_state(arguments.state_dir, RunningProcess(pid=os.getpid(), port=arguments.port))
    try:
        app = cast("ASGIFramework", Gateway(cloud, scaling, ministack))
        await _until_stopped(asyncio.create_task(serve(app, config, shutdown_trigger=stop.wait)), stop)
    finally:
        cloud.fleets.close()
        lambda_runtime.reset()  # ends every function


async def _until_stopped(serving: asyncio.Task[None], stop: asyncio.Event) -> None:
    """Wait until the server has ended, after the stop a second at most: it waits for requests that await a function."""
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
    await asyncio.wait({serving}, timeout=LONGEST_END_S)
    if serving.done():
        serving.result()


def _arguments() -> Arguments:
    parser = argparse.ArgumentParser(prog="python -m seatrial.local.aws", description="the embedded AWS")
    parser.add_argument("--port", type=int, required=True, help="the loopback port to listen on")
    parser.add_argument("--state-dir", type=Path, required=True, help="where state and logs are kept")
    parser.add_argument("--verbose", action="store_true", help="log every request")
    return Arguments(**vars(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
