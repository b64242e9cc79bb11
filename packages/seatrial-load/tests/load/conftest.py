"""A fake SageMaker runtime on loopback, whose endpoint names choose its manners, and makers of documents."""

from __future__ import annotations

import asyncio
import itertools
import json
import shutil
import ssl
import subprocess
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from seatrial_load.aws.container_metrics import MetricSeries
from seatrial_load.decode.event_stream import encode_frame
from seatrial_load.decode.response import RequestRecord
from seatrial_load.documents.distribution import Distribution
from seatrial_load.documents.request import Expected, Load, Objective, TrialRequest, TrialTarget, Workload
from seatrial_load.documents.result import LevelResult
from seatrial_load.documents.stop import Void, VoidReason

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter
    from collections.abc import Awaitable, Callable, Iterator, Mapping
    from pathlib import Path

    Manner = Callable[[StreamWriter, dict[str, int]], Awaitable[bool]]

GAP_S = 0.002
STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/vnd.amazon.eventstream\r\nTransfer-Encoding: chunked\r\n"
    b"x-seatrial-engine: fake runtime of the tests\r\n\r\n"
)
EVENT = {":message-type": "event", ":event-type": "PayloadPart", ":content-type": "application/octet-stream"}


def lagging(because: str) -> Void:
    """Return that a level is void: the client lagged."""
    return Void(reasons=(VoidReason.READ_LATE,), because=because)


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def part(data: bytes) -> bytes:
    return chunk(encode_frame(EVENT, data))


def lmi_lines(tokens: int) -> list[bytes]:
    lines: list[dict[str, object]] = [
        {"index": 0, "token": {"id": n, "text": f" ü{n}", "logprob": -0.5}, "generated_text": None, "details": None}
        for n in range(tokens)
    ]
    details = {"finish_reason": "length", "generated_tokens": tokens + 1, "input_length": 7}
    lines[-1] |= {"generated_text": "".join(f" ü{n}" for n in range(tokens)), "details": details}
    return [json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in lines]


def answer(status: str, document: object, *headers: str) -> bytes:
    body = json.dumps(document).encode()
    lines = "".join(f"{line}\r\n" for line in (*headers, f"Content-Length: {len(body)}"))
    return f"HTTP/1.1 {status}\r\n{lines}\r\n".encode() + body


async def stream(writer: StreamWriter, asked: dict[str, int]) -> bool:
    writer.write(STREAM_HEAD)
    for line in lmi_lines(asked["max_new_tokens"]):
        await asyncio.sleep(GAP_S)
        middle = len(line) // 2
        writer.write(part(line[:middle]) + part(line[middle:]))
    writer.write(b"0\r\n\r\n")
    return True


async def garbled(writer: StreamWriter, asked: dict[str, int]) -> bool:
    tokens: list[dict[str, object]] = [{"token": {"id": 0, "text": "!"}} for _ in range(asked["max_new_tokens"])]
    tokens[-1] |= {"generated_text": "!" * len(tokens), "details": {"finish_reason": "length"}}
    lines = "".join(f"{json.dumps(token)}\n" for token in tokens)
    writer.write(STREAM_HEAD + part(lines.encode()) + b"0\r\n\r\n")
    return True


async def whole(writer: StreamWriter, asked: dict[str, int]) -> bool:
    details = {"generated_tokens": asked["max_new_tokens"]}
    writer.write(answer("200 OK", {"generated_text": "a b", "details": details}))
    return True


async def throttled(writer: StreamWriter, _asked: dict[str, int]) -> bool:
    writer.write(answer("429 Too Many", {"message": "Rate exceeded"}, "x-amzn-ErrorType: ThrottlingException"))
    return True


async def model_error(writer: StreamWriter, _asked: dict[str, int]) -> bool:
    document = {"OriginalStatusCode": 500, "OriginalMessage": "CUDA out of memory", "Message": "Received server error"}
    writer.write(answer("424 Failed Dependency", document, "x-amzn-ErrorType: ModelError:http://internal/"))
    return True


async def early_close(writer: StreamWriter, _asked: dict[str, int]) -> bool:
    writer.write(STREAM_HEAD + b"".join(part(line) for line in lmi_lines(5)[:3]))
    return False


async def stall(writer: StreamWriter, _asked: dict[str, int]) -> bool:
    writer.write(STREAM_HEAD + part(lmi_lines(5)[0]))
    await writer.drain()
    await asyncio.sleep(5)
    return False


async def exception_frame(writer: StreamWriter, _asked: dict[str, int]) -> bool:
    headers = {":message-type": "exception", ":exception-type": "ModelStreamError"}
    frame = encode_frame(headers, b'{"ErrorCode":"StreamBroken"}')
    writer.write(STREAM_HEAD + part(lmi_lines(5)[0]) + chunk(frame) + b"0\r\n\r\n")
    return True


