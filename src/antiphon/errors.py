"""The error tree: every refusal is a value with a status, a type, a code and a param.

::

    AntiphonError                     500 server_error          internal_error
    ├── InvalidRequest                400 invalid_request_error (code and param per case)
    │   ├── MethodNotAllowed          405                       method_not_allowed
    │   ├── HeadersTooLarge           431                       headers_too_large
    │   ├── CodingNotSupported        501                       unsupported_transfer_encoding
    │   └── VersionNotSupported       505                       http_version_not_supported
    ├── NotFound                      404 invalid_request_error (unknown_url, model_not_found, …)
    ├── Unauthorized                  401 authentication_error  invalid_api_key
    ├── PayloadTooLarge               413 invalid_request_error request_too_large
    ├── UnsupportedMedia              415 invalid_request_error unsupported_media_type
    ├── RequestTimeout                408 invalid_request_error request_timeout
    ├── RateLimited                   429 rate_limit_error      rate_limit_exceeded
    ├── AnswerFailed                  500 server_error          internal_error
    │   └── ReaderTooSlow             500
    ├── EngineFailed                  500 server_error          server_error
    ├── Unavailable                   503 server_error          engine_unavailable
    │   ├── Overloaded                503                       overloaded
    │   └── ShuttingDown              503                       shutting_down
    └── DeadlinePassed                504 server_error          timeout

    StartupError                      the server cannot start: printed, exit status 1
    (an engine that cannot start raises EngineStartError of ``engines/port.py``)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

MOST_PARAM = 200
MOST_MESSAGE = 2000
"""Characters: a refusal is no echo of what a client may have sent megabytes of."""


def shortened(text: str, most: int = MOST_PARAM) -> str:
    """``text``, or its beginning and an ellipsis: at most so many characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


class AntiphonError(Exception):
    """A refusal. ``message`` is for the client: no paths, no stack, no addresses.

    What is too long to be repeated is shortened, the message as well as ``param``.
    """

    status: ClassVar[int] = 500
    type: ClassVar[str] = "server_error"
    default_code: ClassVar[str] = "internal_error"

    def __init__(self, message: str, *, code: str | None = None, param: str | None = None) -> None:
        self.message = shortened(message, MOST_MESSAGE)
        super().__init__(self.message)
        self.code = code or self.default_code
        self.param = None if param is None else shortened(param)

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers that go with the refusal."""
        return {}

    def body(self) -> dict[str, Any]:
        """The OpenAI error envelope."""
        return {
            "error": {
                "message": self.message,
                "type": self.type,
                "param": self.param,
                "code": self.code,
            }
        }


class InvalidRequest(AntiphonError):
    """The client's fault; ``param`` is a path such as ``input[0].content``."""

    status = 400
    type = "invalid_request_error"
    default_code = "invalid_value"


class MethodNotAllowed(InvalidRequest):
    """The route exists, the method does not."""

    status = 405
    default_code = "method_not_allowed"

    def __init__(self, message: str, *, allow: str) -> None:
        super().__init__(message)
        self.allow = allow

    @property
    def headers(self) -> Mapping[str, str]:
        return {"allow": self.allow}


class HeadersTooLarge(InvalidRequest):
    """The header block is above the limit (RFC 6585, section 5)."""

    status = 431
    default_code = "headers_too_large"


class CodingNotSupported(InvalidRequest):
    """A transfer coding of a body that is not ``chunked`` alone (RFC 9112, section 6.1)."""

    status = 501
    default_code = "unsupported_transfer_encoding"


class VersionNotSupported(InvalidRequest):
    """A version of HTTP that the server does not speak, or was told not to (RFC 9110, section
    15.6.6)."""

    status = 505
    default_code = "http_version_not_supported"


class NotFound(AntiphonError):
    """No such route or object."""

    status = 404
    type = "invalid_request_error"
    default_code = "unknown_url"


