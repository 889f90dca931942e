"""What can be wrong with a request, or with the endpoint's keys, before the engine is asked."""

from memory.errors import RequestError, SetupError


class Unauthorized(RequestError):
    """No key, or a wrong one."""

    code = "unauthorized"
    template = "Send the endpoint's API key as 'Authorization: Bearer <key>'."


class ApiKeysInvalid(SetupError):
    """The setting `api_keys` cannot be used.

    Args:
        reason: what is wrong, in fixed words.
        where: the place, such as "in key 2"; never what stands there.
    """

    code = "api_keys_invalid"
    template = "The setting api_keys cannot be used, {where}: {reason}."


class SignatureInvalid(RequestError):
    """A helpdesk's delivery whose signature is wrong, or too old."""

    code = "signature_invalid"
    template = "The delivery's signature does not fit the webhook secret, or the delivery is too old."


class NotFound(RequestError):
    """There is no such path, or nothing of that name."""

    code = "not_found"
    template = "There is no such {what}."


class MethodNotAllowed(RequestError):
    """The path exists, but not with this method."""

    code = "method_not_allowed"
    template = "This path takes {allowed}."


class BodyTooLarge(RequestError):
    """The body reached the size at which Dify cuts it, or expands to too much."""

    code = "body_too_large"
    template = "The body is too large: send less than {limit} bytes at a time."


class BodyInvalid(RequestError):
    """The body is not the JSON object this path takes."""

    code = "body_invalid"
    template = "The body must be a JSON object."


class MediaTypeUnsupported(RequestError):
    """The body is of a type no import reads."""

    code = "media_type_unsupported"
    template = "Send JSON, NDJSON or CSV, plain or gzip."


class ExportInvalid(RequestError):
    """The body is no export that can be read. `detail` is the reader's own stable code.

    Args:
        detail: such as "json_invalid" or "format_ambiguous"; see `tickets.errors`.
        where: path into the body, such as "lines[3]".
    """

    code = "export_invalid"
    template = "The export cannot be read: {detail}{where}."