async def silent_close(writer: StreamWriter, asked: dict[str, int]) -> bool:
    """Close the kept-alive connection after each answer without having said so."""
    await stream(writer, asked)
    return False


async def announced_close(writer: StreamWriter, asked: dict[str, int]) -> bool:
    document = {"generated_text": "a", "details": {"generated_tokens": asked["max_new_tokens"]}}
    writer.write(answer("200 OK", document, "Connection: close"))
    return False


async def until_close(writer: StreamWriter, asked: dict[str, int]) -> bool:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/jsonlines\r\n\r\n")
    writer.write(b"".join(lmi_lines(asked["max_new_tokens"])))
    return False


async def garbage(writer: StreamWriter, _asked: dict[str, int]) -> bool:
    writer.write(b"SSH-2.0-OpenSSH_9.7\r\n")
    await writer.drain()
    await asyncio.sleep(5)
    return False


REFUSALS = iter(range(3))


async def unready_at_first(writer: StreamWriter, asked: dict[str, int]) -> bool:
    """Refuse the first three requests of the session for lack of a copy."""
    if next(REFUSALS, None) is None:
        return await stream(writer, asked)
    document = {"message": "Inference component has no capacity to process this request"}
    writer.write(answer("400 Bad Request", document, "x-amzn-ErrorType: ValidationError"))
    return True


DENIALS = iter(range(2))


async def denied(writer: StreamWriter, _asked: dict[str, int]) -> bool:
    document = {"message": "User: arn:aws:sts::1:assumed-role/x is not authorized to perform: sagemaker:InvokeEndpoint"}
    writer.write(answer("403 Forbidden", document, "x-amzn-ErrorType: AccessDeniedException"))
    return True


async def denied_at_first(writer: StreamWriter, asked: dict[str, int]) -> bool:
    """Deny the first two requests of the session: the tags that the right needs come later."""
    return await (stream if next(DENIALS, None) is None else denied)(writer, asked)


TURNS = itertools.count(1)


async def every_third_fails(writer: StreamWriter, asked: dict[str, int]) -> bool:
    return await (model_error if next(TURNS) % 3 == 0 else stream)(writer, asked)


MANNERS: dict[str, Manner] = {
    "denied": denied,
    "denied-at-first": denied_at_first,
    "unready-at-first": unready_at_first,
    "every-third-fails": every_third_fails,
    "stream": stream,
    "whole": whole,
    "garbled": garbled,
    "throttled": throttled,
    "model-error": model_error,
    "early-close": early_close,
    "stall": stall,
    "exception-frame": exception_frame,
    "silent-close": silent_close,
    "announced-close": announced_close,
    "until-close": until_close,
    "garbage": garbage,
}


async def serve_connection(reader: StreamReader, writer: StreamWriter) -> None:
    try:
        keep = True
        while keep:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            length = int(head.lower().partition("content-length:")[2].partition("\r\n")[0])
            asked = json.loads(await reader.readexactly(length))["parameters"]
            keep = await MANNERS[head.split("/")[2]](writer, asked)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass  # the client went away, as clients do
    finally:
        writer.close()


async def stop(server: asyncio.Server) -> None:
    server.close()
    open_connections = asyncio.all_tasks() - {asyncio.current_task()}
    for task in open_connections:
        task.cancel()
    await asyncio.gather(*open_connections, return_exceptions=True)


@contextmanager
def serving(tls: ssl.SSLContext | None) -> Iterator[int]:
    """Serve on a free port of the loopback until the block ends."""
    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(asyncio.start_server(serve_connection, "127.0.0.1", 0, ssl=tls))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        asyncio.run_coroutine_threadsafe(stop(server), loop).result(5)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(5)
        loop.close()


@pytest.fixture(scope="session")
def runtime_url() -> Iterator[str]:
    with serving(None) as port:
        yield f"http://127.0.0.1:{port}"


def certified(pem: Path, *options: str, name: str = "localhost") -> Path:
    """Make a certificate of localhost, signed by itself unless told by whom; its private key lies in the same file."""
    openssl = shutil.which("openssl")
    assert openssl is not None, "the tests of TLS need the openssl command"
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    names = ("-days", "3", "-subj", f"/CN={name}", "-addext", "subjectAltName=DNS:localhost")
    files = ("-keyout", str(pem), "-out", str(pem.with_suffix(".crt")))
    subprocess.run([openssl, "req", "-x509", *key, *names, *options, *files], check=True, capture_output=True)
    pem.write_bytes(pem.read_bytes() + pem.with_suffix(".crt").read_bytes())
    return pem


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certified(tmp_path_factory.mktemp("tls") / "localhost.pem")


