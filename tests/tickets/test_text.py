"""What the person said now is kept, and nothing else."""

import time

import pytest

from tickets.text import clean_line, clean_text, cut_history, html_to_text

REPLIES = {
    "gmail": "It works.\n\nOn Mon, 4 Mar 2024 at 10:00, Bo <bo@example.com> wrote:\n> Please restart.",
    "wrapped": "It works.\n\nOn Mon, 4 Mar 2024 at 10:00, Bo\n<bo@example.com> wrote:\n\nPlease restart.",
    "outlook": "It works.\n\n________________________________\nFrom: Bo <bo@example.com>\n"
    "Sent: Monday\nTo: Ann\nSubject: Restart\n\nPlease restart.",
    "sent": "It works.\n\nFrom: Bo\nSent: Monday, 4 March 2024\n\nPlease restart.",
    "original": "It works.\n\n-----Original Message-----\nPlease restart.",
    "forwarded": "It works.\n\n---------- Forwarded message ---------\nFrom: Cy\n\nI like cats.",
    "marker": "It works.\n\n##- Please type your reply above this line -##\n\nPlease restart.",
    "quoted": "> Please restart.\nIt works.",
    "below": "On Mon, 4 Mar 2024 at 10:00, Bo wrote:\n> Please restart.\n\nIt works.",
    "german": "It works.\n\nAm 04.03.2024 um 10:00 schrieb Bo <bo@example.com>:\n\nBitte neu starten.",
    "french": "It works.\n\nLe lun. 4 mars 2024 à 10:00, Bo <bo@example.com> a écrit :\n> Bonjour",
    "chinese": "It works.\n\n在 2024年3月4日，客服 <bo@example.com> 写道：\n> 请重启",
    "chinese_block": "It works.\n\n发件人：客服\n发送时间：2024年3月4日\n收件人：安\n主题：回复\n\n请重启",
    "traditional": "It works.\n\nBo <bo@example.com> 於 2024年3月4日 寫道：\n> 請重啟",
    "signature": "It works.\n\n-- \nAnn Example\nExample Ltd\n+1 555 0100",
    "phone": "It works.\n\nSent from my iPhone",
    "phone_german": "It works.\n\nVon meinem iPhone gesendet",
    "phone_chinese": "It works.\n\n发自我的iPhone",
    "closing": "It works.\n\nBest regards,\nAnn Example\nExample Ltd",
    "closing_chinese": "It works.\n\n此致\n敬礼\n安",
    "all": "It works.\n\nKind regards\nAnn\n\nSent from my iPhone\n\nOn 4 Mar 2024, Bo wrote:\n> Restart.",
}


@pytest.mark.parametrize("name", REPLIES)
def test_quoted_history_and_signatures_are_cut(name: str) -> None:
    """Only the new words stay, whatever the mail program and its language."""
    assert cut_history(REPLIES[name]) == "It works."


@pytest.mark.parametrize(
    "text",
    [
        "Hello\nThanks, that worked. My address is 12 Main St.\nAlso the invoice is wrong.",
        "I need:\n- one mug\n- two cups\nThanks",
        "Please rebook.\nFrom: Berlin\nTo: Munich\nDate: 3 May\nA window seat, please.",
        "On Monday the driver wrote:\nNobody at home.",
        "Date: 3 May\nI was at home all day.",
        "Order: 4471\nColour: blue\nPlease change both.",
        "We tried -- without success -- to call.",
        "Best regards to your colleague in Oslo, he was very kind.\nNow to my question.",
        "The error says: 5 > 3 is false",
        "时间：下午三点可以吗？",
    ],
)
def test_own_words_that_look_like_mail_are_kept(text: str) -> None:
    """A cut that takes the customer's words is worse than a quotation that stays."""
    assert cut_history(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "> Please restart.",
        "-----Original Message-----\nMy order is late.",
        "From: Ann <ann@example.com>\nSubject: Mug\n\nMy mug is broken.",
        "Sent from my iPhone",
        "-- \nAnn Example",
        "On 4 Mar 2024, Bo wrote:\n> Please restart.",
    ],
)
def test_message_is_never_cut_to_nothing(text: str) -> None:
    """A message that is all quotation or signature stays as it is."""
    assert cut_history(text) == clean_text(text)


