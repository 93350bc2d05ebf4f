/**
 * The floor: the agents at work and the active calls. It starts with the server's snapshot and
 * folds the facts of each later event into it (fold.js).
 */
import { nextStateAfterCall, nextAgentState, boundedText, nextCallState, factsOf, stateAfterCall, assignsCall, continuesCall, onCall, factSubject } from "./fold.js";
import { eventTime } from "./channel_position.js";

/**
 * lastEvent is the time of the entry's last event, ms. entered is the time when a call entered
 * its queue, 0 if unknown; Unix seconds, as since.
 *
 * @typedef {{account: string, id: string, name: string, state: string, reason: string, call: string, afterCall: string, since: number, lastEvent: number}} Agent
 * @typedef {{account: string, id: string, queue: string, agent: string, caller: string, state: string, since: number, entered: number, lastEvent: number}} Call
 * @typedef {import("./fold.js").Facts} Facts
 */

const hour = 3600e3;
const agentAge = 31 * 24 * hour, callAge = 24 * hour; // entries are removed after this time without an event
const endedAge = hour / 4; // a late event must not bring a call back
const maxEntries = 20_000; // maximum number of agents, and of calls; the entry with the oldest event is removed

/** Whether an agent is at work, or a call has not ended. */
const isLive = (/** @type {{state: string}} */ { state }) => state !== "" && state !== "offline" && state !== "ended";

/**
 * Entries in the order of their last event.
 * @template {{account: string, id: string, lastEvent: number}} V
 * @extends {Map<string, V>}
 */
class Entries extends Map {
  find(/** @type {string} */ account, /** @type {string|undefined} */ id) { return this.get(`${account}\n${id}`); }

  put(/** @type {V} */ value) {
    const key = `${value.account}\n${value.id}`;
    this.delete(key);
    this.set(key, value);
    if (this.size > maxEntries) this.delete(/** @type {string} */ (this.keys().next().value));
  }
}

export class Floor {
  /** @type {Entries<Agent>} */ #agents = new Entries();
  /** @type {Entries<Call>} */ #calls = new Entries();
  #forgotAt = 0; // time of the last forget, ms
  /** Queues of the snapshot, also those without a call. @type {{account: string, queue: string}[]} */ queues = [];

