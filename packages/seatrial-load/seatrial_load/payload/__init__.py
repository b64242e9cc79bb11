"""Requests to engines and their answers, in every schema of SageMaker's LLM containers.

Standard library and `seatrial_base.errors` only:

    schema     facts of each schema, as a table
    request    options and a prompt ─▶ the body's bytes
    answer     a whole body or a stream in pieces of any size ─▶ documents ─▶ Completion
    json_text  JSON with types, and the errors of both directions
"""
