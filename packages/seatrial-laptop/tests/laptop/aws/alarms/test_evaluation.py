from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from seatrial_laptop.aws.alarms import Evaluation, StateValue
from seatrial_laptop.aws.runtime.telemetry import MetricHistory

if TYPE_CHECKING:
    from seatrial_laptop.aws.json_document import Document

CHAT = frozenset({("InferenceComponentName", "chat")})


def alarm(**changes: object) -> dict[str, object]:
    return {
        "AlarmName": "slow",
        "Namespace": "AWS/SageMaker",
        "MetricName": "ModelLatency",
        "Dimensions": [{"Name": "InferenceComponentName", "Value": "chat"}],
        "Statistic": "Maximum",
        "Period": 60,
        "EvaluationPeriods": 1,
        "Threshold": 5.0,
        "ComparisonOperator": "GreaterThanThreshold",
        "TreatMissingData": "missing",
        "StateValue": "INSUFFICIENT_DATA",
        **changes,
    }


@dataclass
class Book:
    """One alarm, and what was set."""

    kept: dict[str, object]
    told: list[str] = field(default_factory=list)

    def alarms(self) -> list[Document]:
        return [dict(self.kept)] if self.kept else []

    def raised(self, action: str) -> list[Document]:
        raise NotImplementedError(action)

    def state(self, name: str) -> StateValue | None:
        return StateValue(str(self.kept["StateValue"])) if self.kept.get("AlarmName") == name else None

    def set_state(self, name: str, state: StateValue, reason: str) -> None:
        assert name == self.kept["AlarmName"]
        assert reason.startswith("Threshold Crossed: ")
        self.kept["StateValue"] = str(state)
        self.told.append(str(state))


def test_an_alarm_changes_when_a_period_has_ended_and_not_before() -> None:
    book, history = Book(alarm()), MetricHistory()
    evaluation = Evaluation(book, history)
    history.add(CHAT, 60.0, {"ModelLatency": [9.0]})
    evaluation.evaluate(60.0)
    history.add(CHAT, 70.0, {"ModelLatency": [1.0]})
    evaluation.evaluate(70.0)
    assert book.told == ["ALARM"]
    evaluation.evaluate(120.0)
    evaluation.evaluate(180.0)
    evaluation.evaluate(240.0)
    assert book.told == ["ALARM", "OK", "INSUFFICIENT_DATA"]


def test_an_alarm_that_is_switched_off_by_its_threshold_ends_at_the_end_of_its_period() -> None:
    """PutMetricAlarm leaves the state as it is (CloudWatch API reference); the next evaluation ends it."""
    book, history = Book(alarm(TreatMissingData="notBreaching")), MetricHistory()
    evaluation = Evaluation(book, history)
    for now_s in (60.0, 120.0):
        history.add(CHAT, now_s, {"ModelLatency": [9.0]})
    evaluation.evaluate(60.0)
    book.kept["Threshold"] = 1e15
    evaluation.evaluate(70.0)
    assert book.told == ["ALARM"]
    evaluation.evaluate(120.0)
    assert book.told == ["ALARM", "OK"]


def test_a_state_that_a_user_set_holds_until_there_is_data() -> None:
    for treatment in ("missing", "notBreaching", "ignore"):
        book, history = Book(alarm(TreatMissingData=treatment)), MetricHistory()
        evaluation = Evaluation(book, history)
        evaluation.evaluate(60.0)
        book.kept["StateValue"], book.told = "ALARM", []
        for now_s in (120.0, 180.0, 240.0):
            evaluation.evaluate(now_s)
        assert book.told == []
        history.add(CHAT, 300.0, {"ModelLatency": [1.0]})
        evaluation.evaluate(300.0)
        assert book.told == ["OK"]


def test_an_alarm_that_was_deleted_and_made_again_starts_anew() -> None:
    book, history = Book(alarm()), MetricHistory()
    evaluation = Evaluation(book, history)
    history.add(CHAT, 60.0, {"ModelLatency": [9.0]})
    evaluation.evaluate(60.0)
    book.kept = {}
    evaluation.evaluate(70.0)
    book.kept = alarm()
    evaluation.evaluate(70.0)
    assert book.told == ["ALARM", "ALARM"]
