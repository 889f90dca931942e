"""Words of a text for the lexical half of recall, in any script.

Latin and other scripts with blanks give words; Chinese, Japanese, Korean and other scripts without give
pairs of neighbouring characters. What looks like an identifier (A-4471-X, v1.6, an e-mail, #10482) is kept
whole, beside its pieces.
"""

import re
import unicodedata

# Scripts written without blanks between words: Thai to Khmer, kana, Han, Hangul.
_DENSE = (
    "\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff"
    "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af\U00020000-\U0003ffff"
)
_DENSE_RUN = re.compile(f"[{_DENSE}]+")
# Vowel signs and points belong to the word they are written in, though they are no letters.
_SIGNS = "\u0300-\u036f\u0591-\u05bd\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff\u200c\u200d"
_LETTER = rf"(?:[^\W_{_DENSE}]|[{_SIGNS}])"
_WORD = re.compile(rf"[^\W_{_DENSE}]{_LETTER}*+")
# Possessive, and only from the start of a word, so that the time stays proportional to the text.
_IDENTIFIER = re.compile(rf"(?<![^\W_{_DENSE}])[^\W_{_DENSE}]++(?:[-_.@/:+#]+[^\W_{_DENSE}]++)++")
_NUMBER = re.compile(r"\d")


def tokens(text: str) -> list[str]:
    """The words of a text, folded to lower case and compatible forms, in no particular order.

    Returns:
        One entry an occurrence, so that counting gives term frequencies.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    found = _WORD.findall(folded)
    found += _IDENTIFIER.findall(folded)
    for run in _DENSE_RUN.findall(folded):
        found += [run[i : i + 2] for i in range(len(run) - 1)] or [run]
    return found


def is_identifier(token: str) -> bool:
    """Whether a word names one particular thing: it has a digit and more than one character."""
    return len(token) > 1 and _NUMBER.search(token) is not None
