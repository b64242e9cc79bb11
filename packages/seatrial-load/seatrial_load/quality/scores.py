"""An evaluation set, one JSON object a line, and the scores of its answers by themselves.

    {"prompt": "What is the capital of France? One word.", "reference": "Paris"}
    {"messages": [{"role": "user", "content": "Name a sea."}], "id": "sea-1"}

`reference` is the right answer; without one, only the answers of two recipes can be compared. A line without an `id` is
named by its number. Every line is checked before anything is sent. Scores are agreement with the reference, and the
model's certainty of its tokens.
"""

from __future__ import annotations

import hashlib
import json
import math
import unicodedata
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Final

from seatrial_base.units import MIB, fine_percent
from seatrial_load.documents.distribution import Interval
from seatrial_load.documents.request import ChatMessage, EvaluationPrompt
from seatrial_load.documents.result import QualityCheck, QualityResult, QualityScore
from seatrial_load.measure.interval import BOTH_TAILS, NOTHING, share_interval, student_t
from seatrial_load.prompts.dataset import LineProblems, is_chat, why_not_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from seatrial_load.documents.request import QualityFloor, QualityObjective
    from seatrial_load.documents.result import EvaluationAnswer, Verdict
    from seatrial_load.payload.request import Prompt

RULE: Final = "SEA527"
KEYS: Final = ("prompt", "messages", "reference", "id")
MOST_PROMPTS: Final = 10_000
MOST_SET_BYTES: Final = 16 * MIB
LONGEST_ID: Final = 200
_EXAMPLE: Final = 'write one JSON object per line: {"prompt": "…", "reference": "…"}'
# Share of the prompts; where more failed, the remaining answers decide nothing.
LEAST_ANSWERED: Final = 0.9
# Fewer prompts decide nothing: an interval of few answers predicts little.
FEWEST_PROMPTS: Final = 20
LOWEST_LOG: Final = -700.0  # of a float: exp(700) is the largest round power that it can hold


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationSet:
    """The prompts of one file.

    Attributes:
        digest: SHA-256 of the prompts, whatever the file's spaces and order of keys.
    """

    prompts: tuple[EvaluationPrompt, ...]
    digest: str

    @property
    def has_references(self) -> bool:
        """Whether some prompt has a right answer."""
        return any(prompt.reference is not None for prompt in self.prompts)


def evaluation_set(content: bytes, where: str, *, chat: bool) -> EvaluationSet:
    """Read an evaluation set.

    Raises:
        BenchError: SEA527, with every bad line, or an empty or too large set.
    """
    problems = LineProblems(where, RULE)
    if len(content) > MOST_SET_BYTES:
        problems.note(0, f"larger than {MOST_SET_BYTES // MIB} MiB")
        problems.raise_if_any()
    prompts = tuple(_prompts(content, problems, chat=chat))
    if not prompts and not problems:
        problems.note(0, "the file is empty", hint=_EXAMPLE)
    if len(prompts) > MOST_PROMPTS:
        problems.note(0, f"{len(prompts):,} prompts; the maximum is {MOST_PROMPTS:,}")
    problems.raise_if_any()
    return EvaluationSet(prompts=prompts, digest=digest_of_prompts(prompts))


def prompt_content(prompt: EvaluationPrompt) -> Prompt:
    """Return the sent part of a prompt: its messages, else its text."""
    if prompt.messages:
        return [{"role": message.role, "content": message.content} for message in prompt.messages]
    return prompt.prompt


