/**
 * The position in the channel. A cursor is exact (docs/channel.md); the server repeats the
 * events between the last cursor and a disconnect, which are dropped by id.
 *
 * Only ids that can be repeated are kept: those of earlier connections, and those of the current
 * one since its last cursor.
 */
export class ChannelPosition {
  /** @type {Set<string>} */ #earlierIDs = new Set(); // of earlier connections
  /** @type {Set<string>} */ #currentIDs = new Set();
  #since = "";
  #hasCursor = false;

  /** The cursor or id to resume from; "" if there is none. */
  get since() { return this.#since; }

  /** The number of ids kept. */
  get storedIDs() { return this.#earlierIDs.size + this.#currentIDs.size; }

  /** Begins at a snapshot's cursor and drops all ids. */
  reset(/** @type {string} */ cursor) {
    this.#earlierIDs.clear();
    this.#currentIDs.clear();
    this.#since = cursor;
    this.#hasCursor = cursor !== "";
  }

  /** Handles a newly opened connection. */
  connectionOpened() {
    for (const id of this.#currentIDs) this.#earlierIDs.add(id);
    this.#currentIDs.clear();
  }

  /** Stores the id of an event and returns whether the event is new. */
  accept(/** @type {string} */ id) {
    const known = this.#earlierIDs.delete(id) || this.#currentIDs.has(id);
    this.#currentIDs.add(id);
    if (!this.#hasCursor) this.#since = id; // until the first cursor
    return !known;
  }

  /** Stores a cursor that the server has sent on this connection. */
  setCursor(/** @type {string} */ cursor) {
    this.#since = cursor;
    this.#hasCursor = true;
    this.#currentIDs.clear();
  }
}

/** The milliseconds of an event id, NaN for other texts. */
export function eventTime(/** @type {string} */ id) {
  const digits = /^cc_evt_(\d{19})/.exec(id);
  return digits ? Number(digits[1].slice(0, 13)) : NaN;
}
