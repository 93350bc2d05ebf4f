/** Active calls, longest in their state first, and the waiting calls of each queue. */
import { el, say, sync } from "./dom.js";
import { duration, local, short } from "./show.js";

/** @typedef {import("./floor.js").Call} Call */

const shown = 100; // rows
const mostQueues = 24;
/** @type {Record<string, {name: string, rank: number}>} */
const states = { waiting: { name: "Waiting", rank: 0 }, offering: { name: "Ringing", rank: 1 }, answered: { name: "Talking", rank: 2 } };

export class Calls {
  #rows; #queues; #empty; #more;
  /** Every queue that had a call since the page was opened; queues keep their places. @type {Map<string, string>} */
  #known = new Map();

  /** @param {{rows: Element, queues: Element, empty: HTMLElement, more: Element}} parts */
  constructor({ rows, queues, empty, more }) {
    this.#rows = rows;
    this.#queues = queues;
    this.#empty = empty;
    this.#more = more;
  }

  /** @param {Call[]} calls @param {number} now ms @param {boolean} several accounts */
  show(calls, now, several) {
    const list = calls.sort((a, b) => rank(a) - rank(b) || a.since - b.since || a.id.localeCompare(b.id));
    sync(this.#rows, list.slice(0, shown), (c) => `${c.account}\n${c.id}`, makeRow, (row, c) => {
      row.dataset.tone = c.state;
      say(row.parts.state, states[c.state]?.name ?? c.state);
      say(row.parts.queue, local(c.queue) || "–");
      row.parts.queue.title = c.queue;
      say(row.parts.agent, local(c.agent) || "–");
      row.parts.agent.title = c.agent;
      say(row.parts.id, several ? `${c.account} ${short(c.id)}` : short(c.id));
      row.parts.id.title = c.id;
      row.since = c.since;
    });
    this.#empty.hidden = calls.length > 0;
    say(this.#more, calls.length > shown ? `and ${calls.length - shown} more` : "");
    this.#showQueues(calls);
    this.tick(now);
  }

  #showQueues(/** @type {Call[]} */ calls) {
    /** @type {Map<string, {id: string, waiting: number, live: number, since: number}>} */
    const queues = new Map();
    for (const c of calls) if (c.queue && this.#known.size < mostQueues) this.#known.set(queueKey(c), c.queue);
    for (const [key, id] of this.#known) queues.set(key, { id, waiting: 0, live: 0, since: Infinity });
    for (const c of calls) {
      const q = queues.get(queueKey(c));
      if (!q) continue;
      if (c.state === "answered") q.live++;
      else {
        q.waiting++;
        q.since = Math.min(q.since, c.since);
      }
    }
    const list = [...queues].sort(([a], [b]) => a.localeCompare(b));
    sync(this.#queues, list, ([key]) => key, makeQueue, (item, [, q]) => {
      say(item.parts.name, local(q.id));
      say(item.parts.waiting, q.waiting);
      say(item.parts.live, q.live);
      item.since = q.since;
    });
  }

  /** Updates the durations. */
  tick(/** @type {number} */ now) {
    for (const row of /** @type {any} */ (this.#rows.children)) say(row.parts.time, duration(now / 1000 - row.since));
    for (const item of /** @type {any} */ (this.#queues.children)) {
      say(item.parts.longest, Number.isFinite(item.since) ? duration(now / 1000 - item.since) : "–");
    }
  }
}

function queueKey(/** @type {Call} */ c) { return `${c.account}\n${c.queue}`; }

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
