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
# The same for text of plain letters only, several times as fast.
_PLAIN_WORD = re.compile(r"[0-9a-z]+")
_PLAIN_JOINT = re.compile(r"[-_.@/:+#][0-9a-z]")
_PLAIN_IDENTIFIER = re.compile(r"(?<![0-9a-z])[0-9a-z]++(?:[-_.@/:+#]+[0-9a-z]++)++")
_NUMBER = re.compile(r"\d")
_YEAR = re.compile(r"(?:19|20)\d\d")


def tokens(text: str) -> list[str]:
    """The words of a text, folded to lower case and compatible forms, in no particular order.

    Returns:
        One entry an occurrence, so that counting gives term frequencies.
    """
    if text.isascii():
        return _plain(text.lower())
    folded = unicodedata.normalize("NFKC", text).casefold()
    if folded.isascii():
        return _plain(folded)
    found = _WORD.findall(folded)
    found += _IDENTIFIER.findall(folded)
    for run in _DENSE_RUN.findall(folded):
        found += [run[i : i + 2] for i in range(len(run) - 1)] or [run]
    return found


def _plain(folded: str) -> list[str]:
    found = _PLAIN_WORD.findall(folded)
    return found + _PLAIN_IDENTIFIER.findall(folded) if _PLAIN_JOINT.search(folded) else found


def is_identifier(token: str) -> bool:
    """Whether a word names one particular thing: it has a digit, and is neither a digit nor a year."""
    return len(token) > 1 and _NUMBER.search(token) is not None and not _YEAR.fullmatch(token)
