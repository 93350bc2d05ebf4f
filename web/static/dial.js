/**
 * Click to call: one request at a time, and the progress of each call, from the
 * channel's call.progress events and, where these are missing, by polling.
 */
import { runAction, copyButton, el, setText } from "./dom.js";
import { RequestError } from "./http.js";
import { time } from "./format.js";

/** @type {Record<string, string>} */
const steps = {
  accepted: "Accepted", ringing_user: "Your phone rings", user_answered: "You answered",
  dialling: "Dialling", bridged: "Connected", ended: "Ended",
};
const order = Object.keys(steps);
const maxCards = 6; // calls shown

export class Dial {
  #session; #parts;
  /** @type {Map<string, CallCard>} */ #cards = new Map();
  #key = ""; // Idempotency-Key of the current request: a retry must not ring twice

  /**
   * @param {import("./session.js").Session} session
   * @param {{form: HTMLFormElement, number: HTMLInputElement, button: HTMLButtonElement, output: Element, list: Element, status: Element}} parts
   * @param {(id: string) => void} lookUp
   */
  constructor(session, parts, lookUp) {
    this.#session = session;
    this.#parts = parts;
    this.lookUp = lookUp;
    parts.form.addEventListener("submit", (event) => {
      event.preventDefault();
      runAction(parts.button, parts.output, () => this.#place(parts.number.value.trim()));
    });
    parts.number.addEventListener("input", () => { this.#key = ""; });
  }

  /** Puts a number into the form, ready to be called. */
  offer(/** @type {string} */ number) {
    this.#parts.number.value = number;
    this.#key = "";
    this.#parts.number.focus();
  }

  async #place(/** @type {string} */ number) {
    if (number === "") throw new Error("Enter a number");
    this.#key ||= crypto.randomUUID();
    const path = `/ucp/v2/c2c/${encodeURIComponent(number)}`;
    const { origination_call_id: id } = await this.#session.request(path, { method: "POST", headers: { "Idempotency-Key": this.#key } });
    this.#key = "";
    if (!id) {
      setText(this.#parts.output, `The call to ${number} is placed. The platform returned no id, so its progress cannot be shown.`);
      return;
    }
    const card = new CallCard(this, this.#session, id, number, (text) => setText(this.#parts.status, text));
    this.#cards.set(id, card);
    this.#parts.list.prepend(card.element);
    while (this.#parts.list.children.length > maxCards) this.#parts.list.lastElementChild?.remove();
  }

  /** Handles a call.progress event of the channel. */
  progress(/** @type {any} */ data) { this.#cards.get(data.origination_call_id)?.step(data.state, data.timestamp, data.cause); }
}

/** One call. */
class CallCard {
  /** @type {string[]} */ #states = [];
  #session; #announce; #steps; #cancel; #output;

  /**
   * @param {Dial} dial
   * @param {import("./session.js").Session} session
   * @param {string} id
   * @param {string} number
   * @param {(text: string) => void} announce
   */
  constructor(dial, session, id, number, announce) {
    this.id = id;
    this.number = number;
    this.#session = session;
    this.#announce = announce;
    this.#steps = el("ol", { class: "steps" });
    this.#output = el("p", { class: "output", role: "alert" });
    this.#cancel = el("button", { type: "button", class: "quiet", onclick: () =>
      runAction(this.#cancel, this.#output, () => session.request(this.#path, { method: "DELETE" })) }, "Hang up");
    this.element = el("li", { class: "card", "aria-label": `Call to ${number}` },
      el("h3", {}, "Call to ", el("span", { class: "clock" }, number)), this.#steps,
      el("p", { class: "actions" }, this.#cancel, copyButton("Copy id", () => id),
        el("button", { type: "button", class: "quiet", onclick: () => dial.lookUp(id) }, "Look it up")), this.#output);
    this.#poll();
  }

  get #path() { return `/api/v2/calls/${encodeURIComponent(this.id)}`; }

  get hasEnded() { return this.#states.includes("ended"); }

  step(/** @type {string} */ state, /** @type {number} */ at, /** @type {string|undefined} */ cause) {
    if (this.#states.includes(state)) return;
    this.#states.push(state);
    const name = steps[state] ?? state;
    const item = el("li", { "data-state": state }, el("span", {}, name), cause && el("span", { class: "cause" }, cause),
      el("span", { class: "clock" }, time(at * 1000)));
    // Responses and events can arrive in any order.
    const later = [...this.#steps.children].find((/** @type {any} */ other) => order.indexOf(other.dataset.state) > order.indexOf(state));
    this.#steps.insertBefore(item, later ?? null);
    if (this.hasEnded) this.#cancel.hidden = true;
    this.#announce(`Call to ${this.number}: ${name}${cause ? `, ${cause}` : ""}`);
  }

  /** Polls until the call has ended: events are faster, polling is reliable. */
  async #poll() {
    for (let wait = 400; ; wait = Math.min(wait * 1.3, 5000)) {
      await new Promise((resolve) => setTimeout(resolve, wait));
      if (this.hasEnded || !this.element.isConnected) return;
      try {
        const call = await this.#session.request(this.#path);
        for (const { state, at } of call.history) this.step(state, at, state === "ended" ? call.cause : undefined);
      } catch (error) {
        if (error instanceof RequestError && error.status === 404) return setText(this.#output, error.message);
      }
    }
  }
}
