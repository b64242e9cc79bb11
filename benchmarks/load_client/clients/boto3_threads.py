"""boto3 in as many threads as streams: what AWS's own load notebooks do."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import boto3
from botocore.config import Config

from benchmarks.load_client.clients.asking import (
    ACCESS_KEY_ID,
    BODY,
    CA,
    REGION,
    SECRET_ACCESS_KEY,
    SESSION_TOKEN,
    Order,
)
from benchmarks.load_client.measure import Answer, Usage, server_url, tell


def main() -> None:
    """Load, and print what it was like."""
    order = Order.given()
    client = boto3.client(
        "sagemaker-runtime",
        region_name=REGION,
        endpoint_url=server_url(tls=True),
        verify=CA,
        aws_access_key_id=ACCESS_KEY_ID,
        aws_secret_access_key=SECRET_ACCESS_KEY,
        aws_session_token=SESSION_TOKEN,
        config=Config(max_pool_connections=order.streams, retries={"max_attempts": 0}, read_timeout=120),
    )
    answers: list[Answer] = []
    turns = threading.BoundedSemaphore(order.requests)

    def work() -> None:
        while turns.acquire(blocking=False):
            asked_s = time.monotonic()
            response = client.invoke_endpoint_with_response_stream(
                EndpointName="e", ContentType="application/json", Body=BODY
            )
            pieces = [(time.monotonic(), event["PayloadPart"]["Bytes"]) for event in response["Body"]]
            answers.append(Answer(asked_s, pieces))

    began = Usage.now()
    with ThreadPoolExecutor(order.streams) as pool:
        for future in [pool.submit(work) for _ in range(order.streams)]:
            future.result()
    tell(answers, began, Usage.now())


main()
