"""The client and its subscriptions."""

from __future__ import annotations

import asyncio
import inspect
import json
import random
import ssl
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

import aiohttp

from .errors import (
    CertificateError, ConnectionLostError, PositionGoneError, ProtocolError, TrunklineError, refusal,
)
from .model import Event, Filters, Snapshot
from .store import Store
from .stream import Backoff, EventStreamParser, RecentIDs

_LOGIN = "/api/v2/cc_events_channel/login"
_STREAM = "/api/v2/cc_events_channel/stream"
_SNAPSHOT = "/api/v2/cc_events_channel/snapshot"
_ANSWER_TIME = 15.0  # seconds

_T = TypeVar("_T")


@dataclass(frozen=True)
class Status:
    """A change of the connection: "connected", or "waiting" with its error and the wait in seconds."""

    state: str
    error: TrunklineError | None = None
    retry_in: float = 0


class Client:
    """A server and the credentials for it. Use it as an async context manager."""

    def __init__(self, url: str, *, username: str | None = None, password: str | None = None,
                 domain: str | None = None, portal_token: str | Callable[[], str | Awaitable[str]] | None = None,
                 api_key: str | None = None, ssl_context: ssl.SSLContext | None = None) -> None:
        parsed = urlsplit(url)
        if parsed.scheme not in ("http", "https") or not parsed.hostname or parsed.username:
            raise ValueError("url must be https://host:port, without a user")
        if sum(one is not None for one in (username, portal_token, api_key)) != 1:
            raise ValueError("give username, password and domain, or portal_token, or api_key")
        if username is not None and not (username and password and domain):
            raise ValueError("username, password and domain belong together")
        self._base = url.rstrip("/")
        self._user = {"username": username, "password": password, "domain": domain}
        self._portal_token, self._api_key, self._ssl = portal_token, api_key, ssl_context
        self._http: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Client:
        connector = aiohttp.TCPConnector(ssl=self._ssl) if self._ssl else None
        self._http = aiohttp.ClientSession(connector=connector, trust_env=True)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._http:
            await self._http.close()

    def subscribe(self, *, since: str = "", snapshot: bool = False, filters: Filters | None = None,
                  store: Store | None = None, on_status: Callable[[Status], None] | None = None,
                  retry_min: float = 0.25, retry_max: float = 30.0,
                  silence: float = 60.0) -> AsyncGenerator[Snapshot | Event, None]:
        """Iterate over the snapshot, if requested, and every later event once.

        Reconnects until the loop ends or an error is permanent, which it raises. A
        position in the store takes precedence over since; without both, events from now on.
        With snapshot, takes one if there is no position, or if the position is
        no longer in the log. Saves the position when the program requests the next
        item after an event. Times are in seconds.
        """
        return _Subscription(
            self, since, snapshot, filters or Filters(), store, on_status or (lambda _: None),
            Backoff(retry_min, retry_max), silence,
        ).items()

    async def _login(self, filters: Filters) -> tuple[str, float]:
        headers: dict[str, str] = {}
        body: dict[str, Any] = dict(filters.body())
        if self._api_key is not None:
            headers["X-API-Key"] = self._api_key
        elif self._portal_token is not None:
            token = self._portal_token() if callable(self._portal_token) else self._portal_token
            headers["Authorization"] = "Bearer " + (await token if inspect.isawaitable(token) else token)
        else:
            body |= self._user
        answer = await self._json("login", "POST", _LOGIN, headers=headers, json=body)
        if not isinstance(answer, dict) or not answer.get("access_token"):
            raise ProtocolError("the login's answer has no access_token", permanent=True)
        return answer["access_token"], float(answer.get("expires_in", 86400))

    async def _snapshot(self, token: str) -> Snapshot:
        answer = await self._json("snapshot", "GET", _SNAPSHOT, headers=_bearer(token))
        try:
            return Snapshot.parse(answer)
        except (KeyError, TypeError) as error:
            raise ProtocolError(f"the snapshot is incomplete: {error}", permanent=True) from error

    async def _json(self, step: str, method: str, path: str, **request: Any) -> Any:
        timeout = aiohttp.ClientTimeout(total=_ANSWER_TIME)
        try:
            async with self._session().request(method, self._base + path, timeout=timeout, **request) as response:
                if response.status != 200:
                    raise await _refusal(step, response)
                return json.loads(await response.read())
        except (aiohttp.ClientError, OSError, asyncio.TimeoutError) as error:  # some are also ValueErrors
            raise _network_error(error) from error
        except ValueError as error:
            raise ConnectionLostError(f"the {step}'s answer is not JSON") from error

    async def _open(self, token: str, since: str, limit: float) -> aiohttp.ClientResponse:
        timeout = aiohttp.ClientTimeout(total=None)
        try:
            opening = self._session().get(
                self._base + _STREAM, params={"since": since} if since else None, headers=_bearer(token), timeout=timeout)
            response = await _within(opening, limit)
            if response.status != 200:
                async with response:
                    raise await _within(_refusal("stream", response), limit)
            return response
        except (aiohttp.ClientError, OSError, asyncio.TimeoutError) as error:
            raise _network_error(error) from error

    def _session(self) -> aiohttp.ClientSession:
        if self._http is None:
            raise RuntimeError("use the client with 'async with'")
        return self._http


