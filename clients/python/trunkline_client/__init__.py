"""Client of Trunkline's events channel, for asyncio. See README.md."""

from .client import Client, Status
from .errors import (
    AccessRevokedError, CertificateError, ClosedError, ConnectionLostError, GoingAwayError, LoginRefusedError,
    MisuseError, PositionGoneError, ProtocolError, RefusedError, ReplacedError, RestartError, ServerFaultError,
    TokenExpiredError, TooSlowError, TrunklineError,
)
from .model import Agent, Call, Event, Facts, Filters, Queue, Snapshot
from .store import FileStore, MemoryStore, Store

__version__ = "0.1.0"
__all__ = [
    "AccessRevokedError", "Agent", "Call", "CertificateError", "Client", "ClosedError", "ConnectionLostError", "Event",
    "Facts", "FileStore", "Filters", "GoingAwayError", "LoginRefusedError", "MemoryStore", "MisuseError",
    "PositionGoneError", "ProtocolError", "Queue", "RefusedError", "ReplacedError", "RestartError", "ServerFaultError",
    "Snapshot", "Status", "Store", "TokenExpiredError", "TooSlowError", "TrunklineError",
]
