"""Load clients side by side against one neutral server: what each takes in, at what cost, and how true its times are.

    make bench-load-client

Each client runs in a process of its own, one after the other. The server and whatever else the machine does share its
cores: compare the rows of one run, and trust CPU time more than rates.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.load_client.neutral_server import neutral_server, stats
from benchmarks.load_client.tools import missing_tools, tool_commands

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).parent.parent.parent
ROUNDS = 4
MANY_STREAMS = 1024
STREAMS = (128, 512, MANY_STREAMS)
REPEATS = 3
TIMEOUT_S = 150
OFFERED_TOK_S = 64 / (0.05 + 63 * 0.02)
HEAD = (
    f"{'client':34}{'streams':>8}{'offered':>9}{'tok/s':>9}{'CPU s/1k':>10}{'all in':>8}{'TTFT error ms':>20}"
    f"{'ITL error ms':>15}{'waited':>8}{'MiB':>7}"
)
UNDER = f"{'':34}{'':>8}{'tok/s':>9}{'':>9}{'loading':>10}{'':>8}{'p50 / p99':>20}{'p50 / p99':>15}{'':>8}{'':>7}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One run of one client; None is "not measured"."""

    client: str
    streams: int
    tok_s: float
    cpu_s_per_1k: float | None
    all_in_s_per_1k: float
    ttft_error_ms: tuple[float, float] | None
    itl_error_ms: tuple[float, float] | None
    run_delay: float | None
    peak_mib: float

    def __str__(self) -> str:
        return (
            f"{self.client:34}{self.streams:>8,}{self.streams * OFFERED_TOK_S:>9,.0f}{self.tok_s:>9,.0f}"
            f"{_number(self.cpu_s_per_1k, 3):>10}{self.all_in_s_per_1k:>8.3f}{_pair(self.ttft_error_ms):>20}"
            f"{_pair(self.itl_error_ms):>15}{'–' if self.run_delay is None else f'{self.run_delay:.0%}':>8}"
            f"{self.peak_mib:>7.0f}"
        )


def main() -> None:
    """Print the table; the last line is the summary."""
    print(f"load average before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores (ours at 512: median of {REPEATS})")
    print(f"{HEAD}\n{UNDER}")
    with tempfile.TemporaryDirectory() as folder, neutral_server(Path(folder)) as where:
        environment = {**os.environ, **where, "PYTHONPATH": str(ROOT)}
        ours = _ours(environment)
        _, theirs, _ = (row("boto3, threads", "boto3_threads", streams, environment) for streams in STREAMS)
        for streams in STREAMS:
            row("aiohttp", "aiohttp_tasks", streams, environment)
        for name, streams, command in tool_commands(environment["HTTP_PORT"], Path(folder)):
            _tool(name, streams, command, environment)
    for line in missing_tools():
        print(line)
    print(f"import and client start: {start_cpu_s(5):.3f} CPU s (median of 5, the interpreter's own start included)")
    assert ours.cpu_s_per_1k is not None  # noqa: S101 (tells the type checker)
    assert theirs.cpu_s_per_1k is not None  # noqa: S101 (likewise)
    print(
        f"ours at 512 TLS streams: {ours.tok_s:,.0f} tok/s of {512 * OFFERED_TOK_S:,.0f}, {ours.cpu_s_per_1k:.4f} CPU s"
        f" per 1k tokens; boto3: {ours.tok_s / theirs.tok_s:.1f} x its tok/s,"
        f" {ours.cpu_s_per_1k / theirs.cpu_s_per_1k:.2f} x its CPU"
    )


def _ours(environment: Mapping[str, str]) -> Row:
    few, some, many = STREAMS
    row("ours", "ours", few, environment)
    runs = [row("ours", "ours", some, environment) for _ in range(REPEATS)]
    row("ours", "ours", many, environment)
    row("ours, 2 processes", "ours", many, environment, workers=2)
    return sorted(runs, key=lambda run: run.tok_s)[REPEATS // 2]


def row(
    name: str,
    module: str,
    streams: int,
    environment: Mapping[str, str],
    *,
    workers: int = 1,
    rounds: int | None = None,
) -> Row:
    """Run a client in a process of its own, print its row and return it.

    Args:
        name: Its name in the table.
        module: Its module below `clients`.
        streams: Requests in flight.
        environment: Where the server is.
        workers: Processes of ours.
        rounds: Requests of each stream; the table's where not given.
    """
    if rounds is None:
        rounds = ROUNDS if streams < MANY_STREAMS or module == "ours" else ROUNDS // 2
    command = [sys.executable, "-m", f"benchmarks.load_client.clients.{module}"]
    command += [str(streams), str(streams * rounds), str(workers)]
    output, cpu_s, peak_mib = _run(command, environment)
    told = json.loads(output.splitlines()[-1])
    measured = Row(
        client=name,
        streams=streams,
        tok_s=told["tok_s"],
        cpu_s_per_1k=told.get("cpu_s_per_1k"),
        all_in_s_per_1k=cpu_s / told["tokens"] * 1e3,
        ttft_error_ms=told.get("ttft_error_ms"),
        itl_error_ms=told.get("itl_error_ms"),
        run_delay=told["run_delay"],
        peak_mib=max(peak_mib, told.get("worker_mib", 0.0)),
    )
    print(measured, flush=True)
    return measured


def _tool(name: str, streams: int, command: list[str], environment: Mapping[str, str]) -> None:
    """Run a public tool: its rate is the server's own count, since tools count differently; its CPU is all it used."""
    stats(environment)
    _, cpu_s, peak_mib = _run(command, environment)
    told = stats(environment)
    tokens = told["tokens"]
    row = Row(
        client=name,
        streams=streams,
        tok_s=tokens / told["seconds"] if told["seconds"] else 0.0,
        cpu_s_per_1k=None,
        all_in_s_per_1k=cpu_s / tokens * 1e3 if tokens else 0.0,
        ttft_error_ms=None,
        itl_error_ms=None,
        run_delay=None,
        peak_mib=peak_mib,
    )
    print(f"{row}  (at most {told['peak_in_flight']:.0f} in flight, plain HTTP)", flush=True)


def _run(command: list[str], environment: Mapping[str, str]) -> tuple[str, float, float]:
    """Run a command to its end; return its output, CPU seconds and peak memory (MiB) with its children's."""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=errors)
        give_up_s = time.monotonic() + TIMEOUT_S
        while (ended := os.wait4(process.pid, os.WNOHANG))[0] == 0:
            if time.monotonic() > give_up_s:
                process.kill()
            time.sleep(0.05)
        _, status, used = ended
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        if process.returncode:
            raise SystemExit(f"{' '.join(map(str, command))} failed:\n{errors.read()[-2000:]}")
        return output.read(), used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def start_cpu_s(times: int) -> float:
    """Return the CPU seconds of a process that imports the client and could dial, as a Lambda function does first.

    Args:
        times: So often, of which the median counts.
    """
    code = (
        "from seatrial_load.client.worker_pool import load_with_workers;"
        " from seatrial_load.client.connection import Address, dialer;"
        " dialer(Address(tls=True, host='localhost', port=443, path='/'), ())"
    )
    return statistics.median(_run([sys.executable, "-c", code], os.environ)[1] for _ in range(times))


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _pair(values: tuple[float, float] | None) -> str:
    return "–" if values is None else f"{values[0]:,.1f} / {values[1]:,.1f}"


if __name__ == "__main__":
    main()