def test_signature_mark_high_above_is_no_signature() -> None:
    """Two hyphens with a long text below only divide the text."""
    text = "First.\n--\n" + "\n".join(f"Line {number}." for number in range(20))
    assert cut_history(text) == text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ('<p>See <a href="https://example.com/x">the guide</a>.</p>', "See the guide."),
        ("one<br>two<br/>three", "one\ntwo\nthree"),
        ("<ul><li>mug</li><li>cup</li></ul>", "- mug\n- cup"),
        ("<p>a</p><p>b</p>", "a\n\nb"),
        ("<div>a</div><div>b</div>", "a\nb"),
        ("a\n   b", "a b"),
        ("<pre>a\n  b</pre>", "a\n  b"),
        ("<style>p{}</style><script>alert(1)</script><p>a</p><!-- no -->", "a"),
        ('<div style="display: none">hidden</div>shown', "shown"),
        (
            "<table><tr><td>Colour</td><td>blue</td></tr><tr><td>Size</td><td>3</td></tr></table>",
            "Colour blue\nSize 3",
        ),
        ('<img alt="a broken mug" src="cid:1">', "a broken mug"),
        ("5 &lt; 6 &amp; 7&nbsp;&gt; 2", "5 < 6 & 7 > 2"),
        ("a < b and c > d", "a < b and c > d"),
        ("<b>not closed", "not closed"),
        ("<![if mso]>x<![endif]><p>y", "x\n\ny"),
        ("<?xml version='1.0'?><p>y</p>", "y"),
        ("https://example.com/only-a-link", "https://example.com/only-a-link"),
        ("", ""),
    ],
)
def test_html_is_read_as_a_person_reads_it(html: str, text: str) -> None:
    """Structure becomes lines, words of links stay, what is not shown goes."""
    assert html_to_text(html) == text


@pytest.mark.parametrize(
    "quote",
    [
        "<blockquote><p>Please restart.</p><p>Bo</p></blockquote>",
        '<div class="gmail_quote">On 4 Mar 2024, Bo wrote:<br><blockquote>x</blockquote></div>',
        '<div class="yahoo_quoted"><p>Please restart.</p></div>',
    ],
)
def test_quotations_in_html_are_cut(quote: str) -> None:
    """Quote blocks go, the words above and below stay."""
    assert cut_history(html_to_text(f"<p>It works.</p>{quote}")) == "It works."
    assert cut_history(html_to_text(f"{quote}<p>It works.</p>")) == "It works."


def test_control_characters_and_lone_surrogates_go() -> None:
    """What a store or a model cannot take is removed, the rest is untouched."""
    assert (
        clean_text("a\0b\x07c\ud800d\ufeffe\x7f\r\nf\tg 😀 <|endoftext|>") == "abcde\nf\tg 😀 <|endoftext|>"
    )
    assert clean_text("a\n\n\n\n b  \n") == "a\n\n b"
    assert clean_line(" a\n b\0 ") == "a b"


@pytest.mark.parametrize(
    "text",
    [
        "On a 1 " * 40_000,
        "On a 1\n" * 40_000,
        ("On " + "a 1 " * 70 + ":\n") * 900,
        "From: a@b\nx: y\n" * 15_000,
        " \n" * 120_000,
        "--\n" * 80_000,
        "Best regards\n" * 20_000,
    ],
)
def test_long_texts_are_cut_in_time(text: str) -> None:
    """Two hundred kilobytes made to be slow take seconds, not minutes."""
    began = time.perf_counter()
    cut_history(text)
    assert time.perf_counter() - began < 20


@pytest.mark.parametrize(
    "piece", ["<a ", "<!--", "</a ", "<div>", "<![", "<blockquote>", "<a b='", "<?", "<p></div>"]
)
def test_long_broken_html_is_read_in_time(piece: str) -> None:
    """Unfinished tags and deep nesting cost time in proportion to their length."""
    began = time.perf_counter()
    html_to_text(piece * (200_000 // len(piece)))
    assert time.perf_counter() - began < 20
