"""Local engines of one random model, its weights stored as a quantization asks for, without any AWS."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seatrial_load.payload.answer import read_answer
from seatrial_load.payload.schema import Schema
from seatrial_load.quality.answers import evaluation_answer, evaluation_body

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from seatrial_load.documents.request import EvaluationPrompt
    from seatrial_load.documents.result import EvaluationAnswer

IMAGE: Final = "r/djl-inference:0.36.0"
QUANTIZATIONS: Final = {"F16": "", "Q8_0": "fp8", "Q4_0": "awq"}
"""What the configuration asks for, by the GGUF type that the engine serves then."""
START_S: Final = 60.0
_LOOK_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class LocalEngine:
    """An engine that serves.

    Attributes:
        port: Its port on the loopback.
        process_id: Its process.
        weights_bytes: Size of the file that it serves.
        gguf_type: How the matrices are stored.
    """

    port: int
    process_id: int
    weights_bytes: int
    gguf_type: str

    def answers(self, prompts: Sequence[EvaluationPrompt], most_tokens: int) -> tuple[EvaluationAnswer, ...]:
        """Ask every prompt, one after another."""
        return tuple(
            evaluation_answer(
                prompt.id,
                read_answer(
                    Schema.LMI_ROLLING, asked(self.port, "/invocations", evaluation_body("lmi", prompt, most_tokens))
                ),
            )
            for prompt in prompts
        )


@contextmanager
def local_engine(gguf_type: str, folder: Path, model: str = "small") -> Iterator[LocalEngine]:
    """Start an engine, and end it afterwards.

    Args:
        gguf_type: `F16`, `Q8_0` or `Q4_0`.
        folder: An empty folder, for its model.
        model: `small` or `large`.
    """
    quantization = QUANTIZATIONS[gguf_type]
    quantized = {"OPTION_QUANTIZE": quantization} if quantization else {}
    variables = {**os.environ, "HF_MODEL_ID": "org/model", "SEATRIAL_LOCAL_MODEL": model, **quantized}
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = int(found.getsockname()[1])
    command = [sys.executable, "-m", "seatrial_laptop.engine", "--image", IMAGE, "--model-dir", str(folder)]
    command += ["--port", str(port), "--until-stdin-closes"]
    process = subprocess.Popen(command, env=variables, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    try:
        _await_ready(process, port)
        info = json.loads(asked(port, "/info"))
        yield LocalEngine(port, process.pid, info["weights_bytes"], info["gguf_type"])
    finally:
        process.terminate()
        process.wait()


def asked(port: int, path: str, body: bytes | None = None) -> bytes:
    """Return the body of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=START_S)
    try:
        connection.request("GET" if body is None else "POST", path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        content = answer.read()
    finally:
        connection.close()
    if answer.status != http.HTTPStatus.OK:
        raise RuntimeError(f"{path}: HTTP {answer.status}: {content[:200]!r}")
    return content


def _await_ready(process: subprocess.Popen[bytes], port: int) -> None:
    until_s = time.monotonic() + START_S
    while time.monotonic() < until_s and process.poll() is None:
        try:
            asked(port, "/ping")
        except (OSError, RuntimeError):
            time.sleep(_LOOK_S)
        else:
            return
    raise RuntimeError(f"the engine on port {port} does not serve (exit status {process.poll()})")
