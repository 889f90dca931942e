"""Every failure the engine can report, cut by who has to act.

    MemoryFault
    ├── RequestError        the caller: the input of this call is wrong
    │   ├── CustomerMissing            ├── IdInvalid
    │   ├── ConversationMismatch       ├── ParameterMissing
    │   ├── ParameterInvalid           ├── ContentInvalid
    │   ├── ContentTooLarge            ├── MetadataInvalid
    │   ├── MemoryIdsRequired          ├── TextRefused
    │   ├── Forbidden                  ├── NamespaceNotEmpty
    │   ├── BackupDamaged              ├── BackupOutOfOrder
    │   ├── CustomersSame              ├── MergeConflict
    │   └── MoveConflict
    ├── SetupError          the administrator: a setting or a server is wrong
    │   ├── SettingInvalid             ├── ChromaAddressInvalid
    │   ├── ChromaNotFound             ├── ChromaTooOld
    │   ├── ChromaRefused              ├── ChromaTenantMissing
    │   ├── ChromaDatabaseMissing      ├── ChromaQuotaExceeded
    │   ├── EmbedderMismatch           ├── EmbedderDimensionMismatch
    │   ├── EmbedderUnavailable        ├── EmbedderRefused
    │   ├── LanguageModelMissing       └── LanguageModelRefused
    └── ServiceError        nobody: wait and try again
        ├── ChromaUnreachable          ├── ChromaTimeout
        ├── ChromaBusy                 ├── ChromaFailed
        ├── EmbedderUnreachable        ├── EmbedderTimeout
        ├── EmbedderRateLimited        ├── EmbedderFailed
        ├── LanguageModelUnreachable   ├── LanguageModelTimeout
        ├── LanguageModelRateLimited   ├── LanguageModelFailed
        ├── ExtractionFailed           ├── ForgetUnverified
        ├── ErasureUnderWay            ├── NamespaceMoving
        ├── MoveUnverified             └── InternalError

A message never holds what a customer wrote, a secret, or another library's exception text; the only
values filled in are names of settings and models and numbers. None of these is a ValueError: the plugin
SDK turns a ValueError of an endpoint into a 404 that shows its text.
"""

from memory.errors.administrator import (
    ChromaAddressInvalid,
    ChromaDatabaseMissing,
    ChromaNotFound,
    ChromaQuotaExceeded,
    ChromaRefused,
    ChromaTenantMissing,
    ChromaTooOld,
    EmbedderDimensionMismatch,
    EmbedderMismatch,
    EmbedderRefused,
    EmbedderUnavailable,
    LanguageModelMissing,
    LanguageModelRefused,
    SettingInvalid,
)
from memory.errors.base import (
    MemoryFault,
    RequestError,
    ServiceError,
    SetupError,
)
from memory.errors.caller import (
    BackupDamaged,
    BackupOutOfOrder,
    ContentInvalid,
    ContentTooLarge,
    ConversationMismatch,
    CustomerMissing,
    CustomersSame,
    Forbidden,
    IdInvalid,
    MemoryIdsRequired,
    MergeConflict,
    MetadataInvalid,
    MoveConflict,
    NamespaceNotEmpty,
    ParameterInvalid,
    ParameterMissing,
    TextRefused,
)
from memory.errors.service import (
    ChromaBusy,
    ChromaFailed,
    ChromaTimeout,
    ChromaUnreachable,
    EmbedderFailed,
    EmbedderRateLimited,
    EmbedderTimeout,
    EmbedderUnreachable,
    ErasureUnderWay,
    ExtractionFailed,
    ForgetUnverified,
    InternalError,
    LanguageModelFailed,
    LanguageModelRateLimited,
    LanguageModelTimeout,
    LanguageModelUnreachable,
    MoveUnverified,
    NamespaceMoving,
)

__all__ = [
    "BackupDamaged",
    "BackupOutOfOrder",
    "ChromaAddressInvalid",
    "ChromaBusy",
    "ChromaDatabaseMissing",
    "ChromaFailed",
    "ChromaNotFound",
    "ChromaQuotaExceeded",
    "ChromaRefused",
    "ChromaTenantMissing",
    "ChromaTimeout",
    "ChromaTooOld",
    "ChromaUnreachable",
    "ContentInvalid",
    "ContentTooLarge",
    "ConversationMismatch",
    "CustomerMissing",
    "CustomersSame",
    "EmbedderDimensionMismatch",
    "EmbedderFailed",
    "EmbedderMismatch",
    "EmbedderRateLimited",
    "EmbedderRefused",
    "EmbedderTimeout",
    "EmbedderUnavailable",
    "EmbedderUnreachable",
    "ErasureUnderWay",
    "ExtractionFailed",
    "Forbidden",
    "ForgetUnverified",
    "IdInvalid",
    "InternalError",
    "LanguageModelFailed",
    "LanguageModelMissing",
    "LanguageModelRateLimited",
    "LanguageModelRefused",
    "LanguageModelTimeout",
    "LanguageModelUnreachable",
    "MemoryFault",
    "MemoryIdsRequired",
    "MergeConflict",
    "MetadataInvalid",
    "MoveConflict",
    "MoveUnverified",
    "NamespaceMoving",
    "NamespaceNotEmpty",
    "ParameterInvalid",
    "ParameterMissing",
    "RequestError",
    "ServiceError",
    "SettingInvalid",
    "SetupError",
    "TextRefused",
]
