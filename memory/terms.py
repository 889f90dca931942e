"""What a text is searched by: its words without inflection and without the words that say nothing.

English words are stemmed by Snowball (snowballstem.org); the words of other languages stay as they are, and
scripts without blanks are pairs of characters anyway.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from memory.tokenizer import tokens

if TYPE_CHECKING:
    from Stemmer import Stemmer

_CACHED_WORDS = 65_536
_ENGLISH = frozenset("abcdefghijklmnopqrstuvwxyz")

_FUNCTION_WORDS = """
    a an the this that these those some any such
    i me my mine you your yours he him his she her hers it its we us our ours they them their theirs
    am is are was were be been being do does did done have has had having
    can could will would shall should may might must
    and or but if so as than then because while
    of in on at to from for with by about into over after before up out off
    what when where which who whom whose why how
    not no yes there here just also too very please tell
    s t d m ll re ve don didn doesn isn wasn aren weren hasn haven hadn won couldn wouldn shouldn
"""
STOP_WORDS = frozenset(_FUNCTION_WORDS.split())
"""English function words. A question is full of them, and its answer need not have any."""

QUESTION_WORDS = re.compile(
    "[为為]?[什甚][么麼](?:时候|時候)?|怎[么麼]?[样樣]?|多少|哪[里裡儿兒个個些]?|[谁誰几幾吗嗎呢]|[请請][问問]"
)
"""Chinese words of questions, which no answer needs; pairs of characters would reach across them."""


def terms(text: str) -> Mapping[str, int]:
    """The terms of a text and how often each occurs.

    A text of nothing but words that say nothing keeps them, so that every text with a word in it has a term.

    Returns:
        Term → occurrences; empty for a text without words.
    """
    said = text if text.isascii() else QUESTION_WORDS.sub(" ", text)
    telling = [word for word in tokens(said) if word not in STOP_WORDS]
    counts: dict[str, int] = {}
    for stem in map(_stem, telling or tokens(text)):
        counts[stem] = counts.get(stem, 0) + 1
    return counts


@lru_cache(maxsize=_CACHED_WORDS)
def _stem(word: str) -> str:
    if len(word) < 3 or not _ENGLISH.issuperset(word):
        return word
    stem: str = _stemmers.english.stemWord(word)
    return stem


class _Stemmers(threading.local):
    """The English stemmer of each thread: one stemmer is not made for several."""

    @cached_property
    def english(self) -> Stemmer:
        from Stemmer import Stemmer  # at the first recall, not at the start

        return Stemmer("english", 0)  # it need not keep what `_stem` does


_stemmers = _Stemmers()
