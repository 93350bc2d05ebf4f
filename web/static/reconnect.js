/**
 * The action after a connection has ended or was refused (docs/channel.md, "How
 * connections end").
 *
 * - retry: reconnect, with back-off
 * - reconnect: reconnect at once, with jitter
 * - login: the token is no longer valid, log in again
 * - restart: the position is no longer available, take a new snapshot
 * - renew: take a new snapshot at once, because the token and its filters have changed
 * - stop: do not reconnect
 *
 * retryAfter is the server's Retry-After; since is the time when the connection was lost, by default
 * now; both in ms.
 *
 * @typedef {{action: "retry"|"reconnect"|"login"|"restart"|"renew"|"stop", reason: string, retryAfter?: number, since?: number}} Ending
 */

/** @type {Record<number, Ending>} */
const codes = {
  1001: { action: "retry", reason: "The connection was idle for too long" },
  1008: { action: "stop", reason: "The server did not accept this board's messages. Reload the page." },
  1011: { action: "retry", reason: "Server error" },
  1012: { action: "reconnect", reason: "The server is restarting" },
  4001: { action: "login", reason: "Your session has expired" },
  4003: { action: "stop", reason: "Your access was revoked" },
  4008: { action: "retry", reason: "This browser was too slow to receive all events" },
  4009: { action: "stop", reason: "A newer connection of your user replaced this one" },
};

/** @returns {Ending} */
export function endingOfClose(/** @type {number} */ code) {
  return codes[code] ?? { action: "retry", reason: "Connection lost" };
}

/**
 * The same for an HTTP response in place of a connection.
 * @returns {Ending}
 */
export function endingOfStatus(/** @type {number} */ status, /** @type {number} */ retryAfter = 0) {
  switch (true) {
    case status === 401: return { action: "login", reason: "Your session has ended" };
    case status === 403: return { action: "stop", reason: "This login is not allowed to open the events channel" };
    case status === 410: return { action: "restart", reason: "Events since the disconnect are no longer available" };
    case status === 429: return { action: "retry", reason: "Too many connections", retryAfter };
    case status === 503: return { action: "retry", reason: "The server is not ready", retryAfter };
    case status >= 400 && status < 500: return { action: "restart", reason: "The server refused to resume" };
  }
  return { action: "retry", reason: "Server error", retryAfter };
}

/** The close code in the last comment of a stream, such as ": 1012 …"; 0 without one. */
export function closeCodeIn(/** @type {string} */ comment) {
  const status = /^\s*(\d{4})\b/.exec(comment);
  return status ? Number(status[1]) : 0;
}

/**
 * Milliseconds to wait before the next attempt: longer after each failure, with
 * jitter.
 * @param {number} failures in a row, including the last one
 * @param {() => number} random 0 to 1
 */
export function backoff(failures, random = Math.random) {
  const maxWait = Math.min(30_000, 500 * 2 ** Math.max(0, failures - 1));
  return maxWait / 2 + random() * maxWait / 2;
}

/** Milliseconds of jitter before an immediate reconnect. */
export function jitter(random = Math.random) { return 50 + random() * 950; }