@pytest.fixture(scope="session")
def company(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a company's authority as proxies have them: without what RFC 5280 asks of one."""
    folder = tmp_path_factory.mktemp("company")
    (folder / "plain.cnf").write_text("[req]\ndistinguished_name = name\n[name]\n")
    plain = ("-config", str(folder / "plain.cnf"), "-addext", "basicConstraints=CA:TRUE")
    return certified(folder / "authority.pem", *plain, name="A company")


@pytest.fixture(scope="session")
def company_tls(company: Path, tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    """Return the TLS of a server whose certificate the company's authority has signed."""
    pem = tmp_path_factory.mktemp("signed") / "localhost.pem"
    return server_tls(certified(pem, "-CA", str(company), "-CAkey", str(company)))


def server_tls(certificate: Path) -> ssl.SSLContext:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    return tls


@pytest.fixture(scope="session")
def tls_port(certificate: Path) -> Iterator[int]:
    with serving(server_tls(certificate)) as port:
        yield port


@pytest.fixture(scope="session")
def company_port(company_tls: ssl.SSLContext) -> Iterator[int]:
    with serving(company_tls) as port:
        yield port


def make_request(**changes: object) -> TrialRequest:
    fields: dict[str, object] = {
        "endpoint": "chat",
        "environment": "dev",
        "plan_digest": "0123456789abcdef",
        "target": TrialTarget(endpoint_name="stream", inference_component="chat-copy", region="eu-west-1"),
        "expected": Expected(endpoint_config_name="config-2", model_name="model-2"),
        "workload": Workload(input_tokens=16, output_tokens=4, schema="lmi"),
        "load": Load(
            concurrency_levels=(1, 2, 4),
            requests_per_concurrency=2,
            warmup_requests=1,
            budget_s=30,
            request_timeout_s=10,
        ),
        "objectives": (Objective(metric="ttft_ms", statistic="p95", bound=500.0, sense="at_most"),),
        "gate_concurrency": 4,
        "copy_count": 1,
        "mode": "rollback",
        "usd_per_hour_per_copy": 3.6,
        "fallback_target_concurrency": 2.0,
        "target_utilization": 0.75,
        **changes,
    }
    return TrialRequest(**fields)  # type: ignore[arg-type]  # a maker for tests: keywords of any type


@pytest.fixture(scope="session")
def trial_request() -> Callable[..., TrialRequest]:
    return make_request


def make_record(**changes: object) -> RequestRecord:
    """A request of four tokens: sent at 10.0 s, tokens at 10.2, 10.3, 10.5 and 10.8 s."""
    fields: dict[str, object] = {
        "sent_s": 10.0,
        "first_token_s": 10.2,
        "token_times_s": (10.2, 10.3, 10.5, 10.8),
        "last_token_s": 10.8,
        "ended_s": 11.0,
        "input_tokens": 16,
        "output_tokens": 4,
        "output_tokens_from": "events",
        "error": None,
        "status": 200,
        "detail": "",
        **changes,
    }
    return RequestRecord(**fields)  # type: ignore[arg-type]  # likewise


@pytest.fixture(scope="session")
def record() -> Callable[..., RequestRecord]:
    return make_record


def flat(value: float) -> Distribution:
    return Distribution(count=8, mean=value, p50=value, p90=value, p95=value, p99=value, max=value)


def make_level(concurrency: int, *, ttft_ms: float | None = 100.0, **changes: object) -> LevelResult:
    fields: dict[str, object] = {
        "concurrency": concurrency,
        "requests": 8,
        "succeeded": 8,
        "errors": {},
        "first_errors": (),
        "window_s": 2.0,
        "output_tok_s": 80.0,
        "requests_per_s": 4.0,
        "goodput_requests_per_s": 4.0,
        "ttft_ms": None if ttft_ms is None else flat(ttft_ms),
        "tpot_ms": flat(20.0),
        "itl_ms": flat(20.0),
        "ms_per_token": flat(25.0),
        "e2e_latency_ms": flat(500.0),
        "input_tokens_mean": 16.0,
        "output_tokens_mean": 20.0,
        "meets_slo": True,
        "misses": (),
        **changes,
    }
    return LevelResult(**fields)  # type: ignore[arg-type]  # likewise


@pytest.fixture(scope="session")
def level() -> Callable[..., LevelResult]:
    return make_level


@dataclass
class FakePromQl:
    """Answers by the metric's name: one list of values each step for each copy or accelerator."""

    published: Mapping[str, list[list[float]]]
    labels: Mapping[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def __call__(self, query: str, *, start_s: float, end_s: float, step_s: float) -> tuple[MetricSeries, ...]:
        assert end_s > start_s
        self.asked.append(query)
        rows = self.published.get(query[2:].partition('"')[0], [])
        return tuple(
            MetricSeries(self.labels, tuple((start_s + step_s * at, value) for at, value in enumerate(row)))
            for row in rows
        )


@pytest.fixture
def published() -> Callable[..., FakePromQl]:
    """Return what makes a PromQL API by what was published: name of the metric to values each 10 s by copy."""
    return FakePromQl
