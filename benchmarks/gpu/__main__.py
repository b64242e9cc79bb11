"""Check the planner on the GPU at hand: vLLM with dummy weights under known loads, a JSON line for each level."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.request import ProxyHandler, build_opener

from benchmarks.gpu.compare import compared_lines, is_whole
from seatrial_base import __version__
from seatrial_base.errors import BenchError
from seatrial_base.terminal import interrupt_noted, run_command_line
from seatrial_load.cli.requests import Mistakes, server_request
from seatrial_load.documents.result import TrialResult
from seatrial_load.prompts.synthetic import WORDS
from seatrial_load.trial.run import run_trial

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from seatrial_load.documents.progress import TrialProgress
    from seatrial_load.documents.request import TrialRequest

    Json = dict[str, Any]

DATA: Final[Json] = json.loads((Path(__file__).parent / "runs.json").read_text(encoding="utf-8"))
RUNS: Final[dict[str, Json]] = {run["run"]: run for run in DATA["runs"]}
FIGURES: Final = ("ttft_ms mean", "ttft_ms p50", "ttft_ms p95", "tpot_ms mean", "ms_per_token p90")
BLOCK_TOKENS: Final = 16  # of vLLM's prefix cache
LONGEST_LEVEL_S, LEAST_LEVEL_S = 90.0, 3.0
BEFORE_S, CLOSING_S = 3.0, 6.0  # what the load client does before its budget begins; what servers take to end
SIMULATED: Final = {"instance_type": "none (simulated)"}
DEVICE: Final = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0] or "0"


def main() -> int:
    """Measure, compare, and return 0 when a level is whole, else 1."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("seconds", type=float, help="time limit, the servers' starts included")
    parser.add_argument("models", help=f"one or more of {', '.join(DATA['models'])}, with commas between them")
    parser.add_argument("--runs", default=",".join(RUNS), help="numbers of runs.json, as 1,3b; default: all")
    parser.add_argument("--out", type=Path, default=Path("gpu-rows"), help="folder of rows.jsonl and the servers' logs")
    parser.add_argument("--engine-command", default="vllm serve", help="how vLLM's server is started")
    parser.add_argument("--simulated", action="store_true", help="no GPU: the command starts what stands for vLLM")
    given = parser.parse_args()
    until_s, names, runs = time.monotonic() + given.seconds - CLOSING_S, given.models.split(","), given.runs.split(",")
    unknown = ", ".join(sorted({*names} - {*DATA["models"]} | {*runs} - {*RUNS}))
    command, servers = shlex.split(given.engine_command), {} if unknown else schedule(names, runs)
    gpu = SIMULATED if given.simulated else gpu_at_hand()
    if not servers:
        parser.exit(2, f"unknown: {unknown}\n" if unknown else "none of the runs has the model\n")
    if not gpu:
        parser.exit(2, "no GPU at hand: nvidia-smi names none (--simulated tries the way without one)\n")
    if not command or shutil.which(command[0]) is None:
        parser.exit(2, f"no vLLM at hand: there is no {given.engine_command!r}; install it, or give --engine-command\n")
    signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGINT))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    rows: list[Json] = []
    try:
        for (name, options), loads in servers.items():
            with closing(measured_rows(command, name, options, loads, given.out, until_s)) as measured:
                for row in measured:
                    rows.append(gpu | row)
                    with (given.out / "rows.jsonl").open("a", encoding="utf-8") as file:
                        file.write(f"{json.dumps(rows[-1])}\n")
    except TimeoutError:
        sys.stderr.write(f"the {given.seconds:g} s are over: what is not in the table was not measured\n")
    print("\n".join(compared_lines(rows)) if rows else "nothing was measured")
    return int(not any(map(is_whole, rows)))


def schedule(names: Sequence[str], runs: Sequence[str]) -> dict[tuple[str, tuple[str, ...]], list[Json]]:
    """Return the levels of each server, by model and options, in the order of the models and of the runs."""
    servers: dict[tuple[str, tuple[str, ...]], list[Json]] = {}
    for name, run in ((name, RUNS[run]) for name in names for run in RUNS if run in runs):
        for load in run["loads"] if name in run["models"] else ():
            kind = "levels" if "levels" in load else "rate"
            one = servers.setdefault((name, tuple(run.get("options", ()))), [])
            one.extend({"run": run["run"], **load, kind: value} for value in load[kind])
    return servers


