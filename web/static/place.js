/**
 * Where in the channel we are. A cursor says it exactly (docs/channel.md); what
 * came after the last cursor, before a break, comes again and is dropped by id.
 *
 * Only the ids are kept that can come again: on a new connection those of the
 * old one, and of the current one those since its last cursor.
 */
export class Place {
  /** @type {Set<string>} */ #before = new Set(); // of earlier connections
  /** @type {Set<string>} */ #now = new Set();
  #since = "";
  #exact = false;

  /** What to resume from; "" before anything is known. */
  get since() { return this.#since; }

  /** How many ids are remembered. */
  get remembered() { return this.#before.size + this.#now.size; }

  /** Begins at a snapshot's cursor, with everything else forgotten. */
  start(/** @type {string} */ cursor) {
    this.#before.clear();
    this.#now.clear();
    this.#since = cursor;
    this.#exact = cursor !== "";
  }

  /** A new connection has been opened. */
  opened() {
    for (const id of this.#now) this.#before.add(id);
    this.#now.clear();
  }

  /** Whether the event is new. */
  admit(/** @type {string} */ id) {
    const known = this.#before.delete(id) || this.#now.has(id);
    this.#now.add(id);
    if (!this.#exact) this.#since = id; // so far an id has to do
    return !known;
  }

  /** The server says how far this connection has come. */
  reached(/** @type {string} */ cursor) {
    this.#since = cursor;
    this.#exact = true;
    this.#now.clear();
  }
}

/** The milliseconds of an event id, NaN of anything else. */
export function timeOf(/** @type {string} */ id) {
  const digits = /^cc_evt_(\d{19})/.exec(id);
  return digits ? Number(digits[1].slice(0, 13)) : NaN;
}
