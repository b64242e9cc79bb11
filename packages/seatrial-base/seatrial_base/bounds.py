"""Bounds of a trial's numbers and of objectives: the same in YAML, on a command line and in AWS.

Bounds against slips of the hand and against numbers that no machine can work with: far beyond what anybody serves.
"""

from __future__ import annotations

from math import isfinite

# Of a prompt or an answer: the longest context that any model announces (Llama 4 Scout, model card of 2025-04).
MOST_TOKENS = 10_000_000
# Sequences, requests, connections at once: as many as one address has ports.
MOST_IN_FLIGHT = 65_536
# Of a level; of requests per second likewise.
MOST_REQUESTS = 1_000_000
# Of random arrivals: beyond it they are a constant rate.
MOST_SMOOTHNESS = 1_000
# Of a conversation.
MOST_TURNS = 1_000
# That a user thinks between two turns: a trial is shorter.
LONGEST_DELAY_S = 3_600
MOST_WORKERS = 1_024
MOST_SECONDS = 86_400
LONGEST_LATENCY_MS = 86_400_000
MOST_TOK_S = 1_000_000_000
MOST_USD = 1_000_000_000
# Of drafting a token, as a share of a decode step, where the draft's shape is not known.
DEFAULT_DRAFT_COST = 0.05

# How long CloudFormation waits for a custom resource, at most.
LONGEST_ANSWER_S = 3_600
# Five minutes after that, nothing of what a request ordered is in use.
LONGEST_ORDER_S = LONGEST_ANSWER_S + 300
# How long SageMaker updates an endpoint or a component, at most (API reference, MaximumExecutionTimeoutInSeconds).
LONGEST_UPDATE_S = 28_800
# How long a stack may take by its own limits: candidate, endpoint, component and trial, one after the other.
LONGEST_DEPLOYMENT_S = LONGEST_ANSWER_S + 2 * LONGEST_UPDATE_S + LONGEST_ANSWER_S
# Of that for the start of a candidate and its trial: five minutes are for the end of the trial and the answer.
LONGEST_TRIAL_S = 3_300
# How long a new instance of an endpoint may take to start: an assumption, slow on purpose.
INSTANCE_START_S = 600
# How long it may take to pull its image then, which no timeout of SageMaker's counts: likewise.
IMAGE_PULL_S = 300
# How large that image is, in GB.
IMAGE_GB = 10
# How long SageMaker waits for weights, and then for a container, at most (API reference, ProductionVariant).
LONGEST_START_S = 3_600
# How fast weights come from the hub, from S3, and into the accelerators, in bytes a second: likewise.
HUB_BYTES_S = 100_000_000
S3_BYTES_S = 200_000_000
LOAD_BYTES_S = 500_000_000
# How long an engine may take beside that, with its graphs and kernels: likewise.
ENGINE_START_S = 300
# How long CloudFormation waits after a trial's budget: proof, what passes between steps, functions that died.
TRIAL_MARGIN_S = 600
# How long a function runs at most (AWS Lambda). A deletion waits in one, for a candidate to go or users to leave.
LONGEST_FUNCTION_S = 900
# A request of CloudFormation without an answer by then has no function any more: the sweep takes it again.
LOST_AFTER_S = LONGEST_FUNCTION_S + 60
# Between two sweeps.
SWEEP_S = 300


def trial_timeout_s(budget_s: int) -> int:
    """Return how long CloudFormation waits for a trial of what is deployed, and for its deletion.

    At least until a request that was lost is answered, though one sweep fails: a rollback or a deletion that times out
    before leaves the stack stuck.
    """
    return max(budget_s + TRIAL_MARGIN_S, LOST_AFTER_S + 2 * SWEEP_S)


def wrong_objective(metric: str, bound: float) -> str:
    """Return why no objective on a metric can have this bound; empty when it can, or isn't a finite number.

    `metric`: `error_rate` (a share), `output_tok_s`, or a latency in ms.
    """
    if not isfinite(bound):
        return ""
    if metric == "error_rate":
        return "" if 0 <= bound < 1 else f"{bound:g} is not at least 0 and below 1"
    unit, most = ("tokens/s", MOST_TOK_S) if metric == "output_tok_s" else ("ms", LONGEST_LATENCY_MS)
    return "" if 0 < bound <= most else f"{bound:g} is not above 0 and at most {most:,.0f} {unit}"


def wrong_prefix(shared_tokens: int, prompt_tokens: int) -> str:
    """Return why prompts can't share so many first tokens; empty where they can: each needs a token of its own."""
    if 0 <= shared_tokens < prompt_tokens:
        return ""
    return f"{shared_tokens} is not at least 0 and below the prompt length {prompt_tokens}"


def wrong_stddev(mean: float, stddev: float, least: float = 1) -> str:
    """Return why lengths, turns or delays can't have this standard deviation; empty where they can.

    A normal distribution that is wider has so many values below the least one that what is left of it is none.
    """
    most = (mean - least) / 2
    if 0 <= stddev <= most or not stddev:
        return ""
    return f"{stddev:g} is not at least 0 and at most {most:g}, half of the mean{f' less {least:g}' if least else ''}"
