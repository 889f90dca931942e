"""Failures for the caller: the input of this call is wrong."""

from memory.errors.base import RequestError


class CustomerMissing(RequestError):
    """Neither a customer nor a conversation is known, so there is no memory to open."""

    code = "customer_missing"
    template = (
        "No customer is known. Bind customer_id to a variable, or conversation_id to sys.conversation_id."
    )


class IdInvalid(RequestError):
    """An id is blank, a wildcard, an unfilled variable, too long, or no text at all."""

    code = "id_invalid"
    template = "{name} is not usable: {reason}."


class ConversationMismatch(RequestError):
    """The conversation is linked to a customer other than the one given."""

    code = "conversation_of_another_customer"
    template = (
        "This conversation is linked to another customer, so nothing was read or written. If it "
        "really changed hands, use link_conversation with relink switched on."
    )


class ParameterMissing(RequestError):
    """A value this call cannot do without is absent."""

    code = "parameter_missing"
    template = "{name} is needed for this."


class ParameterInvalid(RequestError):
    """A value has the wrong type or lies outside its range."""

    code = "parameter_invalid"
    template = "{name} must be {expected}."


class ContentInvalid(RequestError):
    """The content is neither text nor a list of messages."""

    code = "content_invalid"
    template = "content must be text, or a list of messages with role and content ({reason})."


class ContentTooLarge(RequestError):
    """The content of one call is over the limit."""

    code = "content_too_large"
    template = "content holds more than {limit} characters; send it in several calls."


class MetadataInvalid(RequestError):
    """The user's own metadata is not a small flat object, or names an identity."""

    code = "metadata_invalid"
    template = "metadata is not usable: {reason}."


class MemoryIdsRequired(RequestError):
    """A deletion by query was asked for without the ids a preview returned."""

    code = "memory_ids_required"
    template = (
        "Deleting needs memory_ids. Run a preview with the query first and pass the ids it "
        "returns, so that nothing else is deleted."
    )


class TextRefused(RequestError):
    """The embedding model refused this text (too long, or filtered)."""

    code = "text_refused_by_model"
    template = "The embedding model {model} refused the text."


class Forbidden(RequestError):
    """The caller's key is right, and what it asks for is not the key's to do or to reach."""

    code = "forbidden"
    template = "The API key may not do this: {reason}. Nothing was read or written."


class NamespaceNotEmpty(RequestError):
    """A backup is to be loaded over memories that are there."""

    code = "namespace_not_empty"
    template = "A backup is loaded into an empty namespace only, and this one holds something."


class BackupDamaged(RequestError):
    """A backup that was changed, cut, or is none. What came before the line is loaded."""

    code = "backup_damaged"
    template = "The backup cannot be read up to line {line}: {reason}. What came before it is loaded."


class BackupOutOfOrder(RequestError):
    """A part of a backup that does not go on where the part before it ended."""

    code = "backup_out_of_order"
    template = "This part of the backup does not go on where the last one ended, after {rows} rows."


class CustomersSame(RequestError):
    """Two ids that are to be merged are one customer already."""

    code = "customers_same"
    template = "Both ids are the same customer already."


class MoveConflict(RequestError):
    """A change of layout stands against another one."""

    code = "move_conflict"
    template = "The memory cannot be moved: {reason}."


class MergeConflict(RequestError):
    """A merge, or its undoing, stands against another merge of the same customers."""

    code = "merge_conflict"
    template = "This stands against another merge: {reason}."
