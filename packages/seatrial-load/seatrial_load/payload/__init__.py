"""What is said to an engine and what it says back, in every schema that SageMaker's LLM containers speak.

Standard library and `seatrial_base.errors` only. One question in each module:

    schema    what each schema tells and leaves out, as a table of facts
    options   what can be asked for, and what a schema can't say
    request   Options and a prompt ─▶ the body's bytes
    lines     bytes in pieces of any size ─▶ documents
    fragment  one document ─▶ what it says
    answer    the words of an answer: Completion, Token, FinishReason, Usage
    reader    a whole body or a stream ─▶ Completion
"""
