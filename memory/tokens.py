"""How many tokens a text takes, estimated without a vocabulary."""

import math
import unicodedata

CHARACTERS_PER_TOKEN = 3.5
"""Of Latin text; a little under what the usual tokenizers manage, so that budgets hold."""
TOKENS_PER_WIDE_CHARACTER = 1.5
"""Of Chinese, Japanese, Korean and other scripts the vocabularies cover thinly; a little over the usual."""
CHARACTERS_PER_DIGIT_TOKEN = 2.0
"""Of digits and punctuation, which are cut into short pieces."""

_LATIN_END = 0x0250


def estimate(text: str) -> int:
    """Tokens a prompt spends on a text, rounded up; meant to be over rather than under.

    `estimate("order 10482")` is 5: six letters and blanks of 3.5 and five digits of 2 a token.
    """
    letters = others = wide = 0
    for character in text:
        code = ord(character)
        if code < _LATIN_END:
            if character.isalpha() or character == " ":
                letters += 1
            else:
                others += 1
        elif unicodedata.category(character).startswith("Z"):
            letters += 1
        else:
            wide += 1
    return math.ceil(
        letters / CHARACTERS_PER_TOKEN
        + others / CHARACTERS_PER_DIGIT_TOKEN
        + wide * TOKENS_PER_WIDE_CHARACTER
    )
