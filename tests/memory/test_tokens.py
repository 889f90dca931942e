"""Estimates of tokens hold against what real tokenizers count."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.tokens import estimate

# Text → the most that one of four real tokenizers counts: OpenAI's cl100k_base (GPT-4) and o200k_base
# (GPT-4o and newer), Qwen's, and Anthropic's of Claude 2. They were counted with the vocabularies that the
# packages litellm, dashscope and anthropic 0.34 contain.
CJK = {
    "您的退款已经处理完毕，预计三到五个工作日内到账。": 24,
    "你好，我是 Foy，我想把收货地址改到上海市浦东新区世纪大道100号。": 35,
    "你知道我叫什麼名字嗎？訂單還沒有收到，請盡快處理。": 40,
    "請問退貨運費由誰負擔？我上週購買的藍牙耳機左耳沒有聲音。": 49,
    "客戶偏好以繁體中文溝通，並希望週末前收到回覆。": 36,
    "敝公司擬於本週五前確認訂單數量，懇請惠予協助。": 40,
    "お世話になっております。注文した商品がまだ届いていません。ご確認をお願いいたします。": 41,
    "カスタマーサポートの対応がとても丁寧でした。": 24,
    "領収書の宛名を株式会社山田製作所に変更してください。": 31,
    "𠮷野家で𩸽を食べた": 18,
    "안녕하세요, 주문한 상품이 아직 도착하지 않았습니다. 확인 부탁드립니다.": 42,
    "배송지를 서울특별시 강남구 테헤란로 152로 변경해 주세요.": 37,
}
OTHERS = {
    "Prefers to be called in the morning, never after 6 pm.": 15,
    "antidisestablishmentarianism pneumonoultramicroscopicsilicovolcanoconiosis": 22,
    "Größenverhältnisse, Straßenbahnhaltestelle; déjà vu, naïveté, œuvre.": 29,
    "Здравствуйте, мой заказ до сих пор не доставлен.": 25,
    "Γεια σας, η παραγγελία μου δεν έχει φτάσει ακόμα.": 51,
    "नमस्ते, मेरा ऑर्डर अभी तक नहीं आया है।": 41,
    "مرحبا، لم يصل طلبي حتى الآن. الرجاء المساعدة.": 42,
    "שלום, ההזמנה שלי עדיין לא הגיעה.": 30,
    "สวัสดีครับ ผมยังไม่ได้รับสินค้าที่สั่งซื้อไป": 80,
    "👩\u200d👩\u200d👧\u200d👦🎉🙏🏽": 27,
}
WITH_NUMBERS = {
    '- [2026-03-01, 12 days ago] plan: "Pro"': 24,
    '{"order": 10482, "items": [{"sku": "A-4471-X", "qty": 2}]}': 32,
    "My order A-4471-X of 2026-03-01 for 1,299.00 EUR has not arrived; tracking 1Z999AA10123456784.": 56,
    "1234567890": 10,
}


@pytest.mark.parametrize(("text", "counted"), CJK.items())
def test_chinese_japanese_and_korean_are_never_underestimated(text: str, counted: int) -> None:
    """A budget in tokens holds for texts in these languages with every tokenizer counted."""
    assert estimate(text) >= counted


@pytest.mark.parametrize(("text", "counted"), OTHERS.items())
def test_other_scripts_are_not_underestimated(text: str, counted: int) -> None:
    """Nor are sentences in Latin letters with accents, in other alphabets, or pictures."""
    assert estimate(text) >= counted


@pytest.mark.parametrize(("text", "counted"), WITH_NUMBERS.items())
def test_digits_and_punctuation_are_not_underestimated(text: str, counted: int) -> None:
    """Every line of a context block begins with a date, and some models read digits one by one."""
    assert estimate(text) >= counted


@pytest.mark.parametrize(("text", "counted"), {**CJK, **OTHERS, **WITH_NUMBERS}.items())
def test_an_estimate_is_of_the_right_size(text: str, counted: int) -> None:
    """Being over rather than under does not mean wasting most of the budget."""
    assert estimate(text) <= 3 * counted


def test_nothing_takes_no_tokens() -> None:
    """An empty text is free, anything else is not."""
    assert estimate("") == 0
    assert estimate("a") == 1


@given(st.text(max_size=50), st.text(max_size=50))
def test_a_text_takes_no_more_than_its_pieces(one: str, other: str) -> None:
    """Budgets may be filled line by line: the whole never takes more than the lines one by one."""
    assert max(estimate(one), estimate(other)) <= estimate(one + other) <= estimate(one) + estimate(other)
