"""What is said to an engine and what it says back, in every schema that SageMaker's LLM containers speak.

Standard library and `seatrial_base.errors` only. One question in each module:

    schema     what each schema tells and leaves out, as a table of facts
    request    options and a prompt ─▶ the body's bytes
    answer     a whole body or a stream in pieces of any size ─▶ documents ─▶ Completion
    json_text  JSON with types, and the errors of both directions
"""
