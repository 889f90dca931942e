"""The words that the finders for passwords and codes know, by language.

To add a language: its labels, its verb in `LINKS`, and the commonest states ("wrong", "expired")
in `STATES`, a stem of each new label, then cases both ways in the tests.
"""

from __future__ import annotations

from typing import Final

from memory.redaction.model import RedactionType

PASSWORD_LABELS: Final = r"""(?:
    (?:(?:seed|recovery|mnemonic|secret)\s(?:phrase|words)|pass\s?words?|passw[o0]rds?
      |pass?wor[dt]s?|pass\s?phrases?|passcodes?|passwd)(?![a-rt-z])
  | (?<![a-z])(?:pwd?|pswd?|passwrd|passwrods?|passowrds?)(?![a-z])
  | contrase(?:ñ|n\u0303?)as? | (?<![a-z])clave\sde\sacceso
  | (?:pass|kenn)w(?:o|ö|o\u0308)rt(?:er)?(?![a-z]) | zugangscode
  | mots?\sde\spasse | (?<![a-z])mdp(?![a-z])
  | (?<![a-z])senhas?(?![a-z]) | palavras?[-\s]passe
  | wachtwoord(?:en)? | парол(?:ь|я|ем) | hasło
  | 密码 | 密碼 | 口令 | パスワード | 暗証番号 | 비밀\s?번호 | 비번 | 패스워드
)"""  # noqa: S105 - a pattern
"""What a password is called, wherever it stands."""

SIGNED_PASSWORD_LABELS: Final = r"(?<![a-z])(?:pass|clave|code\ssecret|login\s?/\s?pass)(?![a-z])"  # noqa: S105 - a pattern
"""What may be a password's name, but needs a colon or an equals sign, or a value with digits."""

PIN_LABELS: Final = r"""(?:
    (?<![a-z])(?:pin|puk|nip)(?:[\s-]?(?:code|number|nummer|no\.?))?(?![a-z])
  | geheimzahl | código\spin | code\spin
)"""
"""What a short number to unlock something is called."""

CODE_LABELS: Final = r"""(?:
    (?:verif(?:ication|y)|one[-\s]?time|otp|[2m]fa|two[-\s](?:factor|step)|2[-\s]?step|authenticat(?:ion|or)
      |auth|log[-\s]?in|sign[-\s]?in|security|sms|recovery|backup|password\sreset|reset|unlock)
      [\s-](?:pass\s?codes?|pass\s?words?|codes?|pins?|tokens?)
  | (?<![a-z])(?:t?otp|2fa|mfa)(?![a-z])
  | c[oó]digo\s(?:de\s(?:verificaci[oó]n|seguridad|confirmaci[oó]n|un\ssolo\suso|verifica[cç][aã]o
      |seguran[cç]a|confirma[cç][aã]o)|sms|otp)
  | (?:best(?:ä|ae|a\u0308)tigungs|verifizierungs|sicherheits|einmal|anmelde|freischalt|sms-)-?code
  | einmal-?(?:passwort|kennwort) | (?<![a-z])(?:m|sms-?)?tan(?=\s{0,2}(?:[:=]|ist|lautet))
  | code\s(?:de\s(?:v[eé]rification|confirmation|s[eé]curit[eé]|connexion)|[aà]\susage\sunique|sms|otp)
  | codice\s(?:di\s(?:verifica|sicurezza|conferma)|otp) | verificatiecode
  | код\s(?:подтверждения|из\s(?:смс|sms)) | проверочный\sкод
  | 验证码 | 驗證碼 | 校验码 | 校驗碼 | 动态码 | 動態碼 | 动态密码 | 動態密碼 | 动态口令 | 短信码
  | 一次性密码 | 一次性密碼 | 认证码 | 認證碼 | 安全码 | 安全碼
  | (?:認証|確認|検証|セキュリティ)コード | 認証番号 | 確認番号 | ワンタイム(?:パスワード|コード)
  | (?:인증|확인|보안)\s?(?:번호|코드) | 일회용\s?(?:비밀\s?번호|번호)
)"""
"""What a one-time code is called."""

