/**
 * The floor as the server shows it: the agents at work, the active calls and the queues with
 * their numbers, all of one snapshot.
 */
import { eventTime } from "./channel_position.js";
import { userPart } from "./format.js";

/**
 * Times are Unix seconds. Times and numbers of a queue are the server's; since is 0 while
 * nobody waits.
 *
 * @typedef {{key: string, account: string, id: string, name: string, state: string, reason: string, call: string, queues: string[], since: number}} Agent
 * @typedef {{account: string, id: string, queue: string, agent: string, caller: string, interaction: string, state: string, since: number}} Call
 * @typedef {{account: string, id: string, waiting: number, talking: number, since: number, agents: Record<string, number>} & Figures} Queue
 * @typedef {{offered: number, answered: number, abandoned: number, level: number, within: number, counted: number}} Figures of a queue's
 *   day; level is NaN while no call counts, else within / counted
 */

export class Floor {
  /** @type {Agent[]} */ agents = [];
  /** @type {Call[]} */ calls = [];
  /** @type {Queue[]} */ queues = [];
  /** @type {Map<string, string>} */ #names;
  /** The agents in the order of the snapshot, which is the same as long as nobody comes or leaves. @type {Agent[]} */ #inOrder;
  /** The place and name of each known agent. @type {Map<string, {name: string, place: number}>} */ #places;

  /** Keeps the names and places of the floor before. */
  constructor(/** @type {?Floor} */ before = null) {
    this.#names = before?.#names ?? new Map();
    this.#places = before?.#places ?? new Map();
    this.#inOrder = before?.#inOrder ?? [];
  }

  /** An agent's name, "" if unknown. */
  nameOf(/** @type {string} */ account, /** @type {string} */ id) { return this.#names.get(`agent ${account} ${id}`) ?? ""; }

  /**
   * Shows a snapshot; null: nothing.
   * @param {?{agents: any[], calls: any[], queues?: any[]}} snapshot
   */
  show(snapshot) {
    const before = this.#inOrder;
    this.agents = (snapshot?.agents ?? []).map(({ account_id: account, agent_id: id, agent_name: name = "", state, reason = "", call_id: call = "",
      queues = [], since }, i) => {
      const old = before[i], key = old?.id === id && old.account === account ? old.key : `agent ${account} ${id}`; // a known text is found faster
      return { key, account, id, name, state, reason, call, queues, since };
    });
    this.#inOrder = this.agents.slice();
    this.calls = (snapshot?.calls ?? []).map(({ account_id: account, call_id: id, queue_id: queue, agent_id: agent, caller = "", interaction_id: interaction = "", state, since }) =>
      ({ account, id, queue, agent, caller, interaction, state, since }));
    this.queues = (snapshot?.queues ?? []).map(({ account_id: account, queue_id: id, waiting, talking, longest_wait_since: since = 0, agents = {},
      offered = 0, answered = 0, abandoned = 0, service_level: level = NaN, service_level_strict: strict = 0 }) => {
      const within = Math.round(strict * offered); // the shares have four places
      return { account, id, waiting, talking, since, agents, offered, answered, abandoned, level, within, counted: level > 0 ? Math.round(within / level) : Number.isNaN(level) ? 0 : offered };
    });
    for (const { key, name } of this.agents) if (name && this.#names.get(key) !== name) this.#names.set(key, name);
    this.#sort();
  }

  /**
   * Sorts the agents by name. Comparing 10,000 names takes longer than a frame, so known agents get their
   * places without a comparison.
   */
  #sort() {
    /** @type {Agent[]} */
    const placed = [];
    for (const agent of this.agents) {
      const known = this.#places.get(agent.key);
      if (known?.name !== agent.name) return this.#sortAgain();
      placed[known.place] = agent;
    }
    this.agents = placed.filter(Boolean); // without the places of those who have left
  }

  #sortAgain() {
    this.agents.sort((a, b) => collator.compare(nameOf(a), nameOf(b)) || collator.compare(a.id, b.id) || (a.key < b.key ? -1 : 1));
    this.#places = new Map(this.agents.map(({ key, name }, place) => [key, { name, place }]));
  }
}

const collator = new Intl.Collator(undefined, { numeric: true });

/** The name of an agent for display. */
export function nameOf(/** @type {Agent} */ a) { return a.name || userPart(a.id); }

/** The sum of queues; since is of the caller who waits longest. */
export function total(/** @type {Queue[]} */ queues) {
  const sum = { waiting: 0, talking: 0, offered: 0, answered: 0, abandoned: 0, within: 0, counted: 0, since: 0 };
  for (const q of queues) {
    for (const name of /** @type {const} */ (["waiting", "talking", "offered", "answered", "abandoned", "within", "counted"])) sum[name] += q[name];
    if (q.since && (!sum.since || q.since < sum.since)) sum.since = q.since;
  }
  return { ...sum, level: sum.counted ? sum.within / sum.counted : NaN };
}

/** Whether an event may change the floor. */
export function changesFloor(/** @type {{name: string, call_id?: string, state?: string}|undefined} */ facts) {
  return facts !== undefined && (/^(agent|queue|call|conference)\./.test(facts.name) || Boolean(facts.call_id && facts.state));
}

export const pace = {
  first: 250, // ms from an event to the snapshot that shows it
  next: 1000, // ms from one snapshot to the next, and as much again for each perAgents agents
  perAgents: 10_000,
};

/** Asks for snapshots after events: the last one asked for shows the last event. */
export class FloorRefresh {
  #ask; #wanted = 0; #isRunning = false;

  /** @param {() => Promise<?{event_id: string, agents?: any[]}>} ask returns the snapshot that it has shown, null if there was none */
  constructor(ask) { this.#ask = ask; }

  /** An event that may change the floor has arrived. */
  async event(/** @type {string} */ id) {
    this.#wanted = Math.max(this.#wanted, eventTime(id));
    if (this.#isRunning) return;
    this.#isRunning = true;
    try {
      for (let wait = pace.first, shown = 0, more = 0; shown < this.#wanted; wait = pace.next) {
        await new Promise((resolve) => setTimeout(resolve, wait + more));
        const snapshot = await this.#ask();
        shown = snapshot ? eventTime(snapshot.event_id) || 0 : Infinity;
        more = pace.next * (snapshot?.agents?.length ?? 0) / pace.perAgents;
      }
    } finally {
      this.#isRunning = false;
    }
  }
}
