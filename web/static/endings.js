/**
 * What to do when a connection has ended or was refused (docs/channel.md, "How
 * connections end").
 *
 * - again: reconnect, with back-off
 * - soon: reconnect at once, with jitter
 * - login: the token is no longer valid, log in again
 * - restart: the position is no longer available, take a new snapshot
 * - anew: take a new snapshot at once, because the token and its filters have changed
 * - stay: do not reconnect
 *
 * after is the server's Retry-After; since is the time when the connection was lost, by default
 * now; both in ms.
 *
 * @typedef {{then: "again"|"soon"|"login"|"restart"|"anew"|"stay", why: string, after?: number, since?: number}} Ending
 */

/** @type {Record<number, Ending>} */
const codes = {
  1001: { then: "again", why: "The connection was idle for too long" },
  1008: { then: "stay", why: "The server did not accept this board's messages. Reload the page." },
  1011: { then: "again", why: "Server error" },
  1012: { then: "soon", why: "The server is restarting" },
  4001: { then: "login", why: "Your session has expired" },
  4003: { then: "stay", why: "Your access was revoked" },
  4008: { then: "again", why: "This browser was too slow to receive all events" },
  4009: { then: "stay", why: "A newer connection of your user replaced this one" },
};

/** @returns {Ending} */
export function ofClose(/** @type {number} */ code) {
  return codes[code] ?? { then: "again", why: "Connection lost" };
}

/**
 * The same for an HTTP response in place of a connection.
 * @returns {Ending}
 */
export function ofStatus(/** @type {number} */ status, /** @type {number} */ after = 0) {
  switch (true) {
    case status === 401: return { then: "login", why: "Your session has ended" };
    case status === 403: return { then: "stay", why: "This login is not allowed to open the events channel" };
    case status === 410: return { then: "restart", why: "Events since the disconnect are no longer available" };
    case status === 429: return { then: "again", why: "Too many connections", after };
    case status === 503: return { then: "again", why: "The server is not ready", after };
    case status >= 400 && status < 500: return { then: "restart", why: "The server refused to resume" };
  }
  return { then: "again", why: "Server error", after };
}

/** The close code in the last comment of a stream, such as ": 1012 …"; 0 without one. */
export function codeOf(/** @type {string} */ comment) {
  const status = /^\s*(\d{4})\b/.exec(comment);
  return status ? Number(status[1]) : 0;
}

/**
 * Milliseconds to wait before the next attempt: longer after each failure, with
 * jitter.
 * @param {number} failures in a row, including the last one
 * @param {() => number} random 0 to 1
 */
export function pause(failures, random = Math.random) {
  const most = Math.min(30_000, 500 * 2 ** Math.max(0, failures - 1));
  return most / 2 + random() * most / 2;
}

/** Milliseconds of jitter before an immediate reconnect. */
export function jitter(random = Math.random) { return 50 + random() * 950; }
