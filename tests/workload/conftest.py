"""A byte-level BPE tokenizer, trained on the words of the prompts and written as a model's `tokenizer.json`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers

from seatrial_load.prompts.synthetic import WORDS

if TYPE_CHECKING:
    from pathlib import Path


def trained(vocabulary: int) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, special_tokens=["<s>"], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator([" ".join(WORDS)] * 3, trainer)
    begin = tokenizer.token_to_id("<s>")
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", begin)])
    return tokenizer


@pytest.fixture(scope="session", params=[260, 400, 2000], ids=["bytes", "pieces", "words"])
def tokenizer_file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A vocabulary that knows nearly bytes only, one of pieces, and one that knows each word."""
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    path.write_text(trained(request.param).to_str(), encoding="utf-8")
    return path