PASSWORD_STEMS: Final = (
    *("pass", "paswor", "phrase", "words", "pw", "psw", "pin", "puk", "nip", "mdp", "contrase", "clave"),
    *("kennw", "zugangscode", "geheimzahl", "secret", "senha", "wachtwoord", "парол", "hasło"),
    *("密码", "密碼", "口令", "パスワード", "暗証番号", "비밀", "비번", "패스워드"),
)
"""What stands in every name of a password or a short number; one of them is in each label above."""

CODE_STEMS: Final = (
    *("cod", "pass", "pin", "token", "otp", "2fa", "mfa", "digo", "einmal", "tan", "код"),
    *("码", "碼", "口令", "コード", "番号", "ワンタイム", "번호", "코드"),
)
"""What stands in every name of a one-time code, certain or not."""

PHRASE_LABELS: Final = r"pass\s?phrase|(?:seed|recovery|mnemonic|secret)\s(?:phrase|words)"
"""What is a password of several words, without quotes."""

OTHER_PASSES: Final = (
    r"(?<![a-z])(?:boarding|season|bus|train|rail|ski|day|week|weekly|month|monthly|guest|event|park|travel"
    r"|festival|museum|backstage|hall)\s$"
)
"""What stands before "pass" when it is a ticket."""

BARE_CODE_LABELS: Final = r"(?<![a-z])(?:codes?|c[oó]digo|codice|код)(?![a-z])|コード|코드|代码"
"""What may be a one-time code when the talk is of logging in."""

OTHER_CODES: Final = (
    r"(?:error|discount|promo|promotion|coupon|post(?:al)?|zip|country|area|product|qr|bar|status|exit"
    r"|dress|source|tracking|order|voucher|gift|referral|item|sort|swift|hs|colou?r|response|http"
    r"|booking|invite|fehler|status|postal|descuento|barras)[\s_-]?$"
)
"""What stands before "code" when it is not a secret."""

LOGIN_WORDS: Final = (
    r"verif|(?<![a-z])otp(?![a-z])|[2m]fa(?![a-z])|two[-\s]factor|authenticat|log(?:ged|ging)?[-\s]?(?:in|on)"
    r"|sign(?:ed|ing)?[-\s]?(?:in|on)|one[-\s]?time|(?<![a-z])sms(?![a-z])|text(?:ed)?\s(?:me|message)"
    r"|anmeld|einlogg|connexion|iniciar\ssesi|acceder|entrar|(?:do\snot|don['’]t|never)\sshare|(?:valid\sfor|expires\sin)\s[0-9]{1,2}\smin|勿泄露|勿告[诉訴]"
    r"|验证|驗證|登录|登錄|登入|ログイン|로그인"
)
"""What makes a mere "code" a one-time code."""

LINKS: Final = (
    r"is|was|are|were|will\sbe|would\sbe|should\sbe|must\sbe|has\sbeen|reads|equals|es|era|son|sera|será"
    r"|ist|lautet|war|heißt|heisst|sind|est|était|c['’]est|sont|é|e\u0301|è|era|foi|são|luidt|это|wurde|isn['’]t|wasn['’]t|no\ses|não\sé"
)
"""Verbs between a label and its value, in languages that put spaces between words."""

ADVERBS: Final = (
    r"now|currently|still|just|actually|also|simply|always|both|probably|maybe|not|called|set\s(?:to|as)"
    r"|changed\s(?:to|into)|(?:the\s)?following|as\sfollows|i\s(?:think|believe|guess)|that"
    r"|jetzt|nun|noch|aktuell|nicht|ahora|todavía|no|maintenant|toujours|agora|ainda|não"
)
"""Words that may stand between such a verb and the value."""

PREPOSITIONS: Final = (
    r"for|to|of|on|at|in|from|i|we|you|für|fuer|von|zu|vom|zum|para|de|del|do|da|pour|du|des|per|di|voor"
)
"""Words that start what a label may be told apart by ("password for the shop is …")."""

CJK_LINKS: Final = (
    r"[:=]|是|为|為|就是|现在|現在|目前|应该|應該|也|还|還|改成了?|改为了?|改為了?|换成了?|換成了?"
    r"|设置?[为成]|設定?[為成]|叫|[和跟与與]\w{1,6}?都?[是为為:]|は|が|を|に|는|은|가|이"
)
"""Verbs and particles between a label and its value, in scripts without spaces."""