class _Renewal(Exception):
    """The token must be renewed."""


class _Subscription:
    """One subscription: the position, the token, and the ids of delivered events."""

    def __init__(self, client: Client, since: str, snapshot: bool, filters: Filters, store: Store | None,
                 on_status: Callable[[Status], None], backoff: Backoff, silence: float) -> None:
        self._client, self._filters, self._store, self._on_status = client, filters, store, on_status
        self._backoff, self._silence, self._snapshot = backoff, silence, snapshot
        self._position, self._saved = since, ""
        self._seen = RecentIDs()
        self._token, self._expires_at, self._renew_at = "", 0.0, 0.0

    async def items(self) -> AsyncGenerator[Snapshot | Event, None]:
        if self._store:
            self._saved = await self._store.load() or ""
        self._position = self._saved or self._position
        try:
            while True:
                try:
                    await self._authenticate()
                    if self._snapshot and not self._position:
                        state = await self._client._snapshot(self._token)
                        yield state
                        self._position = state.cursor
                        await self._save()
                    connection = self._connection()
                    try:
                        async for item in connection:
                            yield item
                    finally:
                        await connection.aclose()
                except _Renewal:
                    continue
                except TrunklineError as error:
                    wait = self._plan(error)
                    self._on_status(Status("waiting", error, wait))
                await asyncio.sleep(wait)
        finally:
            await self._save()

    def _plan(self, error: TrunklineError) -> float:
        """Return the wait before the next attempt. Raise a permanent error."""
        if isinstance(error, PositionGoneError) and self._snapshot:
            self._position = ""
        elif error.permanent:
            raise error
        if error.code == 4001 or error.status == 401:
            self._token = ""
        wait = self._backoff.next()
        if error.code in (1012, 4001):
            return random.random() * wait
        return error.retry_after + wait

    async def _authenticate(self) -> None:
        """Log in if there is no token, and renew one that expires soon."""
        if self._token and time.monotonic() < self._renew_at:
            return
        try:
            self._token, life = await self._client._login(self._filters)
        except TrunklineError as error:
            left = self._expires_at - time.monotonic()
            if not self._token or left <= 0 or error.permanent:
                raise
            self._renew_at = time.monotonic() + left / 2  # the old token is still valid
            return
        self._expires_at = time.monotonic() + life
        self._renew_at = time.monotonic() + life * (0.8 + random.random() * 0.1)

    async def _connection(self) -> AsyncGenerator[Event, None]:
        """Yield the events of one connection. Always ends with an exception."""
        response = await self._client._open(self._token, self._position, min(_ANSWER_TIME, self._silence))
        parser = EventStreamParser()
        try:
            self._on_status(Status("connected"))
            while True:
                chunk = await self._read(response)
                events, closed = parser.feed(chunk)
                for text, cursor in events:
                    event = _parse(text, cursor)
                    if self._seen.add(event.id):
                        yield event
                    self._position = event.cursor  # the program has requested the next item, so it has processed this one
                    self._backoff.reset()
                if events:
                    await self._save()
                if closed:
                    raise closed
        finally:
            response.close()

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        """Read until there are bytes, the stream is silent, or the token must be renewed."""
        until_renewal = max(0.0, self._renew_at - time.monotonic())
        try:
            chunk = await _within(response.content.readany(), min(until_renewal, self._silence))
        except asyncio.TimeoutError as error:
            if until_renewal < self._silence:
                raise _Renewal from None
            raise ConnectionLostError(f"nothing received for {self._silence} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise _network_error(error) from error
        if not chunk:
            raise ConnectionLostError("the stream ended")
        return chunk

    async def _save(self) -> None:
        if self._store and self._position and self._position != self._saved:
            await self._store.save(self._position)
            self._saved = self._position


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": "Bearer " + token}


async def _refusal(step: str, response: aiohttp.ClientResponse) -> TrunklineError:
    try:
        body = json.loads(await response.read())
    except ValueError:
        body = None  # the body of a proxy's response may not be JSON: then only the status counts
    return refusal(step, response.status, body, response.headers.get("Retry-After"))


async def _within(awaitable: Awaitable[_T], limit: float | None) -> _T:
    """Like asyncio.wait_for, which before Python 3.12 can take a result for the end of its task's cancellation: a program
    would go on after Ctrl-C."""
    task = asyncio.ensure_future(awaitable)
    try:
        await asyncio.wait({task}, timeout=limit)
    finally:
        task.cancel()
    await asyncio.wait({task})
    try:
        return task.result()
    except asyncio.CancelledError:
        raise asyncio.TimeoutError from None


def _network_error(error: BaseException) -> TrunklineError:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return CertificateError(f"the server's certificate is not trusted: {error}", permanent=True)
    return ConnectionLostError(f"no connection: {error or type(error).__name__}")


def _parse(text: bytes, cursor: str) -> Event:
    try:
        message = json.loads(text)
    except ValueError as error:
        raise ProtocolError("an event is not JSON", permanent=True) from error
    if not isinstance(message, dict) or not isinstance(message.get("id"), str):
        raise ProtocolError("an event has no id", permanent=True)
    return Event.parse(message, cursor or message["id"])
