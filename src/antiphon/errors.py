"""The error tree: every refusal is a value with a status, a type, a code and a param.

::

    AntiphonError                     500 server_error          internal_error
    ├── InvalidRequest                400 invalid_request_error (code and param per case)
    │   └── MethodNotAllowed          405                       method_not_allowed
    ├── NotFound                      404 invalid_request_error (unknown_url, model_not_found, …)
    ├── Unauthorized                  401 authentication_error  invalid_api_key
    ├── PayloadTooLarge               413 invalid_request_error request_too_large
    ├── UnsupportedMedia              415 invalid_request_error unsupported_media_type
    ├── RequestTimeout                408 invalid_request_error request_timeout
    ├── EngineFailed                  500 server_error          server_error
    └── Unavailable                   503 server_error          (overloaded, engine_unavailable, …)

    StartupError                      the server cannot start: printed, exit status 1
    (an engine that cannot start raises EngineStartError of ``engines/port.py``)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar


class AntiphonError(Exception):
    """A refusal. ``message`` is for the client: no paths, no stack, no addresses."""

    status: ClassVar[int] = 500
    type: ClassVar[str] = "server_error"
    default_code: ClassVar[str] = "internal_error"

    def __init__(self, message: str, *, code: str | None = None, param: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.param = param

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


class EngineFailed(AntiphonError):
    """The engine failed while it worked for this request: not retried by SDKs."""

    status = 500
    default_code = "server_error"

    def __init__(self, message: str = "The engine stopped unexpectedly.") -> None:
        super().__init__(message)

    @property
    def headers(self) -> Mapping[str, str]:
        return {"x-should-retry": "false"}


class Unavailable(AntiphonError):
    """The server cannot take the request now; a retry is safe."""

    status = 503
    default_code = "overloaded"

    @property
    def headers(self) -> Mapping[str, str]:
        return {"retry-after": "1", "retry-after-ms": "1000"}


class StartupError(Exception):
    """The server cannot start. The message is one line that a person can act on."""