_STATE_WORDS: Final = (
    # English: what a password can be, and the small words that start a remark on it.
    """wrong incorrect invalid correct right fine ok okay good bad weak strong old new same different
    empty blank missing unknown secure safe unsafe insecure short long longer shorter case
    case-sensitive sensitive too not still no never always also very really so being been the a an my
    your his her their our its this that these those what where how when why which who whom in on at
    for to from with by of it and or but if because only just now already currently out up down gone
    lost stuck broken rejected needed required forgotten expired changed reset locked blocked leaked
    hacked compromised stolen saved stored hidden encrypted updated none null nil true false yes n/a na
    optional mandatory necessary important there here i we you he she they me us ask see please can
    cannot can't don't doesn't didn't won't isn't as than more less about again back off over under
    until unless while after before today tomorrow yesterday soon later ready default temporary valid 2fa
    set unset sent shown visible mine yours something anything nothing everything someone all any
    some one two three many much maybe probably like such exactly between at least minimum maximum
    error failed failing fails works work working does do did would could should will must may might
    have has had be is are was were am tbd todo pending protected managed manager
    policy reset recovery link page field hint prompt change changes username
    email help let's lets hi thanks thank redacted removed masked """
    # Spanish, Portuguese
    """incorrecta incorrecto correcta correcto inválida inválido válida válido caducada expirada
    expirado muy demasiado la el los las un una mi tu su es no ya nueva nuevo vieja antigua misma mismo
    débil fuerte segura larga corta olvidada perdida bloqueada errada errado incorreta incorreto correta
    inválida expirou muito minha meu sua seu o os as uma um não nova novo antiga mesma mesmo fraca
    forte segura curta longa que para de por en con sin com sem """
    # German
    """falsch richtig abgelaufen ungültig gültig leer neu alt zu sehr nicht kein keine noch schon das
    der die den dem ein eine mein meine dein ihr unser vergessen gesperrt weg unbekannt sicher unsicher
    lang kurz schwach stark gleich dasselbe ok korrekt inkorrekt notwendig erforderlich und oder aber auf
    von mit für durch """
    # French, Italian, Dutch
    """incorrect incorrecte correct correcte invalide valide expiré expirée faux fausse bon bonne trop
    très le les un une mon ma mes ton votre notre pas plus ne toujours oublié perdu bloqué nouveau
    nouvelle ancien ancienne même faible fort forte obligatoire requis sbagliata errata scaduta corretta
    troppo il lo una mia non verkeerd onjuist fout vergeten verlopen het een mijn niet te """
    # Russian
    """неверный неправильный не забыт забыл устарел верный правильный слишком мой"""
)
STATES: Final[frozenset[str]] = frozenset(_STATE_WORDS.split())
"""What follows "is" without being a secret."""

STATE_ENDINGS: Final = ("ed", "ing", "able", "ible", "ly", "ado", "ada", "ido", "ida", "iert", "ée")
"""How other such words end, when they are of small letters only."""

SECRET_KEYS: Final[dict[str, RedactionType]] = {
    word: kind
    for kind, words in {
        RedactionType.PASSWORD: "password passwd passphrase passcode pwd pass pin pincode userpassword "
        "newpassword oldpassword currentpassword dbpassword loginpassword secretanswer 密码 密碼",
        RedactionType.ONE_TIME_CODE: "otp otpcode verificationcode onetimecode onetimepassword totp "
        "mfacode 2facode smscode authcode 验证码 驗證碼",
        RedactionType.API_KEY: "apikey xapikey secretkey accesskey clientsecret apisecret appsecret "
        "secretaccesskey awssecretaccesskey secret appkey signingsecret webhooksecret",
        RedactionType.TOKEN: "token accesstoken refreshtoken authtoken bearertoken idtoken apitoken "
        "authorization sessiontoken jwt",
        RedactionType.PRIVATE_KEY: "privatekey",
        RedactionType.CARD_SECURITY_CODE: "cvv cvv2 cvc cvc2 cvn securitycode cardcvv cardcvc "
        "cardsecuritycode",
    }.items()
    for word in words.split()
}
"""Names in a JSON object, without case, spaces and signs, whose whole value is a secret."""
