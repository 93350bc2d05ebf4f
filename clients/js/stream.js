import { ConnectionLostError, ProtocolError, closeError } from "./errors.js";

const maxEvent = 8 << 20; // characters of one event

/**
 * Parses an event stream (HTML standard, section 9.2.6): takes text, returns the complete
 * events. Throws the error of a close comment (": 1012 reason") after the events before it.
 */
export class EventStreamParser {
  #rest = "";
  #data = [];
  #id = "";
  #size = 0;

  /** @returns {{events: {data: string, id: string}[], closed: ?Error}} */
  feed(text) {
    const events = [];
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop();
    for (const raw of lines) {
      const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw;
      if (line === "") {
        if (this.#data.length) events.push({ data: this.#data.join("\n"), id: this.#id });
        this.#data = [];
        this.#size = 0;
      } else if (line.startsWith("data:")) {
        this.#data.push(line.slice(line[5] === " " ? 6 : 5));
        this.#size += line.length;
      } else if (line.startsWith("id:")) {
        this.#id = line.slice(line[3] === " " ? 4 : 3);
      } else if (line.startsWith(":")) {
        const close = /^:\s*(\d{4})\b\s*(.*)/.exec(line);
        if (close) return { events, closed: closeError(Number(close[1]), close[2]) };
      }
    }
    if (this.#size + this.#rest.length > maxEvent) {
      throw new ProtocolError(`an event has more than ${maxEvent} characters`, { permanent: true });
    }
    return { events, closed: null };
  }
}

/** Remembers the last ids, between size and twice size of them, in two generations. */
export class RecentIDs {
  #size;
  #current = new Set();
  #previous = new Set();

  constructor(size = 1 << 16) { this.#size = size; }

  /** Stores the id. Returns whether it is new. */
  add(id) {
    if (this.#current.has(id) || this.#previous.has(id)) return false;
    if (this.#current.size === this.#size) {
      this.#previous = this.#current;
      this.#current = new Set();
    }
    this.#current.add(id);
    return true;
  }
}

/** Exponential back-off with jitter: between half and all of a time that doubles. */
export class Backoff {
  #bound = 0;

  constructor(min, max) {
    this.min = min;
    this.max = max;
  }

  next() {
    const bound = Math.max(this.#bound, this.min);
    this.#bound = Math.min(2 * bound, this.max);
    return bound / 2 + Math.random() * bound / 2;
  }

  reset() { this.#bound = 0; }
}

/** Runs call with a signal that aborts after ms or with the outer signal. */
export async function timeLimit(ms, signal, call) {
  const abort = new AbortController();
  const end = () => abort.abort();
  const timer = setTimeout(end, ms);
  signal?.addEventListener("abort", end);
  try {
    return await call(abort.signal);
  } catch (error) {
    if (abort.signal.aborted && !signal?.aborted) throw new ConnectionLostError(`no answer within ${ms} ms`, { cause: error });
    throw error;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", end);
  }
}

/** Waits for ms, or until the signal aborts. */
export function sleep(ms, signal) {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", done);
  });
}
