"""The words by which mail programs announce quotations and signatures."""

import re

SEPARATOR = re.compile(
    r"[-_*=\s]{0,40}(original message|original appointment|forwarded message"
    r"|begin forwarded message|urspr(ü|ue)ngliche nachricht|weitergeleitete nachricht"
    r"|message d'origine|message transféré|mensaje original|mensaje reenviado"
    r"|messaggio originale|oorspronkelijk bericht|原始邮件|原始郵件|转发邮件|轉寄郵件"
    r"|转发的邮件|回复的原邮件|元のメッセージ|원본 메시지)[-_*=:：\s]{0,40}",
    re.IGNORECASE,
)
REPLY_ABOVE = re.compile(r".{0,20}type your reply above this line.{0,20}", re.IGNORECASE)
CHINESE_WROTE = re.compile(r"(在|于|於)?.{0,200}(写道|寫道|写到|寫到)\s?[:：]")

LABEL = re.compile(r"[*\s]{0,4}([^\W\d_][^\W\d_ ]{0,15}(?: [^\W\d_]{1,12})?)\s?\*?\s?[:：]\*?")
CHINESE_SENT_LABELS = frozenset(("发送时间", "寄件日期", "傳送時間", "發送時間"))
CHINESE_LABELS = (
    CHINESE_SENT_LABELS
    | frozenset(["发件人", "寄件者", "寄件人", "發件人", "收件人", "收件者", "主题", "主題", "主旨"])
    | frozenset(["抄送", "副本", "日期", "时间"])
)
SENT_LABELS = CHINESE_SENT_LABELS | frozenset(
    ("sent", "gesendet", "envoyé", "enviado", "inviato", "verzonden")
)

SIGNATURE_MARKS = frozenset(("--", "—", "__"))
MOBILE = re.compile(
    r"(sent from my |sent from (outlook|yahoo|mail|proton|samsung|gmail)|get outlook for "
    r"|sent via |von meinem .{1,40}gesendet|gesendet von (meinem|mail|outlook)"
    r"|envoyé de(puis)? mon|enviado desde mi|inviato da(l mio)? |verzonden vanaf mijn"
    r"|发自我的|發自我的|从我的.{1,20}发送|從我的.{1,20}傳送|來自我的|来自我的"
    r"|iphoneから送信).{0,50}",
    re.IGNORECASE,
)
CLOSING = re.compile(
    r"((best|kind|kindest|warm|with best|with kind) regards|regards"
    r"|yours (sincerely|faithfully|truly)|sincerely( yours)?"
    r"|mit (freundlichen|besten) gr(ü|ue)(ß|ss)en|(viele|beste|liebe) gr(ü|ue)(ß|ss)e"
    r"|cordialement|bien cordialement|saludos( cordiales)?|cordiali saluti"
    r"|met vriendelijke groet(en)?|此致|敬礼|此致敬礼|祝好)[\s,.!，。！]{0,3}",
    re.IGNORECASE,
)
