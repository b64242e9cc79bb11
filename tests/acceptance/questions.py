"""What only an account can tell: each question with what Seatrial takes for its answer.

The cases record the answers word for word. Where an assumption is wrong, the case that asked fails, on an account too:
the transcript then has the answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from seatrial_base.printer import Json
    from tests.acceptance.target import Target


@dataclass(frozen=True, slots=True)
class Question:
    """A question.

    Attributes:
        name: Its name in transcripts.
        asked: The question.
        assumed: What the embedded AWS answers, and Seatrial is built on.
        not_asked_because: Why no case asks it; empty where one does.
    """

    name: str
    asked: str
    assumed: str
    not_asked_because: str = ""


QUESTIONS: Final = (
    Question(
        "absent-component",
        "Which error does the trial's role get for a component that does not exist?",
        "ValidationException, 'Could not find': the name alone allows it, and no tag is asked for.",
    ),
    Question(
        "alarms-asked-by",
        "Which roles ask for DescribeAlarms when alarms are to roll back?",
        "Not known. Every role of the endpoint may ask.",
    ),
    Question(
        "capacity",
        "What becomes of a component without room: status, words, time, and can it be deleted?",
        "Creating, and nobody can delete it, for as long as its container may take to start; then Failed.",
    ),
    Question(
        "rollback-under-alarm",
        "How does CloudFormation's rollback end while the alarm is raised?",
        "UPDATE_ROLLBACK_COMPLETE.",
    ),
    Question(
        "copies-after-rollback",
        "Which CopyCount has a component after a rollback, whose property is an attribute of another resource?",
        "Those that somebody set, not the planned ones.",
    ),
    Question(
        "request-tags",
        "Which resources of CreateInferenceComponent does a condition on aws:RequestTag hold for?",
        "For all of them: the key belongs to the request.",
    ),
    Question(
        "update-window",
        "Is a change refused while copies or instances are still changing, and with which words?",
        "ValidationException until the component is InService.",
    ),
    Question(
        "same-configuration",
        "What does UpdateEndpoint do with the configuration that is live?",
        "It is accepted, and no copy moves.",
    ),
    Question(
        "metric-dimensions",
        "Which metrics have the dimension InferenceComponentName alone?",
        "ModelLatency, Invocations and NoCapacityInvocationFailures.",
    ),
    Question(
        "start-times",
        "Does a first copy start within the two timeouts of its component, with instance and image?",
        "Yes.",
    ),
    Question(
        "source-account",
        "Do Service Catalog and CloudFormation launch a product with the trust policy of its launch role?",
        "Yes.",
    ),
    Question(
        "job-rights",
        "Which rights does an optimization job need of its role?",
        "S3, ECR and its own logs.",
        "a job costs an hour of a larger GPU; run `seatrial jobs` by hand",
    ),
    Question(
        "function-throughput",
        "How many tokens per second does one function take in?",
        "20,000.",
        "one small GPU gives 300: it needs an endpoint of many GPUs",
    ),
    Question(
        "interference",
        "What does a candidate cost the users beside it on an instance of several GPUs?",
        "Nothing that a trial sees.",
        "the smallest instances have one GPU",
    ),
)
_BY_NAME: Final = {question.name: question for question in QUESTIONS}


def record(target: Target, name: str, answer: Json) -> None:
    """Write the answer to a question into the transcript."""
    question = _BY_NAME[name]
    assert not question.not_asked_because, name
    target.recorder.answer(question.name, question.asked, question.assumed, answer)
