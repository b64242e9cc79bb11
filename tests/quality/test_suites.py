"""Suites on a server over the wire: evaluation sets as a user runs them, lm-eval by a thin fake of it.

`make test-suites` runs lm-eval itself, in an environment of its own: 700 MB.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import jinja2
import pytest

from seatrial.quality import suites
from seatrial.quality.suites import (
    SuiteMetric,
    SuiteRequest,
    SuiteResult,
    SuitesResult,
    compare_suites,
    measure_suites,
    read_suites,
)
from seatrial_base.errors import SeatrialError, SpecError
from seatrial_load.cli.requests import Mistakes, server_request
from tests.cli.conftest import REPOSITORY, Seatrial, project, seatrial
from tests.cli.test_failures import SEATRIAL

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

__all__ = ["project", "seatrial"]  # fixtures

PYTHON = os.environ.get("SEATRIAL_SUITES", "")
INTERRUPTED: list[int] = []
SUMS = [(a, b) for a in range(8) for b in range(5)]
TASK = re.findall(r"```yaml\n(task: mine.*?)```", (REPOSITORY / "docs/how-to/compare.md").read_text(), re.DOTALL)[0]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Serve sums: right unless they divide by 4, cut where the first number is 3, refused where that is 9."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            document = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            a, b = map(int, re.findall(r"(\d+)\+(\d+)", document["messages"][-1]["content"])[-1])
            if a == 8:
                os.kill(INTERRUPTED[0], signal.SIGINT)
                self.close_connection = not self.rfile.read(1)  # until the client hangs up
                return
            text = f"#### {a + b if (a + b) % 4 else 'unsure'} so the answer is (A) Question: more"
            choices = [({"content": text[:6]}, None), ({"content": text[6:]}, "length" if a == 3 else "stop")]
            lines = [{"choices": [{"index": 0, "delta": part, "finish_reason": end}]} for part, end in choices]
            body = "".join(f"data: {json.dumps(line)}\n\n" for line in lines).encode() + b"data: [DONE]\n\n"
            self.send_response(400 if a == 9 else 200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        threading.Thread(target=listening.serve_forever).start()
        yield f"http://127.0.0.1:{listening.server_address[1]}/v1"
        listening.shutdown()


def write_set(folder: Path, sums: Sequence[tuple[int, int]] = SUMS, name: str = "eval.jsonl") -> None:
    rows = [{"prompt": f"{a}+{b}", "reference": f"#### {a + b} so the answer is (A) question: more"} for a, b in sums]
    (folder / name).write_text("".join(f"{json.dumps(row)}\n" for row in rows))


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        ("--at-least eval=0.5", 0, "met: eval:exact_match at least 0.5"),
        ("--at-least eval:exact_match=0.9", 1, "missed: eval:exact_match at least 0.9"),
        ("--at-least eval=0.7", 1, "not proven met or missed: eval:exact_match at least 0.7"),
        ("--at-least eval=0.1 --limit 19", 1, "eval:exact_match at least 0.1; too few samples"),
        ("--at-least eval:rouge=0.1", 1, "eval:rouge at least 0.1; not measured"),
    ],
)
def test_a_bound_holds_where_the_interval_proves_it(
    seatrial: Seatrial, project: Path, url: str, options: str, code: int, words: str
) -> None:
    write_set(project)
    done = seatrial("quality", "--url", url, "--suite", "eval.jsonl", *options.split())
    assert (done.returncode, words in done.stdout) == (code, True), done.stdout + done.stderr


def test_a_result_is_compared_sample_by_sample(seatrial: Seatrial, project: Path, url: str) -> None:
    write_set(project)
    run = ("quality", "--url", url, "--suite", "eval.jsonl", "--output")
    assert seatrial(*run, "a.json").returncode == 0
    kept = json.loads((project / "a.json").read_text())["suites"][0]
    assert (len(kept["samples"]), sum(kept["metrics"][0]["scores"]), kept["cut"]) == (40, 30.0, 5)
    done = seatrial(*run, "b.json", "--baseline", "a.json", "--tolerance", "0.1")
    assert (done.returncode, "met: eval:exact_match at most 0.1 worse" in done.stdout) == (0, True), done.stdout
    assert seatrial(*run, "b.json", "--baseline", "a.json", "--tolerance", "0.05").returncode == 1
    assert "no real" in seatrial("compare", "a.json", "b.json").stdout
    worse = (project / "a.json").read_text().replace("1.0", "0.0")
    (project / "b.json").write_text(worse)
    done = seatrial("compare", "a.json", "b.json")
    assert (done.returncode, "worse" in done.stdout) == (1, True)
    assert "SEA532" in seatrial("compare", "a.json", "b.json", "--output", "out").stderr
    (project / "b.json").write_text(worse.replace("0.0,", "", 1))
    assert "SEA529" in seatrial("compare", "a.json", "b.json").stderr


def test_a_sample_that_failed_is_not_a_wrong_answer(seatrial: Seatrial, project: Path, url: str) -> None:
    write_set(project, [*SUMS, (9, 1), (9, 2)])
    done = seatrial("quality", "--url", url, "--suite", "eval.jsonl", "--at-least", "eval=0.5")
    assert (done.returncode, "0.75" in done.stdout, "40 of 42" in done.stdout) == (0, True, True), done.stdout
    write_set(project, [*SUMS, *((9, b) for b in range(5))])
    done = seatrial("quality", "--url", url, "--suite", "eval.jsonl", "--at-least", "eval=0.5")
    assert (done.returncode, "only 40 of 45 were answered (" in done.stdout) == (1, True), done.stdout
    write_set(project, [(9, 1)], "none.jsonl")
    done = seatrial("quality", "--url", url, "--suite", "eval.jsonl,none.jsonl", "-o", "out.json")
    assert (done.returncode, "SEA534" in done.stderr, (project / "out.json").is_file()) == (1, True, True)


def test_what_was_measured_before_an_interruption_is_shown_and_written(project: Path, url: str) -> None:
    """One suite is whole, of the next one five of seven answers came."""
    write_set(project, name="whole.jsonl")
    write_set(project, [*SUMS[:5], (8, 1), (0, 1)])
    write_set(project, name="never.jsonl")
    command = [*SEATRIAL, "quality", "--url", url, "--suite", "whole.jsonl,eval.jsonl,never.jsonl", "-o", "out.json"]
    command += ["--concurrency", "1", "--at-least", "whole=0.1"]
    with subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as asking:
        INTERRUPTED[:] = [asking.pid]
        shown, error = asking.communicate(timeout=60)
    assert (asking.returncode, error.splitlines()[-1:]) == (130, ["interrupted"]), error
    assert shown.endswith(
        "the run is incomplete and decides nothing: whole measured, eval interrupted after 5 of 7, never not measured\n"
    ), shown
    assert "met:" not in shown
    kept = [(suite.name, len(suite.samples), suite.undecided) for suite in read_suites(project / "out.json").suites]
    assert kept == [("whole", 40, ""), ("eval", 5, "; interrupted after 5 of 7")]


def test_every_mistake_is_told_at_once(seatrial: Seatrial, project: Path) -> None:
    (project / "none.jsonl").write_text('{"prompt": "hello"}\n')
    wrong = ("--suite", "a,a", "--at-least", "b=0.5", "--at-least", "a", "--tolerance", "0.1", "-e", "dev")
    done = seatrial("quality", "--url", "http://127.0.0.1:9/v1", *wrong)
    assert (done.returncode, done.stderr.count("SEA555")) == (2, 6), done.stderr
    bounds = ("--suite", "none.jsonl", "--at-least", "none=nan", "--at-least", "none=0.5")
    done = seatrial("quality", "--url", "http://127.0.0.1:9/v1", *bounds)
    assert (done.returncode, done.stderr.count("SEA555")) == (2, 2), done.stderr
    done = seatrial("quality", "--url", "http://127.0.0.1:9/v1", "--suite", "eval.jsonl", "-o", ".")
    assert (done.returncode, "SEA530" in done.stderr, "a folder" in done.stderr) == (2, True, True), done.stderr
    done = seatrial("quality", "--url", "http://127.0.0.1:9/v1", "--suite", "gsm8k,none.jsonl")
    assert (done.returncode, "pip install 'seatrial[quality]'" in done.stderr) == (2, True)
    assert ("SEA556" in done.stderr, "SEA557" in done.stderr) == (True, True)


class FakeTask:
    """What is read of a task of lm-eval."""

    OUTPUT_TYPE = "generate_until"
    eval_docs = SUMS
    hub_metric = ""

    def set_fewshot_seed(self, _seed: int) -> None:
        pass

    def higher_is_better(self) -> dict[str, bool]:
        return {"exact_match": True, "slips": False, "bleu": True}

    def aggregation(self) -> dict[str, object]:
        def mean() -> None:
            pass

        return {"exact_match": mean, "slips": mean, "bleu": sum}


class FakeManager:
    """Loads what a test puts there, or raises it."""

    task_index = ("gsm8k",)
    task: FakeTask | Exception

    def __init__(self, *, include_defaults: bool) -> None:
        assert include_defaults

    def load(self, _names: list[str]) -> dict[str, dict[str, FakeTask]]:
        if isinstance(self.task, Exception):
            raise self.task
        if self.task.hub_metric:
            with suppress(ValueError):  # as lm-eval does
                sys.modules["evaluate"].load(self.task.hub_metric)
        return {"tasks": {"gsm8k": self.task}}


def fake_evaluate(model: Any, tasks: Any, *, samples: dict[str, list[int]], **_: object) -> dict[str, Any]:  # noqa: ANN401
    assert tasks["groups"] == {}
    docs = [SUMS[place] for place in samples["gsm8k"]]
    how = {"until": ["Question:"], "do_sample": False, "temperature": 0.0, "max_gen_toks": 16}
    requests = [SimpleNamespace(args=(model.apply_chat_template([{"role": "user", "content": f"{a}+{b}"}]), how))
             for a, b in docs]  # fmt: skip
    rows = []
    for number, ((a, b), text) in enumerate(zip(docs, model.generate_until(requests), strict=True)):
        assert "Question" not in text
        is_right = text.startswith(f"#### {a + b} ")
        row = {
            "doc_id": number,
            "prompt_hash": f"{a}+{b}",
            "resps": [[text]],
            "metrics": ["exact_match", "slips", "bleu"],
        }
        rows.append({**row, "filter": "strict", "exact_match": is_right, "slips": not is_right, "bleu": (1, 2)})
    return {"samples": {"gsm8k": rows}}


@pytest.fixture
def harness(monkeypatch: pytest.MonkeyPatch) -> type[FakeManager]:
    parts: dict[str, dict[str, object]] = {
        "lm_eval": {"evaluate": fake_evaluate},
        "lm_eval.api": {},
        "lm_eval.api.model": {"LM": object},
        "lm_eval.tasks": {"TaskManager": FakeManager},
        "lm_eval.tasks._yaml_loader": {"_import_func_in_yml": None},
        "lm_eval.utils": {"env": jinja2.Environment()},  # noqa: S701 (as lm-eval has it)
        "evaluate": {"load": None},
    }
    for name, fields in parts.items():
        module = ModuleType(name)
        module.__spec__ = ModuleSpec(name, None)
        module.__dict__.update(fields)
        monkeypatch.setitem(sys.modules, name, module)
        if "." in name:
            setattr(sys.modules[name.rpartition(".")[0]], name.rpartition(".")[2], module)
    monkeypatch.setattr(suites, "version", lambda _name: "0")
    monkeypatch.setattr(FakeManager, "task", FakeTask(), raising=False)
    return FakeManager


def request_to(url: str, limit: int | None = None) -> SuiteRequest:
    trial = server_request({"--url": url}, Mistakes(given=frozenset({"--url"})))
    return SuiteRequest(trial=trial, limit=limit, seed=1, most_tokens=None, streams=2)


@pytest.mark.usefixtures("harness")
def test_lm_eval_scores_what_the_endpoint_answers(url: str) -> None:
    result, problems, _ = measure_suites(["gsm8k"], request_to(url))
    (suite,) = result.suites
    assert (problems, len(suite.samples), suite.cut) == ((), 40, 5)
    assert [(metric.name, sum(metric.scores)) for metric in suite.metrics] == [("exact_match,strict", 30.0)]
    part, *_ = measure_suites(["gsm8k"], request_to(url, 20))
    assert len(part.suites[0].samples) == 20


@pytest.mark.parametrize(
    ("task", "rule", "words"),
    [
        (type("Given", (FakeTask,), {"OUTPUT_TYPE": "multiple_choice"})(), "SEA557", "log-probabilities"),
        (type("Hub", (FakeTask,), {"hub_metric": "bleurt"})(), "SEA557", "bleurt is code beside lm-eval"),
        (ConnectionError("Couldn't reach 'openai/gsm8k' on the Hub"), "SEA558", "openai/gsm8k"),
        (KeyError("until"), "SEA557", "lm-eval can't load it: KeyError"),
    ],
)
def test_a_suite_that_can_not_be_measured_is_refused(
    harness: type[FakeManager], task: FakeTask | Exception, rule: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harness, "task", task)
    with pytest.raises(SeatrialError) as refused:
        measure_suites(["gsm8k"], request_to("http://127.0.0.1:9/v1"))
    assert rule in str(refused.value)
    assert words in str(refused.value)


def scored(first: int = 0, most_tokens: int | None = None, shift: float = 0) -> SuitesResult:
    metric = SuiteMetric(name="f1", scores=tuple(0.1 + shift + number / 90 for number in range(40)))
    names = tuple(f"{first + number}" for number in range(40))
    suite = SuiteResult(name="s", source="", samples=names, sent=40, cut=0, because="", engine="", metrics=(metric,))
    return SuitesResult(endpoint="chat", most_tokens=most_tokens, suites=(suite,))


def test_scores_between_0_and_1_are_paired_too() -> None:
    (difference,) = compare_suites(scored(), scored(shift=0.1)).differences
    assert (difference.verdict, round(difference.difference, 6), difference.count) == ("better", 0.1, 40)
    half = compare_suites(scored(), scored(first=25))
    assert (half.paired, half.differences[0].count, half.notes) == (
        15, 15, ("25 of 40 samples were not answered in both and are left out",)
    )  # fmt: skip


@pytest.mark.parametrize("other", [scored(first=99), scored(most_tokens=9)])
def test_results_without_a_common_sample_are_refused(other: SuitesResult) -> None:
    with pytest.raises(SpecError, match="SEA559"):
        compare_suites(scored(), other)


@pytest.mark.skipif(not PYTHON, reason="opt-in: make test-suites")
def test_lm_eval_itself_measures_its_suites_and_ones_own(url: str, tmp_path: Path) -> None:
    def write(name: str, rows: Sequence[object]) -> None:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("".join(f"{json.dumps(row)}\n" for row in rows))

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [PYTHON, "-m", "seatrial.cli", "quality", "--url", url, "--suite", *arguments]
        variables = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": f"{tmp_path}/hf", "HF_TOKEN": "hf_secret",
                     "PYTHONPATH": f"{REPOSITORY}"}  # fmt: skip
        return subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)

    write("mine.jsonl", [{"question": f"What is {a}+{b}?", "answer": f"{a + b}"} for a, b in SUMS])
    sums = [{"question": f"What is {a}+{b}?", "answer": f"a sum\n#### {a + b}"} for a, b in SUMS]
    (tmp_path / "mine.yaml").write_text(TASK)
    # Questions of ours in the form of the suites' data sets, where `datasets` looks before it looks on the hub.
    write("openai/gsm8k/main/train.jsonl", sums)
    write("openai/gsm8k/main/test.jsonl", sums)
    splits = "".join(f"  - {{split: {split}, path: main/{split}.jsonl}}\n" for split in ("train", "test"))
    card = f"---\nconfigs:\n- config_name: main\n  data_files:\n{splits}---\n"
    (tmp_path / "openai/gsm8k/README.md").write_text(card)
    rule = {"instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]}
    write("google/IFEval/train.jsonl", [{"key": a, "prompt": f"{a}+1", **rule} for a in range(8)])
    about = {"question": "1+1", "options": ["2", "3"], "cot_content": "A: It is 2."}
    choices = [{**about, "category": each, "answer": letter} for each in ("law", "math") for letter in "ABABAB"]
    for split in ("test", "validation"):
        write(f"TIGER-Lab/MMLU-Pro/{split}.jsonl", choices)
    done = run("mine.yaml,gsm8k,ifeval,mmlu_pro_law", "--output", "out.json")
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "out.json").read_text())
    metrics = ((f"{suite['name']}:{each['name']}", each["scores"]) for suite in result["suites"]
               for each in suite["metrics"])  # fmt: skip
    assert {name: (sum(scores), len(scores)) for name, scores in metrics} == {
        "mine:exact_match,last-number": (30.0, 40),
        "gsm8k:exact_match,strict-match": (30.0, 40),
        "gsm8k:exact_match,flexible-extract": (30.0, 40),
        "ifeval:prompt_level_strict_acc": (8.0, 8),
        "ifeval:prompt_level_loose_acc": (8.0, 8),
        "mmlu_pro_law:exact_match,custom-extract": (3.0, 6),
    }
    (tmp_path / "utils.py").write_text("open('ran', 'w')\n")
    (tmp_path / "code.yaml").write_text(
        TASK.replace("doc_to_target:", "process_docs: !function utils.ran\ndoc_to_target:")
    )
    escape = "{{ cycler.__init__.__globals__.os.system('touch ran') }}"
    (tmp_path / "jinja.yaml").write_text(TASK.replace("{{question}}", escape))
    (tmp_path / "hub.yaml").write_text(TASK.replace("exact_match", "accuracy"))
    (tmp_path / "given.yaml").write_text(TASK.replace("generate_until", "multiple_choice") + 'doc_to_choice: ["a"]\n')
    for name in ("code", "jinja", "hub", "given"):
        done = run(f"{name}.yaml")
        assert (done.returncode, "SEA557" in done.stderr, "Traceback" in done.stderr) == (2, True, False), done.stderr
    done = run("hellaswag,nosuch,squadv2")
    assert (done.stderr.count("SEA558"), done.stderr.count("SEA555"), "Rowan/hellaswag" in done.stderr) == (2, 1, True)
    assert "hf_secret" not in done.stderr + json.dumps(result)
    assert not (tmp_path / "ran").exists()
