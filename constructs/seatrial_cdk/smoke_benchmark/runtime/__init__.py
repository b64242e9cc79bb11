"""The handlers of the smoke benchmark's three Lambda functions; they need boto3 and `seatrial.bench` only.

`on_event` starts the `runner` and returns at once; the runner tries the endpoint and writes a document into the
results bucket; `is_complete` looks for it until it is there or overdue, and answers CloudFormation.
"""
