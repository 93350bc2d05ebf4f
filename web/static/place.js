/**
 * The position in the channel. A cursor is exact (docs/channel.md); the server repeats the
 * events between the last cursor and a disconnect, which are dropped by id.
 *
 * Only ids that can be repeated are kept: those of earlier connections, and those of the current
 * one since its last cursor.
 */
export class Place {
  /** @type {Set<string>} */ #before = new Set(); // of earlier connections
  /** @type {Set<string>} */ #now = new Set();
  #since = "";
  #exact = false;

  /** The cursor or id to resume from; "" if there is none. */
  get since() { return this.#since; }

  /** The number of ids kept. */
  get remembered() { return this.#before.size + this.#now.size; }

  /** Begins at a snapshot's cursor and drops all ids. */
  start(/** @type {string} */ cursor) {
    this.#before.clear();
    this.#now.clear();
    this.#since = cursor;
    this.#exact = cursor !== "";
  }

  /** Handles a newly opened connection. */
  opened() {
    for (const id of this.#now) this.#before.add(id);
    this.#now.clear();
  }

  /** Whether the event is new. */
  admit(/** @type {string} */ id) {
    const known = this.#before.delete(id) || this.#now.has(id);
    this.#now.add(id);
    if (!this.#exact) this.#since = id; // until the first cursor
    return !known;
  }

  /** Stores a cursor that the server has sent on this connection. */
  reached(/** @type {string} */ cursor) {
    this.#since = cursor;
    this.#exact = true;
    this.#now.clear();
  }
}

/** The milliseconds of an event id, NaN for other texts. */
export function timeOf(/** @type {string} */ id) {
  const digits = /^cc_evt_(\d{19})/.exec(id);
  return digits ? Number(digits[1].slice(0, 13)) : NaN;
}
