/** The logged-in agents: one tile each, in a stable order, and a counter for each state. */
import { el, setText, syncChildren } from "./dom.js";
import { duration, userPart } from "./format.js";

/** @typedef {import("./floor.js").Agent} Agent */

const maxTiles = 300; // tiles at most
/** @type {Record<string, string>} */
const names = { available: "Available", ringing: "Ringing", talking: "On a call", wrap_up: "After call", break: "On break", other: "Other" };

export class Agents {
  #tiles; #counts; #empty; #more;
  /** @type {Agent[]} */ #list = [];

  /** @param {{tiles: Element, counts: Element, empty: HTMLElement, more: Element}} parts */
  constructor({ tiles, counts, empty, more }) {
    this.#tiles = tiles;
    this.#counts = counts;
    this.#empty = empty;
    this.#more = more;
  }

  /** @param {Agent[]} agents @param {number} now ms @param {boolean} several accounts */
  show(agents, now, several) {
    this.#list = [...agents].sort((a, b) => a.account.localeCompare(b.account) || a.id.localeCompare(b.id, undefined, { numeric: true }));
    syncChildren(this.#tiles, this.#list.slice(0, maxTiles), (a) => `${a.account}\n${a.id}`, make, (tile, a) => {
      tile.dataset.tone = stateOf(a);
      setText(tile.parts.name, a.name || userPart(a.id));
      tile.parts.name.title = a.id;
      setText(tile.parts.state, [names[stateOf(a)], a.reason].filter(Boolean).join(" · "));
      setText(tile.parts.account, several ? a.account : "");
      tile.since = a.since;
    });
    this.#empty.hidden = agents.length > 0;
    setText(this.#more, agents.length > maxTiles ? `and ${agents.length - maxTiles} more` : "");
    /** @type {Map<string, number>} */
    const counts = new Map();
    for (const a of agents) counts.set(stateOf(a), (counts.get(stateOf(a)) ?? 0) + 1);
    for (const item of /** @type {any} */ (this.#counts.children)) {
      setText(item.firstElementChild, counts.get(item.dataset.tone) ?? 0);
    }
    this.tick(now);
  }

  /** Updates the durations. */
  tick(/** @type {number} */ now) {
    for (const tile of /** @type {any} */ (this.#tiles.children)) setText(tile.parts.time, duration(now / 1000 - tile.since));
  }
}

/** @returns {HTMLElement} */
function make() {
  const parts = {
    name: el("span", { class: "name" }), state: el("span", { class: "state" }),
    account: el("span", { class: "account" }), time: el("span", { class: "clock" }),
  };
  const tile = el("li", { class: "tile" }, el("span", { class: "lamp", "aria-hidden": "true" }), parts.name, parts.time, parts.state, parts.account);
  tile.parts = parts;
  return tile;
}

/** The agent's state; "other" for one unknown to this board. */
function stateOf(/** @type {Agent} */ { state }) { return Object.hasOwn(names, state) ? state : "other"; }

/** The counters, one for each state. */
export function stateCounters() {
  return Object.entries(names).map(([state, name]) =>
    el("li", { "data-tone": state }, el("b", {}, "0"), " ", el("span", {}, name)));
}
