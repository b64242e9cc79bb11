from __future__ import annotations

from botocore.eventstream import EventStreamBuffer

from seatrial_laptop.aws.runtime.invocation import model_stream_error, payload_part


def test_botocore_reads_the_frames_and_checks_their_sums() -> None:
    buffer = EventStreamBuffer()
    buffer.add_data(payload_part(b'{"index":0}\n') + payload_part(b"") + model_stream_error("StreamBroken", "gone"))
    part, empty, error = [message.to_response_dict() for message in buffer]
    assert part == {
        "status_code": 200,
        "headers": {
            ":event-type": "PayloadPart",
            ":content-type": "application/octet-stream",
            ":message-type": "event",
        },
        "body": b'{"index":0}\n',
    }
    assert empty["body"] == b""
    assert error["headers"][":exception-type"] == "ModelStreamError"
    assert error["body"] == b'{"Message": "gone", "ErrorCode": "StreamBroken"}'
