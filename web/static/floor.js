/**
 * The floor: the agents that are logged in and the active calls. It begins with
 * the server's snapshot and applies each later event, as fanout/snapshot does; a
 * test compares the two.
 */
import { timeOf } from "./place.js";
import { read } from "./sources.js";

/**
 * @typedef {{account: string, id: string, state: string, status: string, since: number, heard: number}} Agent
 * @typedef {{account: string, id: string, queue: string, agent: string, state: string, since: number, heard: number}} Call
 * @typedef {import("./sources.js").AboutAgent} AboutAgent
 * @typedef {import("./sources.js").AboutCall} AboutCall
 */

const age = 24 * 3600e3; // entries without an event for this long are removed
const most = 20_000; // agents, and calls; the one without an event for longest is removed

const matters = new Set([
  "svc_cc_queue_on_call_event", "svc_cc_queue_on_agent_state_event", "AGENT_LOGIN", "AGENT_LOGOUT",
  "AGENT_STATUS_CHANGE", "AGENT_CALL_START", "AGENT_CALL_END", "AGENT_BREAK_START", "AGENT_BREAK_END", "AGENT_TRANSFER",
]);

/**
 * Entries in the order of their last event, and for a while the keys of those that
 * have ended, so that a late event does not add them again.
 * @template {{heard: number}} V
 */
class Shelf {
  /** @type {Map<string, V>} */ live = new Map();
  /** @type {Map<string, number>} */ #ended = new Map();

  hear(/** @type {string} */ key, /** @type {V} */ value) {
    this.#ended.delete(key);
    this.live.delete(key);
    this.live.set(key, value);
    if (this.live.size > most) this.live.delete(/** @type {string} */ (this.live.keys().next().value));
  }

  end(/** @type {string} */ key, /** @type {number} */ heard) {
    this.live.delete(key);
    this.#ended.delete(key);
    this.#ended.set(key, heard);
    if (this.#ended.size > most / 4) this.#ended.delete(/** @type {string} */ (this.#ended.keys().next().value));
  }

  over(/** @type {string} */ key) { return this.#ended.has(key); }

  forget(/** @type {number} */ oldest) {
    for (const [key, value] of this.live) {
      if (value.heard >= oldest) break;
      this.live.delete(key);
    }
    for (const [key, heard] of this.#ended) {
      if (heard >= oldest) break;
      this.#ended.delete(key);
    }
  }
}

export class Floor {
  /** @type {Shelf<Agent>} */ #agents = new Shelf();
  /** @type {Shelf<Call>} */ #calls = new Shelf();
  /** Changes with every change of the floor. */
  version = 0;

  /** @returns {Agent[]} */
  get agents() { return [...this.#agents.live.values()]; }

  /** @returns {Call[]} */
  get calls() { return [...this.#calls.live.values()]; }

  /**
   * Begins anew with a snapshot; null: with nothing.
   * @param {?{timestamp: number, agents: any[], calls: any[]}} snapshot
   */
  start(snapshot) {
    this.#agents = new Shelf();
    this.#calls = new Shelf();
    const bySince = (/** @type {{since: number}} */ a, /** @type {{since: number}} */ b) => a.since - b.since;
    for (const { account_id: account, agent_id: id, state, status, since } of snapshot?.agents.toSorted(bySince) ?? []) {
      this.#agents.hear(keyOf(account, id), { account, id, state, status, since, heard: since * 1000 });
    }
    for (const one of snapshot?.calls.toSorted(bySince) ?? []) {
      const { account_id: account, call_id: id, queue_id: queue, agent_id: agent, state, since } = one;
      this.#calls.hear(keyOf(account, id), { account, id, queue, agent, state, since, heard: since * 1000 });
    }
    this.version++;
  }

  /**
   * Takes in the next message of the channel.
   * @param {{id: string, type: string, account_id: string, timestamp: number, data: unknown, metadata: any}} message
   */
  apply(message) {
    if (!matters.has(message.type)) return;
    const heard = timeOf(message.id);
    this.forget(heard);
    const { agent, call } = read(message);
    if (agent?.id) this.#agent(message.account_id, message.timestamp, heard, agent);
    if (call?.id) this.#call(message.account_id, message.timestamp, heard, call);
    this.version++;
  }

  /** Removes entries without an event for too long before now, ms. */
  forget(/** @type {number} */ now) {
    this.#agents.forget(now - age);
    this.#calls.forget(now - age);
  }

  #agent(/** @type {string} */ account, /** @type {number} */ at, /** @type {number} */ heard, /** @type {AboutAgent} */ said) {
    const key = keyOf(account, said.id);
    if (said.out) return this.#agents.end(key, heard);
    if (said.state === "" && said.status === "" || said.aside && this.#agents.over(key)) return;
    const was = this.#agents.live.get(key);
    const state = said.state || was?.state || "", status = said.status || was?.status || "";
    const same = was && was.state === state && was.status === status;
    this.#agents.hear(key, { account, id: said.id, state, status, since: same ? was.since : at, heard });
  }

  #call(/** @type {string} */ account, /** @type {number} */ at, /** @type {number} */ heard, /** @type {AboutCall} */ said) {
    const key = keyOf(account, said.id), known = this.#calls.live.get(key);
    if (said.over) {
      if (said.by === "" || known && (known.agent === "" || known.agent === said.by)) this.#calls.end(key, heard);
      return;
    }
    if (!known && (said.state === "" || !said.begins && this.#calls.over(key))) return;
    const call = known ? { ...known, heard } : { account, id: said.id, queue: "", agent: "", state: "", since: at, heard };
    if (said.state !== "" && said.state !== call.state) [call.state, call.since] = [said.state, at];
    if (said.queue !== "") call.queue = said.queue;
    if (said.agent !== "" || said.state === "waiting") call.agent = said.agent;
    this.#calls.hear(key, call);
  }
}

/** A key for an id within an account. */
function keyOf(/** @type {string} */ account, /** @type {string} */ id) { return `${account}\n${id}`; }
