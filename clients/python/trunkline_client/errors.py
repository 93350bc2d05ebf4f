"""Errors of the client."""

from __future__ import annotations


class TrunklineError(Exception):
    """The base of all errors of this client.

    permanent: a retry would fail in the same way. code: close code of the channel,
    0: none. status: HTTP status, 0: none. retry_after: seconds. errors: of fields.
    """

    def __init__(self, message: str, *, permanent: bool = False, code: int = 0, status: int = 0,
                 retry_after: float = 0, errors: list | None = None) -> None:
        super().__init__(message)
        self.permanent = permanent
        self.code = code
        self.status = status
        self.retry_after = retry_after
        self.errors = errors or []


class ClosedError(TrunklineError):
    """The connection ended with a close code of the channel."""


class GoingAwayError(ClosedError):
    """1001"""


class MisuseError(ClosedError):
    """1008"""


class ServerFaultError(ClosedError):
    """1011"""


class RestartError(ClosedError):
    """1012"""


class TokenExpiredError(ClosedError):
    """4001"""


class AccessRevokedError(ClosedError):
    """4003"""


class TooSlowError(ClosedError):
    """4008"""


class ReplacedError(ClosedError):
    """4009"""


class LoginRefusedError(TrunklineError):
    """The login was refused with an HTTP status."""


class RefusedError(TrunklineError):
    """The stream or the snapshot was refused with an HTTP status."""


class PositionGoneError(RefusedError):
    """410: the log no longer has the events after the position."""


class ConnectionLostError(TrunklineError):
    """The connection broke, or could not be opened."""


class CertificateError(TrunklineError):
    """The server's certificate is not trusted."""


class ProtocolError(TrunklineError):
    """The server violated the protocol."""


_CLOSE_ERRORS = {
    1001: GoingAwayError, 1008: MisuseError, 1011: ServerFaultError, 1012: RestartError,
    4001: TokenExpiredError, 4003: AccessRevokedError, 4008: TooSlowError, 4009: ReplacedError,
}
_PERMANENT_CODES = {1008, 4003, 4009}


def close_error(code: int, reason: str) -> ClosedError:
    """Return the error of a close code."""
    kind = _CLOSE_ERRORS.get(code, ClosedError)
    return kind(f"closed with {code}: {reason}", code=code, permanent=code in _PERMANENT_CODES)


def refusal(step: str, status: int, body: object, retry_after: str | None) -> TrunklineError:
    """Return the error of an HTTP response that is not 200."""
    if step == "login":
        kind: type[TrunklineError] = LoginRefusedError
    else:
        kind = PositionGoneError if status == 410 else RefusedError
    fields = body if isinstance(body, dict) else {}
    return kind(
        f"{step} refused: {status} {fields.get('message', '')}".rstrip(),
        status=status,
        errors=fields.get("errors"),
        retry_after=float(retry_after) if retry_after and retry_after.isdigit() else 0,
        permanent=status < 500 and status != 429 and not (status == 401 and step != "login"),
    )
