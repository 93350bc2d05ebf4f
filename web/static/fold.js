/**
 * Computes the states of an event's agent and call from its facts (docs/facts.md), by the rules
 * of event/state; a test compares both. The normalizer has already completed the facts of a
 * message from the preceding state, so a board that started with a snapshot computes the same
 * state.
 */

/**
 * @typedef {object} Facts
 * @property {string} name
 * @property {string} [agent_id]
 * @property {string} [agent_name]
 * @property {string} [queue_id]
 * @property {string} [call_id]
 * @property {string} [caller]
 * @property {string} [callee]
 * @property {string} [state]
 * @property {string} [reason]
 * @property {string} [previous_state]
 * @property {number} [wait_ms]
 * @property {number} [talk_ms]
 *
 * @typedef {import("./floor.js").Agent} Agent
 * @typedef {import("./floor.js").Call} Call
 */

/** The facts of a message; undefined for messages of older servers without facts. @returns {Facts|undefined} */
export function factsOf(/** @type {any} */ message) {
  const facts = message.metadata?.facts;
  return typeof facts?.name === "string" ? facts : undefined;
}

/** The subject of the event: an agent's state, a call's, or neither. @returns {"agent"|"call"|""} */
export function factSubject(/** @type {Facts} */ f) {
  const [kind] = f.name.split(".");
  if (kind === "agent") return "agent";
  if (kind === "device") return "";
  if (kind === "queue" || kind === "call" && f.name !== "call.progress") return "call";
  return f.call_id && f.state ? "call" : "";
}

/** Whether an agent in this state is busy with a call. */
export function onCall(/** @type {string} */ state) { return state === "ringing" || state === "talking"; }

const agentOnly = new Set(["offline", "available", "wrap_up", "break", "other"]);
const callOnly = new Set(["waiting", "ringing", "talking", "held", "ended"]);

/** The state of an agent after its call: available or another. */
export function stateAfterCall(/** @type {Agent|undefined} */ agent) { return agent?.afterCall || "available"; }

/**
 * The state of the event's agent after the end of its call; "": available. state is the agent's
 * state after the event.
 * @param {Facts} f
 * @param {Agent|undefined} agent before the event
 * @param {string} state
 */
export function nextStateAfterCall(f, agent, state) {
  const before = agent?.state ?? "", busy = onCall(before);
  if (!onCall(state) && !(state === "wrap_up" && (busy || before === "wrap_up")) || f.name === "agent.login" || f.name === "agent.break_end") return "";
  if (busy || state === "wrap_up") return agent?.afterCall ?? "";
  return agent?.call && agent.call === f.call_id ? before : "";
}

/**
 * Whether an agent that neither rings nor talks after the event keeps its call: it has logged
 * out or begun a break while the call continues.
 * @param {Facts} f
 * @param {Agent|undefined} agent before the event
 * @param {string} state
 */
export function continuesCall(f, agent, state) {
  if (!agent?.call || state !== "offline" && state !== "break") return false;
  switch (f.name) {
    case "agent.login": case "agent.break_end": case "agent.state": return false;
    case "queue.call_abandoned": case "queue.call_ended": case "call.ended": case "conference.left": case "agent.no_answer":
      return f.call_id !== agent.call;
  }
  return true;
}

/**
 * The state of the event's agent after it; "" if unknown.
 * @param {Facts} f
 * @param {Agent|undefined} agent before the event
 * @param {Call|undefined} call before the event
 */
export function nextAgentState(f, agent, call) {
  const before = agent?.state ?? "", state = f.state ?? "";
  switch (f.name) {
    case "agent.logout": return "offline";
    case "agent.break_start": return "break";
    case "agent.login": case "agent.break_end": return state || "available";
    case "agent.queue_join": case "agent.queue_leave": case "agent.state": return state || before;
    case "agent.no_answer":
      if (agentOnly.has(state)) return state;
      return before === "ringing" ? stateAfterCall(agent) : before;
    case "queue.call_offered": case "call.ringing": return before === "talking" ? before : "ringing";
    case "queue.call_answered": case "call.answered": case "call.bridged": return "talking";
    case "call.transferred": return call && call.agent !== f.agent_id ? "talking" : before; // transferred to this agent
    case "queue.call_abandoned": case "queue.call_ended": case "call.ended": case "conference.left":
      if (f.name === "conference.left" && state !== "ended") return before;
      if (agentOnly.has(state)) return state;
      return agent && onCall(before) && (agent.call === "" || agent.call === f.call_id) ? stateAfterCall(agent) : before;
  }
  return before;
}

/** Whether the event begins a new call with the id of an ended one. */
export function beginsNewCall(/** @type {Facts} */ f) {
  return f.name === "queue.call_entered" || f.name === "call.created" || f.name === "call.answered" && Boolean(f.agent_id);
}

/**
 * The state of the event's call after it; "" if unknown.
 * @param {Facts} f
 * @param {Call|undefined} call before the event
 */
export function nextCallState(f, call) {
  let before = call?.state ?? (factSubject(f) === "call" ? f.previous_state ?? "" : "");
  let queue = call?.queue ?? (before && f.queue_id);
  if (before === "ended") {
    if (!beginsNewCall(f)) return "ended";
    before = queue = "";
  }
  const talking = before === "talking" || before === "held", queued = !talking && Boolean(queue);
  switch (f.name) {
    case "queue.call_entered": return "waiting";
    case "queue.call_offered": return talking ? before : "ringing";
    case "call.created": return before || (f.state === "talking" ? "talking" : "ringing");
    case "call.ringing": return talking || queued ? before : "ringing";
    case "call.answered": case "call.bridged": return queued && !f.agent_id ? before : "talking";
    case "queue.call_answered": case "call.resumed": return "talking";
    case "call.held": return "held";
    case "agent.no_answer": return before === "ringing" ? "waiting" : before;
    // A transfer ends only the leg of the transferring agent.
    case "call.ended": return !f.agent_id || !call?.agent || call.agent === f.agent_id ? "ended" : before;
    case "queue.call_abandoned": case "queue.call_ended": return "ended";
    case "call.transferred": case "call.dtmf": return before;
  }
  if (factSubject(f) === "agent") return before;
  return before && callOnly.has(f.state ?? "") ? f.state ?? "" : before;
}

/** Whether the event assigns its call to its agent. */
export function assignsCall(/** @type {Facts} */ f) {
  return Boolean(f.agent_id) && ["queue.call_offered", "queue.call_answered", "call.ringing", "call.answered", "call.bridged",
    "call.transferred"].includes(f.name);
}

const maxText = 256; // bytes; entries with longer ids are not folded, longer texts are omitted
const utf8 = new TextEncoder();

/** The text, or "" if it is missing or too long. */
export function boundedText(/** @type {string|undefined} */ text) {
  if (!text || text.length > maxText || text.length * 3 > maxText && utf8.encode(text).length > maxText) return "";
  return text;
}