def digest_of_prompts(prompts: Sequence[EvaluationPrompt]) -> str:
    """Return the SHA-256 of prompts, in hexadecimal digits."""
    text = json.dumps([asdict(prompt) for prompt in prompts], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _prompts(content: bytes, problems: LineProblems, *, chat: bool) -> Iterator[EvaluationPrompt]:
    seen: dict[str, int] = {}
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if not line.strip():
            continue
        prompt = _read(line, number, problems, chat=chat)
        if prompt is None:
            continue
        if (first := seen.setdefault(prompt.id, number)) != number:
            problems.note(number, f"{prompt.id!r} is the id of line {first} too", field="id")
        yield prompt


def _read(line: bytes, number: int, problems: LineProblems, *, chat: bool) -> EvaluationPrompt | None:
    try:
        document: object = json.loads(line.strip())
    except (ValueError, RecursionError) as malformed:
        problems.note(number, why_not_json(malformed), hint=_EXAMPLE)
        return None
    if not isinstance(document, dict):
        problems.note(number, "not a JSON object", hint=_EXAMPLE)
        return None
    wrong = [*_wrong(document, chat=chat)]
    for field, message in wrong:
        problems.note(number, message, field=field)
    if wrong:
        return None
    messages, reference = document.get("messages"), document.get("reference")
    turns = messages if isinstance(messages, list) else []
    return EvaluationPrompt(
        id=str(document.get("id", f"line-{number}")),
        prompt=document.get("prompt", ""),
        messages=tuple(ChatMessage(role=turn["role"], content=turn["content"]) for turn in turns),
        reference=None if reference is None else str(reference),
    )


def _wrong(document: Mapping[str, object], *, chat: bool) -> Iterator[tuple[str, str]]:
    yield from ((key, f"unknown key; known are {', '.join(KEYS)}") for key in document if key not in KEYS)
    present = [key for key in ("prompt", "messages") if key in document]
    if len(present) != 1:
        yield "", f"needs one of prompt and messages, has {' and '.join(present) or 'none'}"
    elif present == ["prompt"]:
        if not _is_text(document["prompt"]):
            yield "prompt", "not a non-empty string"
    elif not is_chat(messages := document["messages"]) or not all(
        isinstance(turn["content"], str) for turn in messages
    ):
        yield "messages", 'not a list of objects with "role" and "content", both strings'
    elif not chat:
        yield "messages", "the endpoint's schema needs a string, not messages"
    if document.get("reference") is not None and not _is_text(document["reference"]):
        yield "reference", "not a non-empty string"
    if not _is_id(document.get("id", "-")):
        yield "id", f"not a whole number or a string of 1 to {LONGEST_ID} characters"


def _is_id(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool) and 0 < len(str(value)) <= LONGEST_ID


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def normalized(text: str) -> str:
    """Return a text as exact match compares it: NFKC, case folded, each run of white space one space, none at the ends.

    Punctuation counts. Ask for answers that have none, or put it into the reference.
    """
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def is_exact_match(answer: str, reference: str) -> bool:
    """Return whether an answer equals the reference, both normalized."""
    return normalized(answer) == normalized(reference)


def scores_of(
    prompts: Sequence[EvaluationPrompt], answers: Sequence[EvaluationAnswer], *, tail: float = BOTH_TAILS
) -> tuple[QualityScore, ...]:
    """Score the answers of one endpoint; a prompt that failed counts for nothing.

    Args:
        answers: One for each, in their order.
        tail: How often each bound of an interval may be wrong.
    """
    right = [
        is_exact_match(answer.text, prompt.reference)
        for prompt, answer in zip(prompts, answers, strict=True)
        if answer.answered and prompt.reference is not None
    ]
    hits, count = sum(right), len(right)
    match_interval = share_interval(hits, count, tail=tail)
    log = _mean_log_probability(answers, tail=tail)
    # A high log-probability is a low perplexity, so the ends change places.
    low, high = (None if end is None else perplexity(end) for end in (log.interval.high, log.interval.low))
    value, interval = None if log.value is None else perplexity(log.value), Interval(low=low, high=high)
    return (
        QualityScore(metric="exact_match", value=hits / count if count else None, interval=match_interval, count=count),
        log,
        QualityScore(metric="perplexity", value=value, interval=interval, count=log.count),
    )


def token_sums(answers: Iterable[EvaluationAnswer]) -> list[tuple[float, int]]:
    """Return the sum of log-probabilities and the number of tokens of each answer that has them."""
    known = (answer.log_probabilities for answer in answers if answer.answered)
    return [(math.fsum(logs), len(logs)) for logs in known if logs]


def _mean_log_probability(answers: Iterable[EvaluationAnswer], *, tail: float) -> QualityScore:
    """Return the sum of log-probabilities over tokens, a ratio of two means over answers.

    Its variance, to first order, is that of Lᵢ - r Tᵢ over n and the mean of T squared (Cochran, Sampling Techniques,
    3rd edition, 6.3).
    """
    sums = token_sums(answers)
    if not sums:
        return QualityScore(metric="mean_logprob", value=None, interval=NOTHING, count=0)
    count, tokens = len(sums), sum(length for _, length in sums)
    ratio = math.fsum(log for log, _ in sums) / tokens
    if count == 1:
        return QualityScore(metric="mean_logprob", value=ratio, interval=NOTHING, count=1)
    off = math.fsum((log - ratio * length) ** 2 for log, length in sums) / (count - 1)
    half = student_t(1 - tail, count - 1) * math.sqrt(off / count) / (tokens / count)
    interval = Interval(low=ratio - half, high=min(ratio + half, 0.0))
    return QualityScore(metric="mean_logprob", value=ratio, interval=interval, count=count)


def perplexity(mean_log_probability: float) -> float:
    """Return exp(-mean log-probability): the inverse probability of a token, the geometric mean (from 1)."""
    return math.exp(-max(mean_log_probability, LOWEST_LOG))


def unmeasured_quality(floor: QualityFloor, because: str) -> QualityResult:
    """Return that nothing was sent, for a reason."""
    return QualityResult(
        evaluation_set=floor.evaluation_set,
        prompts=len(floor.prompts),
        answered=0,
        scores=(),
        checks=(),
        because=f"quality was not measured: {because}",
    )


def judged_quality(floor: QualityFloor, answers: Sequence[EvaluationAnswer], confidence: float) -> QualityResult:
    """Compare answers with the bounds."""
    answered = sum(answer.answered for answer in answers)
    outcome = f"{answered} of {len(answers)} prompts of the evaluation set were answered"
    first = next((answer.failure for answer in answers if answer.failure), "")
    enough = answered >= LEAST_ANSWERED * len(answers)
    bounds = {score.metric: score for score in scores_of(floor.prompts, answers, tail=1 - max(confidence, 0.5))}
    checks = tuple(_check(objective, bounds[objective.metric], confidence) for objective in floor.objectives)
    return QualityResult(
        evaluation_set=floor.evaluation_set,
        prompts=len(answers),
        answered=answered,
        scores=scores_of(floor.prompts, answers),
        checks=checks if enough else tuple(replace(check, met=None) for check in checks),
        because=f"{outcome} ({first})" if first else outcome,
    )


def _check(objective: QualityObjective, score: QualityScore, confidence: float) -> QualityCheck:
    bound = f"{'at most' if objective.sense == 'at_most' else 'at least'} {_written(objective, objective.bound)}"
    if score.value is None:
        sentence = f"quality {objective.metric} was not measured: no answer has it; the bound is {bound}"
        return QualityCheck(objective=objective, measured=None, met=None, sentence=sentence)
    met = _is_within(objective, score.value) if confidence <= 0 else _proven(objective, score.interval)
    relation = {True: "meets", False: "misses", None: "is not proven to meet or miss"}[met]
    sentence = f"quality {objective.metric} {_written(objective, score.value)} {relation} {bound}"
    low, high = score.interval.low, score.interval.high
    ends = "" if low is None or high is None else f"{_written(objective, low)} to {_written(objective, high)}, "
    sentence = f"{sentence} ({ends}{score.count} answers)"
    return QualityCheck(objective=objective, measured=score.value, met=met, sentence=sentence)


def _is_within(objective: QualityObjective, value: float) -> bool:
    return value <= objective.bound if objective.sense == "at_most" else value >= objective.bound


def _proven(objective: QualityObjective, interval: Interval) -> bool | None:
    ends = (interval.high, interval.low) if objective.sense == "at_most" else (interval.low, interval.high)
    worse, better = ends
    if worse is not None and _is_within(objective, worse):
        return True
    return False if better is not None and not _is_within(objective, better) else None


def _written(objective: QualityObjective, value: float) -> str:
    return fine_percent(value) if objective.metric == "exact_match" else f"{value:.4g}"


def with_quality(verdict: Verdict, quality: QualityResult) -> Verdict:
    """Return the verdict with the quality: what is proven missed fails it, what is not proven makes it inconclusive."""
    missed = [check.sentence for check in quality.checks if check.met is False]
    unknown = [check.sentence for check in quality.checks if check.met is None]
    if not quality.checks or (unknown and quality.answered < quality.prompts):
        unknown.append(quality.because)
    if missed:
        before = (verdict.because,) if verdict.status == "fail" else ()
        return replace(verdict, status="fail", because="; ".join((*before, *missed)))
    if unknown:
        status = "inconclusive" if verdict.status == "pass" else verdict.status
        return replace(verdict, status=status, because="; ".join((*unknown, verdict.because)))
    return replace(verdict, because="; ".join((verdict.because, *(check.sentence for check in quality.checks))))
