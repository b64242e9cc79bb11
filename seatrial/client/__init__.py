"""A small client for LLM endpoints on SageMaker: boto3 is the transport, `seatrial_load.payload` knows the schemas.

client = boto3.client("sagemaker-runtime", config=client_config())
target = Target("chat", Schema.LMI_ASYNC, inference_component="chat-copy")
completion = generate(client, target, "Where does the boat go?", Options(max_tokens=64))
"""

from __future__ import annotations

from seatrial.client.alias import Alias
from seatrial.client.generation import (
    Confidence,
    GenerationStream,
    confidence,
    continue_until_stop,
    generate,
    generate_rounds,
    generate_stream,
    stream_lines,
    stream_parts,
)
from seatrial.client.many import Outcome, invoke_many
from seatrial.client.transport import InvocationError, Target, client_config, token_source
from seatrial_load.decode.failure import Failure
from seatrial_load.payload.answer import Completion, FinishReason, Piece, Token, Usage, read_answer
from seatrial_load.payload.json_text import AnswerError, RequestError
from seatrial_load.payload.request import Options, message, request_body
from seatrial_load.payload.schema import Schema

__all__ = [
    "Alias",
    "AnswerError",
    "Completion",
    "Confidence",
    "Failure",
    "FinishReason",
    "GenerationStream",
    "InvocationError",
    "Options",
    "Outcome",
    "Piece",
    "RequestError",
    "Schema",
    "Target",
    "Token",
    "Usage",
    "client_config",
    "confidence",
    "continue_until_stop",
    "generate",
    "generate_rounds",
    "generate_stream",
    "invoke_many",
    "message",
    "read_answer",
    "request_body",
    "stream_lines",
    "stream_parts",
    "token_source",
]