class Unauthorized(AntiphonError):
    """No key, or a wrong one."""

    status = 401
    type = "authentication_error"
    default_code = "invalid_api_key"

    def __init__(self) -> None:
        super().__init__("Missing or invalid API key. Send it as 'Authorization: Bearer <key>'.")

    @property
    def headers(self) -> Mapping[str, str]:
        return {"www-authenticate": "Bearer"}


class PayloadTooLarge(AntiphonError):
    """The body is above the limit."""

    status = 413
    type = "invalid_request_error"
    default_code = "request_too_large"


class UnsupportedMedia(AntiphonError):
    """Content type or encoding that is not taken."""

    status = 415
    type = "invalid_request_error"
    default_code = "unsupported_media_type"


class RequestTimeout(AntiphonError):
    """The body did not arrive in time."""

    status = 408
    type = "invalid_request_error"
    default_code = "request_timeout"


class RateLimited(AntiphonError):
    """This key has used up its requests; the next is granted in ``wait_s`` seconds."""

    status = 429
    type = "rate_limit_error"
    default_code = "rate_limit_exceeded"

    def __init__(self, message: str, *, wait_s: float) -> None:
        super().__init__(message)
        self.wait_s = wait_s

    @property
    def headers(self) -> Mapping[str, str]:
        return retry_after(self.wait_s)


class AnswerFailed(AntiphonError):
    """A fault of ours while the answer was made: asking again would draw other tokens."""

    def __init__(self, message: str = "The server failed to process the answer.") -> None:
        super().__init__(message)

    @property
    def headers(self) -> Mapping[str, str]:
        return {"x-should-retry": "false"}


class ReaderTooSlow(AnswerFailed):
    """What waits for the reader of a stream has come to its limit."""

    def __init__(
        self, message: str = "The stream was read too slowly for all of it to be kept."
    ) -> None:
        super().__init__(message)


class EngineFailed(AntiphonError):
    """The engine failed on this request; SDKs do not retry it once its answer ``began``."""

    status = 500
    default_code = "server_error"

    def __init__(
        self, message: str = "The engine stopped unexpectedly.", *, began: bool = True
    ) -> None:
        super().__init__(message)
        self.began = began

    @property
    def headers(self) -> Mapping[str, str]:
        return {"x-should-retry": "false"} if self.began else {}


class Unavailable(AntiphonError):
    """The server cannot take the request now; a retry is safe."""

    status = 503
    default_code = "engine_unavailable"
    wait_s: float = 1
    """About when that is worth while, in seconds from now."""

    @property
    def headers(self) -> Mapping[str, str]:
        return retry_after(self.wait_s)


class Overloaded(Unavailable):
    """As many wait as may; there will be room in about ``wait_s`` seconds."""

    default_code = "overloaded"

    def __init__(
        self, message: str = "The server is at its capacity. Try again later.", *, wait_s: float = 1
    ) -> None:
        super().__init__(message)
        self.wait_s = wait_s


class ShuttingDown(Unavailable):
    """The server is about to end. Over HTTP/1.1 its connection ends with the answer."""

    default_code = "shutting_down"

    def __init__(self, message: str = "The server is shutting down.") -> None:
        super().__init__(message)

    @property
    def headers(self) -> Mapping[str, str]:
        return {**super().headers, "x-should-retry": "true"}


class DeadlinePassed(AntiphonError):
    """The answer was not complete within the time that a request may take."""

    status = 504
    default_code = "timeout"

    def __init__(
        self, message: str = "The request took longer than the server's time limit."
    ) -> None:
        super().__init__(message)


def retry_after(wait_s: float) -> dict[str, str]:
    """When to come back: in whole seconds, at least one (RFC 9110), and in milliseconds."""
    wait_ms = max(1, math.ceil(wait_s * 1000))
    return {"retry-after": str(-(-wait_ms // 1000)), "retry-after-ms": str(wait_ms)}


class StartupError(Exception):
    """The server cannot start. The message is one line that a person can act on."""
