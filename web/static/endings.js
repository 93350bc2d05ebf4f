/**
 * What to do when a connection has ended or was refused (docs/channel.md, "How
 * connections end").
 *
 * - again: come back, with back-off
 * - soon: come back at once, with jitter
 * - login: the token is no good any more
 * - restart: the log does not reach back; take a snapshot anew
 * - stay: do not come back
 *
 * after is how long the server wants to be left alone, since is when the
 * connection was lost where that was not just now; both in ms.
 *
 * @typedef {{then: "again"|"soon"|"login"|"restart"|"stay", why: string, after?: number, since?: number}} Ending
 */

/** @type {Record<number, Ending>} */
const codes = {
  1001: { then: "again", why: "The connection was silent for too long" },
  1008: { then: "stay", why: "The server did not understand this board. Reload the page." },
  1011: { then: "again", why: "The server had a fault" },
  1012: { then: "soon", why: "The server restarts" },
  4001: { then: "login", why: "Your session has expired" },
  4003: { then: "stay", why: "Your access was revoked" },
  4008: { then: "again", why: "This browser was too slow" },
  4009: { then: "stay", why: "A newer connection of yours took the place of this one" },
};

/** @returns {Ending} */
export function ofClose(/** @type {number} */ code) {
  return codes[code] ?? { then: "again", why: "The connection broke" };
}

/**
 * Of an answer in place of a connection.
 * @returns {Ending}
 */
export function ofStatus(/** @type {number} */ status, /** @type {number} */ after = 0) {
  switch (true) {
    case status === 401: return { then: "login", why: "Your session has ended" };
    case status === 403: return { then: "stay", why: "This login may not open the events channel" };
    case status === 410: return { then: "restart", why: "The log does not reach back to the break" };
    case status === 429: return { then: "again", why: "Too many connections", after };
    case status === 503: return { then: "again", why: "The server is not ready", after };
    case status >= 400 && status < 500: return { then: "restart", why: "The server refused to resume" };
  }
  return { then: "again", why: "The server had a fault", after };
}

/** A stream says in its last comment why it ends: ": 1012 …". 0 when it does not. */
export function codeOf(/** @type {string} */ comment) {
  const said = /^\s*(\d{4})\b/.exec(comment);
  return said ? Number(said[1]) : 0;
}

/**
 * Milliseconds to wait before the next attempt: longer after each failure, never
 * the same for two clients.
 * @param {number} failures in a row, the last one included
 * @param {() => number} random 0 to 1
 */
export function pause(failures, random = Math.random) {
  const most = Math.min(30_000, 500 * 2 ** Math.max(0, failures - 1));
  return most / 2 + random() * most / 2;
}

/** Milliseconds of jitter where one shall come back at once. */
export function jitter(random = Math.random) { return 50 + random() * 950; }