def gpu_at_hand() -> Json:
    """Return the first visible GPU in its driver's words; nothing where there is none."""
    query = ["nvidia-smi", "-i", DEVICE, "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    try:
        text = subprocess.run(query, capture_output=True, text=True, check=True, timeout=30).stdout
        return dict(zip(("instance_type", "gpu_memory", "driver"), text.splitlines()[0].split(", "), strict=True))
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return {}


def measured_rows(  # noqa: PLR0917 (of the machine, of the server, of the whole)
    command: Sequence[str], name: str, options: Sequence[str], loads: Sequence[Json], out: Path, until_s: float
) -> Generator[Json]:
    """Yield a row for each level of a server, until it ends or too little time is left (TimeoutError)."""
    model = DATA["models"][name]
    place: Json = {"model": model["id"], "precision": model["precision"], "tp_degree": 1, "engine": "vllm"}
    place |= {"weights": "dummy", "options": model["options"], "changed_options": options}
    words, log = [*command, *model_arguments(out, name), *options], out / f"{name}.log"
    try:
        with server(words, log, until_s) as (url, version, check):
            for load in loads:
                left_s = min(LONGEST_LEVEL_S, until_s - time.monotonic() - BEFORE_S)
                if left_s < LEAST_LEVEL_S:
                    raise TimeoutError
                row = row_of(run_trial(request_of(url, load, model, left_s)), load)
                sys.stderr.write(f"{name}, run {load['run']}: {row['output_tok_s']} tok/s {row['cut']}\n")
                yield {**place, "engine_version": version, **load, **row}
                check()
    except BenchError as error:
        sys.stderr.write(f"{name}: {error}\n")


def request_of(url: str, load: Json, model: Json, seconds: float) -> TrialRequest:
    """Return the trial of seatrial-load that is one level."""
    written = {f"--{name.replace('_', '-')}": value for name, value in load.items() if name != "run"}
    written |= {"--url": f"{url}/v1", "--model": "m", "--budget": seconds / 60}
    if "levels" in load:
        written |= {"--levels": str(load["levels"]), "--requests": max(3, load["levels"] * 5 // 2)}
    else:
        written["--rate"] = str(load["rate"])
    request = server_request(written, Mistakes(frozenset(written)))
    # vLLM parses chats of gpt-oss, and streams nothing of random tokens.
    return replace(request, workload=replace(request.workload, schema=model.get("schema", "openai_chat")))


def row_of(result: TrialResult | TrialProgress, load: Json) -> Json:
    """Return what a row has of a level's result, with its load by the columns of `seatrial predict`."""
    shared = load.get("shared_prefix_tokens", 0) // BLOCK_TOKENS * BLOCK_TOKENS
    row: Json = {"concurrency": load.get("levels"), "rate_per_s": load.get("rate"), "failed": 0, "output_tok_s": None}
    row |= {"prefix_hit_rate": shared / load["input_tokens"], "harness": f"seatrial-load {__version__}"}
    if not isinstance(result, TrialResult) or not result.levels:
        return row | {"cut": result.stopped.because if result.stopped else "not measured"}
    one = result.levels[0]
    row |= {"cut": one.invalid_because, "requests": one.requests, "failed": one.requests - one.succeeded}
    row |= {"output_tok_s": one.output_tok_s, "engine_note": result.engine_note}
    row |= SIMULATED if result.engine_note else {}
    pairs = ((figure, getattr(one, figure.split()[0]), figure.split()[1]) for figure in FIGURES)
    return row | {figure.replace(" ", "_"): getattr(seen, part) for figure, seen, part in pairs if seen is not None}


def model_arguments(out: Path, name: str) -> list[str]:
    """Write what vLLM reads of a model, without the hub, and return the arguments of its server."""
    model, folder = DATA["models"][name], out / "models" / name
    folder.mkdir(parents=True, exist_ok=True)
    # Each word of the load client is a token: prompts differ as its words do, and share no prefix unasked.
    words = ["<unk>", "<s>", "</s>", *dict.fromkeys(WORDS)]
    words += [f"t{number}" for number in range(len(words), model["config"]["vocab_size"])]
    vocabulary = {"type": "WordLevel", "vocab": {word: place for place, word in enumerate(words)}, "unk_token": "<unk>"}
    tokenizer = DATA["files"]["tokenizer"] | {"model": vocabulary}
    for file, document in {**DATA["files"], "config": model["config"], "tokenizer": tokenizer}.items():
        (folder / f"{file}.json").write_text(json.dumps(document), encoding="utf-8")
    served = [str(folder), "--served-model-name", "m", "--load-format", "dummy", "--disable-uvicorn-access-log"]
    return [*served, *model["options"]]


@contextmanager
def server(command: Sequence[str], log: Path, until_s: float) -> Iterator[tuple[str, str, Callable[[], None]]]:
    """Run a server; yield its URL, its version and a check that it runs; end all its processes whatever happens.

    Raises:
        BenchError: SEA501, it ended before it was ready; of the check, it ended.
        TimeoutError: It was not ready in time.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    url, ours = f"http://127.0.0.1:{port}", {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": DEVICE}
    environment = {**os.environ, **ours, "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}
    started: list[subprocess.Popen[bytes]] = []

    def check() -> None:
        if (status := started[0].poll()) is not None:
            message = f"the server ended with status {status}"
            raise BenchError.of("SEA501", message, where=log.as_posix(), hint="its log says why")

    try:
        # An interruption before the process is noted would leave it running.
        with log.open("ab") as out, interrupt_noted() as is_interrupted:
            words = [*command, "--host", "127.0.0.1", "--port", port]
            started += [subprocess.Popen(words, stdout=out, stderr=out, start_new_session=True, env=environment)]
        while _answer(f"{url}/health") is None:
            if is_interrupted():
                raise KeyboardInterrupt
            if time.monotonic() > until_s:
                raise TimeoutError
            check()
            time.sleep(0.1)
        yield url, json.loads(_answer(f"{url}/version") or "{}").get("version", ""), check
    finally:
        for process in started:
            try:
                process.terminate()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(CLOSING_S / 2)
            finally:  # vLLM's engine is a process of its own, and may outlive a server that died
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _answer(url: str) -> bytes | None:
    with suppress(OSError), build_opener(ProxyHandler({})).open(url, timeout=2) as response:
        return bytes(response.read())
    return None


if __name__ == "__main__":
    run_command_line(main)
