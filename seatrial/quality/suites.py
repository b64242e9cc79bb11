"""Suites of quality on a live endpoint: lm-eval's (GSM8K, MMLU-Pro, IFEval), tasks and evaluation sets of one's own.

lm-eval makes prompts and scores answers. Seatrial sends the requests: lm-eval's own clients can't sign them. lm-eval is
an extra, imported where a suite needs it.
"""

from __future__ import annotations

import json
import logging
import sys
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn

from seatrial.deployment.trial import read_evaluation_set
from seatrial.quality.comparison import QualityComparison, chance_notes, compare_means, is_binary, mean_interval
from seatrial.quality.recipe_result import read_stored
from seatrial_base.errors import BenchError, SeatrialError, SpecError
from seatrial_base.secrets import redacted
from seatrial_base.terminal import interrupt_noted
from seatrial_load.documents.request import ChatMessage, EvaluationPrompt
from seatrial_load.documents.stop import Stop, StopReason
from seatrial_load.measure.interval import BOTH_TAILS, NOTHING, share_interval
from seatrial_load.payload.request import Options
from seatrial_load.quality.answers import QualityTools, collect_answers
from seatrial_load.quality.scores import FEWEST_PROMPTS, LEAST_ANSWERED, digest_of_prompts, is_exact_match

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from seatrial_base.findings import Finding
    from seatrial_load.documents.distribution import Interval
    from seatrial_load.documents.request import TrialRequest
    from seatrial_load.documents.result import EvaluationAnswer

