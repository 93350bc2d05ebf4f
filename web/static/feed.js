/** The events since the page was opened, newest first; bounded by number and bytes. A paused list continues to store. */
import { Value } from "./ui.js";

const maxEvents = 2000, maxBytes = 16 << 20, maxEntries = 120;
const minInterval = 250; // ms between two drawings

/** @typedef {{message: any, text: string, lowerText: string}} StoredEvent */

export class Feed {
  /** @type {StoredEvent[]} */ #events = []; // oldest first
  #bytes = 0;
  #scheduled = false;
  #drawnAt = 0;
  total = 0;
  /** @type {Set<string>} */ accounts = new Set();
  changed = new Value(0);

  add(/** @type {any} */ message, /** @type {string} */ text) {
    this.#events.push({ message, text, lowerText: "" });
    this.#bytes += text.length;
    this.total++;
    while (this.#events.length > maxEvents || this.#bytes > maxBytes && this.#events.length > 1) {
      this.#bytes -= /** @type {StoredEvent} */ (this.#events.shift()).text.length;
    }
    if (this.accounts.size < 500) this.accounts.add(message.account_id);
    this.#draw();
  }

  clear() {
    this.#events = [];
    this.#bytes = 0;
    this.#draw();
  }

  /** Announces a change with the next frame, at most every minInterval ms; once a second in a hidden tab. */
  #draw() {
    if (this.#scheduled) return;
    this.#scheduled = true;
    const run = () => {
      this.#scheduled = false;
      this.#drawnAt = Date.now();
      this.changed.set(this.total);
    };
    if (document.hidden) setTimeout(run, 1000);
    else setTimeout(() => requestAnimationFrame(run), Math.max(0, this.#drawnAt + minInterval - Date.now()));
  }

  get isEmpty() { return this.#events.length === 0; }

  /** The newest matching events. @param {{account?: string, type?: string, text?: string}} filter @returns {StoredEvent[]} */
  matching({ account = "", type = "", text = "" }) {
    const wanted = text.trim().toLowerCase(), found = [];
    for (let i = this.#events.length - 1; i >= 0 && found.length < maxEntries; i--) {
      const event = this.#events[i], m = event.message;
      if (account && m.account_id !== account || type && m.type !== type) continue;
      if (wanted && !(event.lowerText ||= event.text.toLowerCase()).includes(wanted)) continue;
      found.push(event);
    }
    return found;
  }
}
