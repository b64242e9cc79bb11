"""Run one engine: `python -m seatrial_laptop.engine --image URI --model-dir DIR --port P`.

The process environment is the container's environment. A configuration that the real container refuses ends the
process with status 1 and one line on stderr.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from seatrial_base.errors import LocalError
from seatrial_base.text import printable
from seatrial_laptop.engine.container import ENGINE_NAME, Container
from seatrial_laptop.engine.family import read_settings
from seatrial_laptop.engine.llama import Llama
from seatrial_laptop.engine.weights import ServedWeights, served_weights
from seatrial_laptop.loopback import HOST, LIMIT_BYTES, TOKEN_VARIABLE
from seatrial_laptop.state import cache_dir

if TYPE_CHECKING:
    from seatrial_laptop.engine.settings import EngineSettings

BACKLOG = 512
END_S = 5.0


@dataclass(frozen=True, slots=True)
class EngineArguments:
    """The command line."""

    image: str
    model_dir: Path
    port: int
    until_stdin_closes: bool


def _main() -> int:
    """Run until a signal, or until stdin closes; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m seatrial_laptop.engine", description="a local LLM engine")
    parser.add_argument("--image", required=True, help="the URI of the container image that it stands for")
    parser.add_argument("--model-dir", type=Path, required=True, help="the unpacked model, which may be empty")
    parser.add_argument("--port", type=int, required=True, help="the loopback port to listen on")
    parser.add_argument("--until-stdin-closes", action="store_true", help="stop when the parent process is gone")
    arguments, token = EngineArguments(**vars(parser.parse_args())), os.environ.pop(TOKEN_VARIABLE, "")
    try:
        settings = read_settings(arguments.image, os.environ, arguments.model_dir)
        weights = served_weights(settings, arguments.model_dir, cache_dir())
    except LocalError as error:
        sys.stderr.write(f"{printable(str(error))}\n")
        return 1
    _say(f"engine: {ENGINE_NAME}")
    _say(f"configuration: {settings}")
    if settings.slots < settings.max_num_seqs:
        why = f"as many as the local engine holds with {settings.max_total_tokens:,} tokens each"
        _say(f"slots: {settings.slots}, {why}; requested: {settings.max_num_seqs}")
    _say(weights.sentence)
    asyncio.run(_serve(arguments, settings, weights, token))
    return 0


async def _serve(arguments: EngineArguments, settings: EngineSettings, weights: ServedWeights, token: str) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop.set)
    if arguments.until_stdin_closes:
        threading.Thread(target=_await_end_of_stdin, args=(loop, stop), daemon=True).start()
    container = Container(settings, weights, port=arguments.port, token=token)
    server = await asyncio.start_server(container.connected, HOST, arguments.port, limit=LIMIT_BYTES, backlog=BACKLOG)
    async with server:
        container.llama = await asyncio.to_thread(Llama, weights.path, settings)
        _say(f"ready: http://{HOST}:{arguments.port}")
        await stop.wait()
    _say("stopped")
    # llama.cpp's threads have nothing to save, and joining them takes a second.
    os._exit(0)


def _await_end_of_stdin(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    while os.read(sys.stdin.fileno(), 1):
        # Not through its buffer: Python aborts over one that a thread holds at the end.
        pass
    loop.call_soon_threadsafe(stop.set)
    time.sleep(END_S)
    # It hangs: its parent is gone, and nothing else would end it.
    os._exit(1)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(_main())
