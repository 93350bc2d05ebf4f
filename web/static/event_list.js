/**
 * The list of events, newest first. Stored events are bounded by number and bytes,
 * displayed ones by number; a paused list continues to store.
 */
import { copyButton, el, oncePerFrame, setText, syncChildren } from "./dom.js";
import { date, eventName, callableNumbers, summary, time } from "./format.js";

const maxEvents = 2000, maxBytes = 16 << 20, maxEntries = 200, maxJSON = 64 << 10;

/** @typedef {{message: any, text: string, lowerText: string}} StoredEvent */

export class EventList {
  /** @type {StoredEvent[]} */ #events = []; // oldest first
  #bytes = 0;
  #total = 0;
  #paused = false;
  #pausedAt = 0; // total count when the list was paused
  /** Entries of the paused list, newest first. @type {StoredEvent[]} */ #pausedEntries = [];
  #parts; #render; #dial; #explain;
  /** Ids of the open entries. @type {Set<string>} */ #open = new Set();
  /** @type {Set<string>} */ accounts = new Set();

  /**
   * @param {{list: Element, account: HTMLSelectElement, type: HTMLSelectElement, text: HTMLInputElement,
   *   pause: HTMLButtonElement, clear: HTMLButtonElement, count: Element, empty: HTMLElement}} parts
   * @param {(number: string) => void} dial
   * @param {(id: string) => Node[]} explain parts of an open entry, by its id
   */
  constructor(parts, dial, explain) {
    this.#parts = parts;
    this.#dial = dial;
    this.#explain = explain;
    this.#render = oncePerFrame(() => this.#show());
    for (const input of [parts.account, parts.type, parts.text]) input.addEventListener("input", () => this.#refresh());
    parts.pause.addEventListener("click", () => this.#pause(!this.#paused));
    parts.clear.addEventListener("click", () => this.clear());
    parts.list.addEventListener("keydown", (event) => this.#moveFocus(/** @type {KeyboardEvent} */ (event)));
  }

  add(/** @type {any} */ message, /** @type {string} */ text) {
    this.#events.push({ message, text, lowerText: "" });
    this.#bytes += text.length;
    this.#total++;
    while (this.#events.length > maxEvents || this.#bytes > maxBytes && this.#events.length > 1) {
      this.#bytes -= /** @type {StoredEvent} */ (this.#events.shift()).text.length;
    }
    if (!this.accounts.has(message.account_id)) this.#addAccount(message.account_id);
    this.#render();
  }

  clear() {
    this.#events = [];
    this.#bytes = 0;
    this.#open.clear();
    this.#refresh();
  }

  /** Moves between entries with the arrow keys, because they are too many for the tab key. */
  #moveFocus(/** @type {KeyboardEvent} */ event) {
    const entries = /** @type {HTMLElement[]} */ ([...this.#parts.list.querySelectorAll(".entry")]);
    const at = entries.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    if (at < 0 && document.activeElement !== this.#parts.list) return; // inside an open entry
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: entries.length - 1 }[event.key];
    if (to === undefined || !entries[to]) return;
    event.preventDefault();
    entries[to].focus();
  }

  #addAccount(/** @type {string} */ id) {
    this.accounts.add(id);
    if (this.accounts.size > 500) return;
    this.#parts.account.append(el("option", { value: id }, id));
  }

  #pause(/** @type {boolean} */ paused) {
    this.#pausedEntries = paused ? this.#matching() : [];
    this.#paused = paused;
    this.#parts.pause.setAttribute("aria-pressed", String(paused));
    this.#pausedAt = this.#total;
    this.#render();
  }

  #refresh() {
    if (this.#paused) this.#pausedEntries = this.#matching();
    this.#render();
  }

  /** @returns {StoredEvent[]} newest first */
  #matching() {
    const { account, type, text } = this.#parts;
    const wanted = text.value.trim().toLowerCase();
    const found = [];
    for (let i = this.#events.length - 1; i >= 0 && found.length < maxEntries; i--) {
      const event = this.#events[i], m = event.message;
      if (account.value && m.account_id !== account.value || type.value && m.type !== type.value) continue;
      if (wanted) {
        event.lowerText ||= event.text.toLowerCase();
        if (!event.lowerText.includes(wanted)) continue;
      }
      found.push(event);
    }
    return found;
  }

  #show() {
    const list = this.#paused ? this.#pausedEntries : this.#matching();
    syncChildren(this.#parts.list, list, (event) => event.message.id, (event) => this.#createEntry(event), () => {});
    this.#parts.empty.hidden = list.length > 0;
    setText(this.#parts.empty, this.#events.length ? "No event matches." : "Events appear here as they happen.");
    const waiting = this.#total - this.#pausedAt;
    setText(this.#parts.count, this.#paused ? `Paused, ${waiting} new` : `${this.#total} since this page was opened`);
    setText(this.#parts.pause, this.#paused ? "Resume" : "Pause");
  }

  #createEntry(/** @type {StoredEvent} */ event) {
    const m = event.message;
    const body = el("div", { class: "details", id: `d-${m.id}`, hidden: true });
    const button = el("button", { type: "button", class: "entry", tabindex: "-1", "aria-expanded": "false", "aria-controls": body.id, onclick: () => {
      const open = button.getAttribute("aria-expanded") !== "true";
      button.setAttribute("aria-expanded", String(open));
      body.hidden = !open;
      if (open && !body.hasChildNodes()) this.#fillDetails(body, event);
    } },
    el("span", { class: "clock" }, time(m.timestamp * 1000)), el("span", { class: "kind", "data-kind": m.type }, eventName(m)),
    el("span", { class: "about" }, summary(m)));
    return el("li", {}, button, body);
  }

  #fillDetails(/** @type {Element} */ body, /** @type {StoredEvent} */ { message: m, text }) {
    const numbers = callableNumbers(m);
    const json = JSON.stringify(m, null, 2);
    body.append(
      el("dl", { class: "facts" },
        ...[["Type", m.type], ["Account", m.account_id], ["Happened", date(m.timestamp)], ["Name", m.metadata?.facts?.name ?? "from before events had facts"],
          ["Source", m.metadata?.source], ["Format", m.metadata?.original_format]].flatMap(([name, value]) =>
          [el("dt", {}, name), el("dd", {}, value ?? "")])),
      el("p", { class: "actions" }, copyButton("Copy id", () => m.id), copyButton("Copy JSON", () => text),
        ...numbers.map((number) => el("button", { type: "button", class: "quiet", onclick: () => this.#dial(number) }, `Call ${number}`))),
      ...this.#explain(m.id),
      el("pre", { tabindex: "0", "aria-label": "The event as JSON" }, json.length > maxJSON ? `${json.slice(0, maxJSON)}\n…` : json),
    );
  }
}