DEFAULT_TOKENS: Final = 256  # of lm-eval's own clients, for a task without a limit
MOST_STOPS: Final = 4  # of OpenAI's API; answers are cut at all of them afterwards
_LONGEST_S: Final = 604_800.0  # MMLU-Pro's 12,032 answers of a minute each take 50 h, four at a time
_HIGHEST_SCORE: Final = 1e6  # scores are shares, or percentages; sums of higher ones may not fit a float
_LIMITS: Final = ("max_gen_toks", "max_tokens", "max_new_tokens", "max_completion_tokens")
_NO_DATA: Final = (
    "lm-eval reads it from huggingface.co, or from the cache that HF_HOME names (with HF_HUB_OFFLINE=1 from there "
    "alone): fill the cache on a machine with internet, or give a task with local data_files (.yaml), or an evaluation "
    "set (.jsonl)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteMetric:
    """One metric of a suite.

    Attributes:
        name: As lm-eval calls it, with the filter that read the answers: `exact_match,strict-match`.
        scores: One for each of the suite's samples, in their order.
    """

    name: str
    scores: tuple[float, ...]

    def mean(self) -> tuple[float, Interval]:
        """Return the mean with its 95 % interval: Wilson's where each score is 0 or 1, else a bootstrap."""
        total, count = sum(self.scores), len(self.scores)
        if is_binary(self.scores):
            return total / count, share_interval(round(total), count, tail=BOTH_TAILS)
        return total / count, mean_interval(self.scores)


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteResult:
    """One suite, measured.

    Attributes:
        source: What scored it.
        samples: Those that were answered, by an id that is another one for another prompt.
        sent: Samples that were sent.
        cut: Samples whose answer the limit on tokens ended, as far as the engine reports it.
        because: The first failure; empty where every sample was answered.
        engine: How a local engine announced itself, which is not the model named; empty on AWS.
        interrupted: Whether a signal ended it: `sent` counts those that were to be sent.
    """

    name: str
    source: str
    samples: tuple[str, ...]
    sent: int
    cut: int
    because: str
    engine: str
    metrics: tuple[SuiteMetric, ...]
    interrupted: bool = False

    @property
    def undecided(self) -> str:
        """Why the scores decide nothing; empty where they do."""
        if self.interrupted:
            return f"; interrupted after {len(self.samples):,} of {self.sent:,}"
        if len(self.samples) < LEAST_ANSWERED * self.sent:
            return f"; only {len(self.samples):,} of {self.sent:,} were answered ({self.because})"
        return "; too few samples" if len(self.samples) < FEWEST_PROMPTS else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuitesResult:
    """The suites of one endpoint: the file that `seatrial quality --output` writes.

    Attributes:
        most_tokens: Tokens that an answer could have; None left it to the tasks.
    """

    schema_version: Literal["1"] = "1"
    kind: Literal["suites"] = "suites"
    endpoint: str
    most_tokens: int | None
    suites: tuple[SuiteResult, ...]

    def metrics(self) -> dict[str, tuple[SuiteResult, SuiteMetric]]:
        """Return every metric by `SUITE:METRIC`."""
        return {f"{suite.name}:{each.name}": (suite, each) for suite in self.suites for each in suite.metrics}


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteRequest:
    """How suites are measured.

    Attributes:
        trial: A trial of the endpoint, which says how it is spoken to.
        limit: Samples drawn of each task; None takes all.
        seed: Of what is drawn: samples, examples in a prompt, tokens of a task that draws them.
        most_tokens: Tokens that an answer may have; None leaves it to the tasks.
        streams: Requests in flight.
        tell: Called every five seconds with the number of answers of the suite.
        is_interrupted: Ends the sending; the answers that came are kept.
    """

    trial: TrialRequest
    limit: int | None
    seed: int
    most_tokens: int | None
    streams: int
    tell: Callable[[int], None] | None = None
    is_interrupted: Callable[[], bool] = lambda: False

    @property
    def is_chat(self) -> bool:
        """Whether prompts are messages."""
        return self.trial.workload.schema == "openai_chat"

    def drawn(self, count: int) -> list[int]:
        """Return which of a task's samples are taken; the first ones may all be of one subject."""
        return sorted(Random(self.seed).sample(range(count), min(count, self.limit or count)))  # noqa: S311 (no secret)

    def answers(self, prompts: Sequence[EvaluationPrompt], options: Sequence[Options]) -> tuple[EvaluationAnswer, ...]:
        """Send prompts, each with its options."""

        def should_stop() -> Stop | None:
            return Stop(reason=StopReason.CANCELLED, because="interrupted") if self.is_interrupted() else None

        streams, tell, schema, api = self.streams, self.tell, self.trial.workload.schema, self.trial.workload.api
        tools = QualityTools(tell=tell, should_stop=should_stop)
        return collect_answers(
            self.trial.target,
            schema,
            prompts,
            most_tokens=max(each.max_tokens or 1 for each in options),
            options=options,
            stream=True,
            api=api,
            streams=streams,
            within_s=_LONGEST_S,
            tools=tools,
        )


def suite_name(text: str) -> str:
    """Return a suite's name: that of its file without folder and ending, else as it is written."""
    return Path(text).stem if text.endswith((".yaml", ".jsonl")) else text


def measure_suites(names: Sequence[str], request: SuiteRequest) -> tuple[SuitesResult, tuple[Finding, ...], bool]:
    """Send every suite once all of them can be read.

    Returns:
        The suites that were measured, why others were not, and whether a signal ended it: those before were paid for.

    Raises:
        SpecError: SEA527, SEA555 to SEA557, with what is wrong of every suite.
        BenchError: SEA558, a data set can't be read.
    """
    ready: list[Callable[[SuiteRequest], SuiteResult]] = []
    wrong: list[SeatrialError] = []
    for name in names:
        try:
            ready.append((_set_suite if name.endswith(".jsonl") else _task_suite)(name, request))
        except SeatrialError as error:
            wrong.append(error)
    if wrong:
        raise type(wrong[0])(problem for error in wrong for problem in error.problems)
    suites: list[SuiteResult] = []
    problems: list[Finding] = []
    with interrupt_noted() as is_interrupted:
        for measure in ready:
            try:
                suite = measure(replace(request, is_interrupted=is_interrupted))
                suites.append(replace(suite, interrupted=is_interrupted() and len(suite.samples) < suite.sent))
            except BenchError as error:
                problems += () if is_interrupted() else error.problems
            if is_interrupted():
                break
        endpoint, most_tokens = request.trial.endpoint, request.most_tokens
        result = SuitesResult(endpoint=endpoint, most_tokens=most_tokens, suites=tuple(suites))
        return result, tuple(problems), is_interrupted()


def holds_suites(path: Path) -> bool:
    """Return whether a file begins as a result of suites does."""
    try:
        with path.open("rb") as file:
            return b'"suites"' in file.read(200)
    except OSError:
        return False


def read_suites(path: Path) -> SuitesResult:
    """Read a stored result.

    Raises:
        SpecError: SEA529 when it can't be read or is no such document.
    """
    hint = "give a file that `seatrial quality --output` wrote"
    result = read_stored(SuitesResult, path, "a result of suites", hint)
    for suite, metric in result.metrics().values():
        if not len(metric.scores) == len(suite.samples) > 0 or max(map(abs, metric.scores)) > _HIGHEST_SCORE:
            message = f"{metric.name} has not one score for each sample, each up to {_HIGHEST_SCORE:g}"
            raise SpecError.of("SEA529", message, where=path.as_posix(), hint=hint)
    return result


def compare_suites(a: SuitesResult, b: SuitesResult) -> QualityComparison:
    """Compare two results, paired by sample.

    Raises:
        SpecError: SEA559, they share no sample, or their answers had other limits.
    """
    before, pairs = a.metrics(), {}
    engines = {bool(suite.engine) for suite in (*a.suites, *b.suites)}
    for name, (suite, metric) in b.metrics().items() if a.most_tokens == b.most_tokens and len(engines) == 1 else ():
        known = dict(zip(before[name][0].samples, before[name][1].scores, strict=True)) if name in before else {}
        scores = zip(suite.samples, metric.scores, strict=True)
        pairs[name] = [(known[sample], score) for sample, score in scores if sample in known]
    differences = tuple(compare_means(name, both) for name, both in pairs.items() if both)
    if not differences:
        message = "no sample is in both: other suites, prompts, --limit, --seed, --max-tokens or engine (local or not)"
        raise SpecError.of("SEA559", message, where=f"{a.endpoint} and {b.endpoint}", hint="measure both alike")
    prompts = sum(suite.sent for suite in b.suites)
    paired = sum({each.metric.partition(":")[0]: each.count for each in differences}.values())
    left_out = f"{prompts - paired} of {prompts} samples were not answered in both and are left out"
    notes = (*([left_out] if paired < prompts else ()), *chance_notes(differences))
    return QualityComparison(prompts=prompts, paired=paired, differences=differences, likeness=(), notes=notes)


def check_least(result: SuitesResult, bounds: Mapping[str, float]) -> Iterator[tuple[bool | None, str]]:
    """Yield of each bound whether its metric surely reaches it; a suite's name alone is its first metric."""
    metrics = result.metrics()
    for name, bound in bounds.items():
        full = next((each for each in metrics if name in {each, each.partition(":")[0]}), None)
        interval = NOTHING if full is None else metrics[full][1].mean()[1]
        undecided = "; not measured" if full is None else metrics[full][0].undecided
        yield _judged(interval, bound, f"{full or name} at least {bound:g}", undecided)


def check_tolerance(
    result: SuitesResult, compared: QualityComparison, tolerance: float
) -> Iterator[tuple[bool | None, str]]:
    """Yield of each metric whether it is surely no worse than a baseline's by more than the tolerance."""
    differences = {each.metric: each for each in compared.differences}
    for name, (suite, _) in result.metrics().items():
        each = differences.get(name)
        few = "; not in the baseline" if each is None else "; too few samples" if each.count < FEWEST_PROMPTS else ""
        interval = NOTHING if each is None else each.interval
        yield _judged(interval, -tolerance, f"{name} at most {tolerance:g} worse", suite.undecided or few)


def _judged(interval: Interval, bound: float, words: str, undecided: str) -> tuple[bool | None, str]:
    met = None
    if not undecided and interval.low is not None and interval.high is not None:
        met = True if interval.low >= bound else False if interval.high < bound else None
    outcome = {True: "met", False: "missed", None: "not proven met or missed"}[met]
    return met, f"{outcome}: {words}{undecided}"


def _set_suite(name: str, request: SuiteRequest) -> Callable[[SuiteRequest], SuiteResult]:
    every = read_evaluation_set(Path(name), chat=request.is_chat).prompts
    prompts = [prompt for prompt in every if prompt.reference is not None]
    if not prompts:
        raise SpecError.of("SEA557", "no prompt has a reference to score its answer by", where=name, hint="add some")
    drawn = [prompts[place] for place in request.drawn(len(prompts))]
    limit, seed = request.most_tokens or DEFAULT_TOKENS, request.seed
    options = [Options(max_tokens=limit, temperature=0, seed=seed)] * len(drawn)

    def measure(request: SuiteRequest) -> SuiteResult:
        return _suite_result(
            name,
            "evaluation set",
            {
                f"{prompt.id}:{digest_of_prompts((prompt,))[:12]}": (
                    [answer],
                    {"exact_match": float(is_exact_match(answer.text, prompt.reference or ""))},
                )
                for prompt, answer in zip(drawn, request.answers(drawn, options), strict=True)
            },
        )

    return measure


def _suite_result(
    name: str, source: str, rows: Mapping[str, tuple[Sequence[EvaluationAnswer], Mapping[str, float]]]
) -> SuiteResult:
    """Return the scores of the samples that were answered; a metric that some of them lack is left out."""
    failures = [answer.failure for answers, _ in rows.values() for answer in answers if answer.failure]
    kept = {key: scores for key, (answers, scores) in rows.items() if all(answer.answered for answer in answers)}
    if not kept:
        raise BenchError.of("SEA534", f"none of {len(rows)} samples was answered: {failures[0]}", where=name)
    names = [each for each in next(iter(kept.values())) if all(each in scores for scores in kept.values())]
    if not names:
        raise BenchError.of("SEA557", "it has no metric that is a mean over samples", where=name)
    return SuiteResult(
        name=suite_name(name),
        source=source,
        samples=tuple(kept),
        sent=len(rows),
        cut=sum(any(answer.cut for answer in answers) for answers, _ in rows.values()),
        because=next(iter(failures), ""),
        engine=next((answer.engine for answers, _ in rows.values() for answer in answers if answer.engine), ""),
        metrics=tuple(SuiteMetric(name=each, scores=tuple(row[each] for row in kept.values())) for each in names),
    )


def _task_suite(name: str, request: SuiteRequest) -> Callable[[SuiteRequest], SuiteResult]:
    if find_spec("lm_eval") is None:
        hint = "install it: pip install 'seatrial[quality]'; an evaluation set (.jsonl) needs nothing more"
        raise SpecError.of("SEA556", "it needs the package lm-eval", where=name, field="--suite", hint=hint)
    with _harness(name) as (harness, refused):
        manager = harness.tasks.TaskManager(include_defaults=not name.endswith(".yaml"))
        try:
            tasks: dict[str, Any] = manager.load([name])["tasks"]
            sizes = {key: len(task.eval_docs) for key, task in tasks.items()}
            if refused:  # lm-eval goes on without a metric that it can't load
                raise ValueError(_refusal(refused[0]))  # noqa: TRY301 (as one that lm-eval passes on)
        except OSError as unread:
            message = f"its data can't be read: {_words(unread)}"
            raise BenchError.of("SEA558", message, where=name, field="--suite", hint=_NO_DATA) from unread
        except Exception as wrong:
            is_known = name.endswith(".yaml") or name in manager.task_index
            message = f"lm-eval can't load it: {_words(wrong)}" if is_known else "neither a task of lm-eval nor a file"
            rule, hint = ("SEA557", "") if is_known else ("SEA555", "as gsm8k, mmlu_pro, ifeval, mine.yaml, eval.jsonl")
            raise SpecError.of(rule, message, where=name, field="--suite", hint=hint) from wrong
    if others := sorted({task.OUTPUT_TYPE for task in tasks.values()} - {"generate_until"}):
        message = (
            f"it scores given texts by their log-probabilities ({', '.join(others)}), which endpoints don't return"
        )
        hint = "take a task whose answers are written (generate_until), as gsm8k, mmlu_pro or ifeval"
        raise SpecError.of("SEA557", message, where=name, field="output_type", hint=hint)
    samples = {key: request.drawn(size) for key, size in sizes.items()}
    return lambda request: _measured_task(name, tasks, samples, request)


def _words(error: Exception) -> str:
    return redacted(f"{type(error).__name__}: {error}".splitlines()[0])[:300]


def _refusal(code: str) -> str:
    return f"{code} is code beside lm-eval, which is not run"


@contextmanager
def _harness(name: str) -> Iterator[tuple[Any, list[str]]]:
    """Give lm-eval, which runs no code but its own meanwhile, and the names of other code that it was to run.

    What it prints goes to standard error.

    Templates run in Jinja's sandbox, as lm-eval's own don't. A file's `!function` would be imported, a metric that
    lm-eval lacks would be code of the hub.
    """
    import evaluate  # noqa: PLC0415 (an extra)
    import lm_eval.tasks._yaml_loader as loader  # noqa: PLC0415 (likewise)
    import lm_eval.utils  # noqa: PLC0415 (likewise)
    from jinja2 import StrictUndefined  # noqa: PLC0415 (only here)
    from jinja2.sandbox import SandboxedEnvironment  # noqa: PLC0415 (likewise)

    refused: list[str] = []

    def refuse(code: str, *_: object, **__: object) -> NoReturn:
        refused.append(code)
        raise ValueError(_refusal(code))

    plain, imported, loaded = lm_eval.utils.env, loader._import_func_in_yml, evaluate.load  # noqa: SLF001 (no public way)
    sandbox = SandboxedEnvironment(undefined=StrictUndefined, keep_trailing_newline=True)
    sandbox.filters.update(plain.filters)
    lm_eval.utils.env, evaluate.load = sandbox, refuse
    if name.endswith(".yaml"):
        loader._import_func_in_yml = refuse  # noqa: SLF001 (likewise)
    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    try:
        with redirect_stdout(sys.stderr):
            yield lm_eval, refused
    finally:
        lm_eval.utils.env, loader._import_func_in_yml, evaluate.load = plain, imported, loaded  # noqa: SLF001 (likewise)


def _measured_task(
    name: str, tasks: Mapping[str, Any], samples: Mapping[str, list[int]], request: SuiteRequest
) -> SuiteResult:
    rows: dict[str, tuple[list[EvaluationAnswer], dict[str, float]]] = {}
    with _harness(name) as (harness, _):
        for task in tasks.values():
            task.set_fewshot_seed(request.seed)
        try:
            scored = harness.evaluate(
                _model(request),
                {"tasks": tasks, "groups": {}},
                samples=samples,
                bootstrap_iters=0,
                apply_chat_template=request.is_chat,
                fewshot_as_multiturn=request.is_chat,
            )
        except SeatrialError:
            raise
        except Exception as wrong:
            raise BenchError.of("SEA557", f"lm-eval can't score it: {_words(wrong)}", where=name) from wrong
    for key, sample in ((key, sample) for key, every in scored["samples"].items() for sample in every):
        answers = [text.answer for texts in sample["resps"] for text in texts]
        _, scores = rows.setdefault(f"{key}:{sample['doc_id']}:{sample['prompt_hash'][:12]}", (answers, {}))
        for metric in sample["metrics"]:
            value = sample[metric].item() if hasattr(sample[metric], "item") else sample[metric]
            # Only of a mean is one sample's score a part of the total; the verdicts take more for better.
            is_mean = tasks[key].aggregation()[metric].__name__ == "mean" and tasks[key].higher_is_better()[metric]
            if isinstance(value, int | float) and is_mean:
                scores[metric if sample["filter"] == "none" else f"{metric},{sample['filter']}"] = float(value)
    return _suite_result(name, f"lm-eval {version('lm-eval')}", rows)


class _Text(str):
    """An answer's text as lm-eval scores it, with the answer: a failed one is empty, and must not count as wrong."""

    __slots__ = ("answer",)
    answer: EvaluationAnswer


def _model(request: SuiteRequest) -> object:
    """Return the endpoint as a model of lm-eval."""
    from lm_eval.api.model import LM  # noqa: PLC0415 (an extra)

    class Endpoint(LM):  # type: ignore[misc]  # lm-eval has no types
        tokenizer_name = ""

        def loglikelihood(self, requests: object) -> NoReturn:
            raise NotImplementedError

        loglikelihood_rolling = loglikelihood

        def apply_chat_template(self, chat_history: object, *, add_generation_prompt: bool = True) -> str:  # noqa: ARG002 (the server's)
            return json.dumps(chat_history)

        def generate_until(self, requests: Sequence[Any]) -> list[_Text]:
            return _texts(request, [each.args for each in requests])

    return Endpoint()


def _texts(request: SuiteRequest, contexts: Sequence[tuple[str, Mapping[str, Any]]]) -> list[_Text]:
    prompts, options, ends = [], [], []
    seed = request.seed
    for number, (context, how) in enumerate(contexts):
        turns = json.loads(context) if request.is_chat else ()
        messages = tuple(ChatMessage(role=turn["role"], content=turn["content"]) for turn in turns)
        prompts.append(EvaluationPrompt(id=f"{number}", prompt="" if messages else context, messages=messages))
        until = how.get("until") or ()
        ends.append(tuple(stop for stop in ([until] if isinstance(until, str) else until) if stop))
        drawn = float(how.get("temperature") or 0) if how.get("do_sample", True) else 0.0
        limit = request.most_tokens or next((how[key] for key in _LIMITS if how.get(key)), DEFAULT_TOKENS)
        top_p = how.get("top_p") if drawn else None
        stop = ends[-1][:MOST_STOPS]
        options.append(Options(max_tokens=limit, temperature=drawn, top_p=top_p, seed=seed, stop=stop))
    texts = []
    for answer, stops in zip(request.answers(prompts, options), ends, strict=True):
        text = answer.text
        for end in stops:
            text = text.partition(end)[0]
        texts.append(_Text(text))
        texts[-1].answer = answer
    return texts
