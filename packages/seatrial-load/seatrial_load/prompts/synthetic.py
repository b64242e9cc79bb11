"""Made-up prompts of about a number of tokens, which share no beginning but the requested one.

A word of the list is one token in the common vocabularies (a frequent English word with its space before it), one to
five in a small one; prompts of one length are the same words in different orders, so that none is longer than another.
The first prompt has half as many words as tokens, so that no endpoint refuses it for its length;
`calibrated` corrects that by the endpoint's own count, chat template and special tokens included. The first words
differ from request to request and from trial to trial: a prefix cache has nothing to reuse, unless a shared prefix is
requested.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial_load.payload.json_text import Json
    from seatrial_load.payload.request import Prompt


_COUNTS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\((\d+) in the (?:prompt|messages)",  # vLLM up to 0.10, and LMI in front of it
        r"(\d+) tokens from the input messages",  # SGLang
        r"(?:has|passed|contains at least) (\d+) input tokens",  # vLLM from 0.10 on
        r"Given: (\d+) `inputs` tokens",  # TGI, prompt and answer together
        r"must have less than \d+ tokens. Given: (\d+)",  # TGI, the prompt alone
        r"prompt \((?:total )?length:? (\d+)\)",  # vLLM's engine
        r"(?:the )?input \((\d+) tokens\) is longer",  # SGLang
        r"(?:prompt|input) length[^\d]{0,20}(\d+)[^\d]{1,40}(?:exceed|longer|greater)",  # TensorRT-LLM
    )
)
_OF_LENGTH: Final = re.compile(
    r"maximum context length|max_model_len|maximum model length|context length|too many tokens|`inputs` tokens"
    r"|longer than the (?:maximum|model)|must have less than \d+ tokens|(?:prompt|input) length .*exceed",
    re.IGNORECASE,
)

_TEXT = """
the of and to in is that for it as was with be by on not he his but at are this have from or had an they which one you
were all her she there would their we him been has when who will no more if out so up said what its about than into
them can only other time new some could these two may first then do any like my now over such our man me even most
made after also did many off before must well back through years much where your way down should because long each
just state those people too same work still between life being under never last day another while house might great
world year since against right used take three states himself few use place during without again home around small
however found school part once general high upon every does got united left number course war until always away
something fact water less public put think almost hand enough took head yet government system set told nothing night
end why called eyes find going look asked later point knew next city business case group give days young let room word
social side given order often seemed early white large along big show feel face door turn best help line north south
east west free table money story music book paper letter class road car body light voice power force heart child
mother father friend family street river tree green black red blue gold stone
"""
_BY_LENGTH: Final = sorted(_TEXT.split(), key=len)
# 256 words in an order in which the first of any number are of all lengths: 159 / 256 is near the golden section.
WORDS: Final = tuple(_BY_LENGTH[place * 159 % len(_BY_LENGTH)] for place in range(len(_BY_LENGTH)))
# Fewer words than these differ from seed to seed: they have few orders.
_FEWEST_SAME: Final = 16


# Of the first prompt, before the endpoint reported a count: on the short side.
FIRST_WORDS_PER_TOKEN: Final = 0.5
# Of the wanted length, where prompts of that length were refused: single prompts vary by some percent.
BELOW_THE_LIMIT: Final = 0.95
# A word is one token at least: an endpoint that counts much less does not count the whole prompt.
_MOST_WORDS_PER_TOKEN: Final = 2.0
# Of the words of a prompt that was refused for its length without a count.
_UNTOLD: Final = 0.5

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from seatrial_load.decode.response import RequestRecord
    from seatrial_load.measure.lengths import RequestLengths


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticPrompts:
    """Prompts of the lengths of a workload.

    Attributes:
        seed: Another seed gives prompts that share nothing with these, of the same lengths.
        words_per_token: Words that make one token of the endpoint's own count.
        shared_prefix_tokens: Number of first tokens that are those of the others of the same group; of a prompt that
            is no longer, all but its last word.
        prefix_groups: Number of different shared beginnings, taken in turn.
        first: The number of the request that takes the first of the lengths.
    """

    seed: str
    lengths: RequestLengths
    words_per_token: float = 1.0
    shared_prefix_tokens: int = 0
    prefix_groups: int = 1
    first: int = 0
    turns: int = 1

    def content(self, index: int, turn: int = 0) -> str:
        """Write the words that the request adds to its conversation; the first turn has the shared prefix."""
        total = word_count(self.input_tokens(index), self.words_per_token)
        shared = 0 if turn else self._shared_words(total)
        own = words(f"{self.seed}:{index}", total - shared)
        if not shared:
            return " ".join(own)
        group = index // self.turns % self.prefix_groups
        return " ".join(words(f"{self.seed}:group {group}", shared) + own)

    def output_tokens(self, index: int) -> int:
        """Return the length of the answer of the request with this number."""
        return self.lengths.of(index - self.first)[1]

    def input_tokens(self, index: int) -> int:
        """Return the length of its prompt."""
        return self.lengths.of(index - self.first)[0]

    def own_tokens(self, index: int) -> int:
        """Return the fewest tokens that are of this prompt alone: a word is one at least, where no more make one."""
        total = word_count(self.input_tokens(index), self.words_per_token)
        return int((total - self._shared_words(total)) / max(self.words_per_token, 1.0))

    def _shared_words(self, total: int) -> int:
        return min(round(self.shared_prefix_tokens * self.words_per_token), total - 1)


def words(seed: str, count: int) -> list[str]:
    """Draw words by the digest of the seed: the same words for the same seed, in another order for another one.

    As many words are the same words for every seed, but for very few: the whole list again and again, and of it the
    first that are missing. So prompts of as many words have as many tokens, whatever the tokenizer.
    """
    if count < len(WORDS):
        among = count if count >= _FEWEST_SAME else len(WORDS)
        return [WORDS[place] for place in _order(seed, among)[:count]]
    whole, rest = divmod(count, len(WORDS))
    places = order = _order(seed, len(WORDS))
    drawn: list[str] = []
    for _ in range(whole):
        drawn += map(WORDS.__getitem__, places)
        places = places.translate(order)  # shuffled once more
    return drawn + [WORDS[place] for place in places if place < rest]


def _order(seed: str, among: int) -> bytes:
    return bytes(sorted(range(among), key=hashlib.shake_256(seed.encode()).digest(among).__getitem__))


def word_count(tokens: int, words_per_token: float) -> int:
    """Return how many words make a number of tokens; a prompt has at least one."""
    return max(1, round(tokens * words_per_token))


def calibrated(
    words_per_token: float, records: Iterable[RequestRecord], wanted_tokens: Callable[[int], int | None]
) -> float | None:
    """Return the words per token by the endpoint's own counts.

    Formula: words_per_token x (tokens that were wanted) / (tokens that the endpoint counted), over the requests whose
    count it reported; a refusal for the length may have it too. The endpoint counts its template and special tokens,
    too, so these are part of the length. Where a prompt was refused, the longest of the refused becomes 5 % shorter
    than was wanted; half as long where the refusal has no count.

    Returns:
        None when the endpoint reported no count.
    """
    written = [(wanted, record) for record in records if (wanted := wanted_tokens(record.index))]
    answered = [
        (wanted, tokens) for wanted, record in written if record.error is None and (tokens := record.input_tokens)
    ]
    refused = [(wanted, reported_prompt_tokens(record.detail)) for wanted, record in written if is_too_long(record)]
    ratios = [BELOW_THE_LIMIT * wanted / counted if counted else _UNTOLD for wanted, counted in refused]
    if answered:
        ratios.append(sum(wanted for wanted, _ in answered) / sum(counted for _, counted in answered))
    return min(words_per_token * min(ratios), _MOST_WORDS_PER_TOKEN) if ratios else None


def is_too_long(record: RequestRecord) -> bool:
    """Return whether a request was refused for its length."""
    return record.error in ("validation", "model_error") and speaks_of_length(record.detail)


@dataclass(frozen=True, slots=True)
class RawBody:
    """A whole body: only whether it streams, and the target's model, are written into it."""

    document: Mapping[str, Json]


Content: TypeAlias = "Prompt | RawBody"


class Prompts(Protocol):
    """A source of prompts; holds nothing that a fork would have to share."""

    def content(self, index: int, turn: int = 0) -> Content:
        """Return the text, the messages or the whole body of this request, or the text of a conversation's turn.

        Args:
            turn: Which turn of its conversation it is, from 0.
        """

    def output_tokens(self, index: int) -> int:
        """Return the number of requested tokens."""

    def input_tokens(self, index: int) -> int | None:
        """Return how long the prompt is meant to be; None when unknown."""

    def own_tokens(self, index: int) -> int | None:
        """Return the fewest tokens of the prompt that no other one begins with; None when unknown."""


def reported_prompt_tokens(refusal: str) -> int | None:
    """Return the prompt's tokens by a refusal; None where it names none."""
    matches = (pattern.search(refusal) for pattern in _COUNTS)
    return next((int(match[1]) for match in matches if match is not None), None)


def speaks_of_length(refusal: str) -> bool:
    """Return whether a request was refused because its prompt, or the prompt with its answer, is too long."""
    return reported_prompt_tokens(refusal) is not None or _OF_LENGTH.search(refusal) is not None
