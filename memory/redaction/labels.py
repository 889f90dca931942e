"""Words around a number that say what it is: used to tell a card from an order."""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import Final

_ORDER_LABEL = re.compile(
    r"""(?:
        (?:order|purchase\s?order|tracking|shipment|shipping|parcel|consignment|waybill|invoice
           |ticket|case|booking|reservation|rma)
        [\s_-]{0,2}(?:number|num|no\b\.?|nr\b\.?|n[°º]|id\b|ids\b|\#)
      | (?:n[uú]mero|num|n[°º]|no\.?)\s(?:de\s|do\s|da\s)?(?:pedido|orden|commande|suivi|facture
           |encomenda|factura|fatura|rastreo)
      | (?:bestell|auftrags|sendungs|rechnungs|ticket|vorgangs)-?(?:nummer|nr\b\.?|id\b)
      | (?:订单|訂單|运单|運單|快递单|快遞單|快递|物流单|物流|发票|發票|工单|工單|单|單)
        (?:编号|編號|号码|號碼|号|號|id)
      | (?:注文|追跡|伝票|送り状|お問い合わせ)番号
      | (?:주문|송장|운송장)\s?번호
    )
    ["'`)\]*]{0,3}\s{0,3}
    (?:is|was|are|es|ist|lautet|est|é|是|为|為|は|が|는|은)?
    \s{0,3}[:=\#]?\s{0,3}["'`(\[*]{0,3}$""",
    re.IGNORECASE | re.VERBOSE,
)
_CARD_WORD = re.compile(
    r"""(?<![a-z])(?:
        (?<!sim\s)(?:credit|debit|bank|payment)?\s?cards?
      | cc | pan | visa | master\s?card | amex | american\sexpress | maestro | diners | unionpay
      | discover\scard | jcb | rupay | girocard | (?:kredit|bank|ec-|debit)?karten?(?:nummer)?
      | tarjetas? | cartes?\s(?:bancaires?|bleue|de\scr[eé]dit) | cart[aã]o | carta\sdi\scredito
      | cvv2? | cvc2?
    )(?![a-z])
    | 信用卡 | 银行卡 | 銀行卡 | 储蓄卡 | 借记卡 | 卡号 | 卡號 | 银联 | 刷卡 | カード | 카드
    | \ue000""",
    re.IGNORECASE | re.VERBOSE,
)
_BEFORE: Final = 64
_CARD_WINDOW: Final = 48


def is_labelled_order(text: str, start: int) -> bool:
    """Tell whether the words right before a number name it as an order, parcel, invoice or case.

    Args:
        text: The normalised text.
        start: Where the number starts.

    Returns:
        True for "order number 123", "订单号：123"; False for a mere "order 123".
    """
    return _ORDER_LABEL.search(text[max(0, start - _BEFORE) : start]) is not None


class CardWords:
    """Where a text has words for a payment card, or a card's mark."""

    __slots__ = ("_ends", "_starts")

    def __init__(self, text: str) -> None:
        """Find them all at once.

        Args:
            text: The normalised text.
        """
        spans = [match.span() for match in _CARD_WORD.finditer(text)]
        self._starts = [start for start, _ in spans]
        self._ends = [end for _, end in spans]

    def are_near(self, start: int, end: int) -> bool:
        """Tell whether one stands close to a finding.

        Args:
            start: Where the finding starts.
            end: Where it ends.

        Returns:
            True when one stands whole within 48 characters before or after.
        """
        before = bisect_left(self._starts, start - _CARD_WINDOW)
        if before < len(self._ends) and self._ends[before] <= start:
            return True
        after = bisect_left(self._starts, end)
        return after < len(self._ends) and self._ends[after] <= end + _CARD_WINDOW