  /** @returns {Agent[]} */
  get agents() { return [...this.#agents.values()].filter(isLive); }

  /** An agent's name, "" if unknown. */
  nameOf(/** @type {string} */ account, /** @type {string} */ id) { return this.#agents.find(account, id)?.name ?? ""; }

  /** @returns {Call[]} */
  get calls() { return [...this.#calls.values()].filter(isLive); }

  /**
   * Restarts with a snapshot; null: empty.
   * @param {?{timestamp: number, agents: any[], calls: any[], queues?: any[]}} snapshot
   */
  start(snapshot) {
    this.#agents = new Entries();
    this.#calls = new Entries();
    this.queues = (snapshot?.queues ?? []).map(({ account_id: account, queue_id: queue }) => ({ account, queue }));
    if (!snapshot) return;
    const lastEvent = snapshot.timestamp * 1000;
    for (const one of snapshot.agents) {
      const { account_id: account, agent_id: id, agent_name: name = "", state, reason = "", call_id: call = "", after_call: afterCall = "", since } = one;
      this.#agents.put({ account, id, name, state, reason, call, afterCall, since, lastEvent });
    }
    for (const one of snapshot.calls) {
      const { account_id: account, call_id: id, queue_id: queue, agent_id: agent, caller = "", state, since } = one;
      this.#calls.put({ account, id, queue, agent, caller, state, since, entered: queue ? since : 0, lastEvent });
    }
  }

  /**
   * Folds the next message of the channel.
   * @param {{id: string, account_id: string, timestamp: number, metadata: any}} message
   */
  apply(message) {
    const f = factsOf(message), lastEvent = eventTime(message.id);
    if (!f || factSubject(f) === "") return;
    if (lastEvent - this.#forgotAt >= 60_000) this.forget(lastEvent);
    const call = this.#calls.find(message.account_id, f.call_id);
    this.#foldAgent(message.account_id, message.timestamp, lastEvent, f, call);
    this.#foldCall(message.account_id, message.timestamp, lastEvent, f, call);
  }

  /** Removes entries whose last event is too long before now, ms. */
  forget(/** @type {number} */ now) {
    this.#forgotAt = now;
    for (const [key, { lastEvent }] of this.#agents) if (now - lastEvent >= agentAge) this.#agents.delete(key);
    for (const [key, { lastEvent, state }] of this.#calls) {
      if (now - lastEvent >= (state === "ended" ? endedAge : callAge)) this.#calls.delete(key);
    }
  }

  #foldAgent(/** @type {string} */ account, /** @type {number} */ at, /** @type {number} */ lastEvent, /** @type {Facts} */ f, /** @type {Call|undefined} */ call) {
    const id = boundedText(f.agent_id), was = this.#agents.find(account, id), state = nextAgentState(f, was, call);
    if (!id || !was && !state && f.name !== "agent.queue_join") return;
    const agent = { account, id, name: "", state, reason: "", call: "", since: at, ...was, afterCall: nextStateAfterCall(f, was, state), lastEvent };
    if (agent.state !== state) [agent.state, agent.since, agent.reason] = [state, at, ""];
    if (factSubject(f) === "agent" && f.state) agent.reason = boundedText(f.reason);
    agent.name = boundedText(f.agent_name) || agent.name;
    const onlyRings = was?.state === "talking" && (f.name === "queue.call_offered" || f.name === "call.ringing");
    if (!onCall(state)) agent.call = continuesCall(f, was, state) ? agent.call : "";
    else if (f.call_id && (agent.call === "" || factSubject(f) === "agent" || assignsCall(f) && !onlyRings)) agent.call = boundedText(f.call_id);
    this.#agents.put(agent);
  }

  #foldCall(/** @type {string} */ account, /** @type {number} */ at, /** @type {number} */ lastEvent, /** @type {Facts} */ f, /** @type {Call|undefined} */ was) {
    const id = boundedText(f.call_id), state = nextCallState(f, was);
    if (!id || !state) return;
    const before = was?.state === "ended" && state !== "ended" ? undefined : was; // a new call with the same id
    const call = { account, id, queue: "", agent: "", caller: "", state, since: at, entered: 0, ...before, lastEvent };
    if (call.state !== state) [call.state, call.since] = [state, at];
    if (f.name === "queue.call_entered" && (!call.entered || before?.state === "talking" || before?.state === "held")) call.entered = at;
    call.queue = boundedText(f.queue_id) || call.queue;
    call.caller = boundedText(f.caller) || call.caller;
    if (state === "waiting") call.agent = "";
    else if (state === "ended") call.agent ||= f.name === "queue.call_abandoned" ? "" : boundedText(f.agent_id);
    else if (assignsCall(f) && !(f.name === "queue.call_offered" && state !== "ringing")) {
      this.#freeRingingAgent(account, call, f, at, lastEvent);
      call.agent = boundedText(f.agent_id);
    }
    this.#calls.put(call);
  }

  /** Sets an agent available again whose phone was ringing for the call when another agent answered. */
  #freeRingingAgent(/** @type {string} */ account, /** @type {Call} */ call, /** @type {Facts} */ f, /** @type {number} */ at, /** @type {number} */ lastEvent) {
    const ringing = this.#agents.find(account, call.agent);
    if (!ringing || call.state !== "talking" || ringing.id === f.agent_id || ringing.state !== "ringing" || ringing.call !== call.id) return;
    this.#agents.put({ ...ringing, state: stateAfterCall(ringing), since: at, reason: "", call: "", afterCall: "", lastEvent });
  }
}
