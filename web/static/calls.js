/** Active calls, longest in their state first, and the waiting calls of each queue. */
import { el, setText, syncChildren } from "./dom.js";
import { duration, userPart, shorten } from "./format.js";

/**
 * @typedef {import("./floor.js").Call} Call
 * @typedef {import("./floor.js").Queue} Queue
 */

const maxRows = 100; // rows
const maxQueues = 24;
/** @type {Record<string, {name: string, rank: number}>} */
const states = {
  waiting: { name: "Waiting", rank: 0 }, ringing: { name: "Ringing", rank: 1 }, talking: { name: "Talking", rank: 2 }, held: { name: "Held", rank: 2 },
};

export class Calls {
  #rows; #queues; #empty; #more;
  /** Every queue that was shown since the page was opened; queues keep their order. @type {Map<string, string>} */
  #known = new Map();

  /** @param {{rows: Element, queues: Element, empty: HTMLElement, more: Element}} parts */
  constructor({ rows, queues, empty, more }) {
    this.#rows = rows;
    this.#queues = queues;
    this.#empty = empty;
    this.#more = more;
  }

  /**
   * @param {Call[]} calls
   * @param {Queue[]} queues
   * @param {number} now ms
   * @param {boolean} several accounts
   */
  show(calls, queues, now, several) {
    const list = [...calls].sort((a, b) => rank(a) - rank(b) || a.since - b.since || a.id.localeCompare(b.id));
    syncChildren(this.#rows, list.slice(0, maxRows), (c) => `${c.account}\n${c.id}`, makeRow, (row, c) => {
      row.dataset.tone = c.state;
      setText(row.parts.state, states[c.state]?.name ?? c.state);
      setText(row.parts.queue, userPart(c.queue) || "–");
      row.parts.queue.title = c.queue;
      setText(row.parts.agent, userPart(c.agent) || "–");
      row.parts.agent.title = c.agent;
      setText(row.parts.id, several ? `${c.account} ${shorten(c.id)}` : shorten(c.id));
      row.parts.id.title = c.id;
      row.since = c.since;
    });
    this.#empty.hidden = calls.length > 0;
    setText(this.#more, calls.length > maxRows ? `and ${calls.length - maxRows} more` : "");
    this.#showQueues(queues);
    this.tick(now);
  }

  #showQueues(/** @type {Queue[]} */ shown) {
    /** @type {Map<string, Queue>} */
    const queues = new Map();
    for (const q of shown) if (this.#known.size < maxQueues) this.#known.set(queueKey(q), q.id);
    for (const [key, id] of this.#known) queues.set(key, { account: "", id, waiting: 0, talking: 0, since: 0 });
    for (const q of shown) if (queues.has(queueKey(q))) queues.set(queueKey(q), q);
    const list = [...queues].sort(([a], [b]) => a.localeCompare(b));
    syncChildren(this.#queues, list, ([key]) => key, makeQueue, (item, [, q]) => {
      setText(item.parts.name, userPart(q.id));
      setText(item.parts.waiting, q.waiting);
      setText(item.parts.live, q.talking);
      item.since = q.since;
    });
  }

  /** Removes the queues without calls. */
  forgetQueues() { this.#known.clear(); }

  /** Updates the durations. */
  tick(/** @type {number} */ now) {
    for (const row of /** @type {any} */ (this.#rows.children)) setText(row.parts.time, duration(now / 1000 - row.since));
    for (const item of /** @type {any} */ (this.#queues.children)) {
      setText(item.parts.longest, item.since ? duration(now / 1000 - item.since) : "–");
    }
  }
}

function queueKey(/** @type {Queue} */ q) { return `${q.account}\n${q.id}`; }

function rank(/** @type {Call} */ c) { return states[c.state]?.rank ?? 3; }

function makeRow() {
  const parts = {
    state: el("span", { class: "chip" }), queue: el("td"), agent: el("td"),
    time: el("td", { class: "clock" }), id: el("td", { class: "id" }),
  };
  const row = el("tr", {}, el("td", {}, parts.state), parts.queue, parts.agent, parts.time, parts.id);
  row.parts = parts;
  return row;
}

function makeQueue() {
  const parts = { name: el("b"), waiting: el("dd"), longest: el("dd", { class: "clock" }), live: el("dd") };
  const item = el("li", { class: "queue" }, parts.name, el("dl", {},
    el("div", {}, el("dt", {}, "Waiting"), parts.waiting), el("div", {}, el("dt", {}, "Longest"), parts.longest),
    el("div", {}, el("dt", {}, "Talking"), parts.live)));
  item.parts = parts;
  return item;
}
