/**
 * Reads what one message states about an agent and a call, in each format, as
 * fanout/snapshot does. The data comes from outside: no member is assumed to exist
 * or to have a type.
 */
import { loggedOut, nothing, stepOf } from "./words.js";

/**
 * @typedef {object} AboutAgent
 * @property {string} id "" when the message is not about an agent
 * @property {string} state
 * @property {string} status
 * @property {boolean} out has logged out
 * @property {boolean} aside does not tell whether the agent is logged in
 *
 * @typedef {object} AboutCall
 * @property {string} id
 * @property {string} queue
 * @property {string} agent
 * @property {""|"waiting"|"offering"|"answered"} state
 * @property {boolean} begins the call, also if it had ended before
 * @property {boolean} over has ended
 * @property {string} by the only agent for whom it has ended; "": for all
 *
 * @typedef {{agent?: AboutAgent, call?: AboutCall}} Said
 * @typedef {Record<string, unknown>} Fields
 */

/** @returns {AboutAgent} */
const anAgent = (/** @type {Partial<AboutAgent>} */ what) =>
  ({ id: "", state: "", status: "", out: false, aside: false, ...what });

/** @returns {AboutCall} */
const aCall = (/** @type {Partial<AboutCall>} */ what) =>
  ({ id: "", queue: "", agent: "", ...nothing, by: "", ...what });

/**
 * @param {{type: string, data: unknown, metadata?: {original_format?: string, queue_id?: string}}} message
 * @returns {Said}
 */
export function read(message) {
  const said = readData(message);
  if (said.call) said.call.queue = text(message.metadata?.queue_id);
  return said;
}

/** @type {typeof read} */
function readData(message) {
  const format = message.metadata?.original_format ?? "";
  const data = object(message.data);
  if (!data) return {};
  if (format === "freeswitch.callcenter" || format === "freeswitch.event") return ofFreeSwitch(data);
  if (format.startsWith("kazoo.")) return ofKazoo(data);
  if (format === "svc.cc" || format === "generic") return ofOwn(message.type, format, data);
  return {};
}

/** mod_callcenter's callcenter::info. @returns {Said} */
function ofFreeSwitch(/** @type {Fields} */ data) {
  const value = (/** @type {string} */ key) => decoded(text(data[key]));
  const action = value("CC-Action"), agent = value("CC-Agent");
  if (action === "agent-status-change") {
    const status = value("CC-Agent-Status");
    return { agent: anAgent({ id: agent, status, out: loggedOut(status) }) };
  }
  if (action === "agent-state-change") {
    return { agent: anAgent({ id: agent, state: value("CC-Agent-State"), aside: true }) };
  }
  const step = stepOf(action);
  if (!step) return {};
  const call = { id: value("CC-Member-UUID"), ...step };
  return { call: aCall(step.state === "waiting" ? call : { ...call, agent }) };
}

/** ACDc, Qubicle and the queue webhook. @returns {Said} */
function ofKazoo(/** @type {Fields} */ data) {
  let f = spelled(data);
  if (f("Event-Category") === undefined) { // an envelope, or a webhook
    const inside = object(f("Action") === "event" ? f("Data") : f("Args"));
    if (inside) f = spelled(inside, f);
  }
  const word = (/** @type {string} */ key) => text(f(key));
  const name = word("Event-Name");
  const visit = (/** @type {string} */ id, event = name) => {
    const step = stepOf(event) ?? nothing;
    const agent = step.state === "waiting" ? "" : word("Agent-ID") || word("Recipient-ID");
    return { call: aCall({
      id: id || text(spelled(object(f("Call")) ?? {})("Call-ID")),
      agent, ...step,
    }) };
  };
  const status = (/** @type {string} */ state) =>
    ({ agent: anAgent({ id: word("Agent-ID"), state, out: state === "logged_out" }) });
  switch (word("Event-Category").replaceAll("_", "-")) {
    case "acdc-status-stat": return status(name);
    case "agent": return name in commands ? status(commands[name]) : {};
    case "acdc-call-stat": case "member": return visit(word("Call-ID"));
    case "queue":
      if (name !== "agent_change") return visit(word("Call-ID"));
      return { agent: anAgent({ id: word("Agent-ID"), status: word("Change"), aside: true }) };
    case "qubicle-recipient":
      return { agent: anAgent({ id: word("Recipient-ID"), state: word("State") || name, out: name === "delete" }) };
    case "qubicle-session": return visit(word("Session-ID") || word("Call-ID"));
    case "": return visit(word("Member-Call-ID"), word("Call-State"));
  }
  return {};
}

/** The ACDc status that follows an agent command. @type {Record<string, string>} */
const commands = Object.assign(Object.create(null),
  { login: "logged_in", logout: "logged_out", pause: "paused", resume: "ready", end_wrapup: "ready" });

/** The specification's own event format, and generic events. @returns {Said} */
function ofOwn(/** @type {string} */ type, /** @type {string} */ format, /** @type {Fields} */ data) {
  let f = spelled(data, undefined, ownNames);
  const inside = format === "generic" && object(f("Data"));
  if (inside) f = spelled(inside, f, ownNames);
  const word = (/** @type {string} */ key) => text(f(key));
  if (type === "svc_cc_queue_on_call_event") return { call: ofCallEvent(f) };
  const id = word("Agent-ID"), state = word("Agent-State"), status = word("Agent-Status");
  const call = { id: word("Call-ID") };
  const agent = (/** @type {Partial<AboutAgent>} */ what = {}) => anAgent({ id, state, status, ...what });
  switch (type) {
    case "AGENT_LOGIN": case "AGENT_BREAK_END": return { agent: agent({ status: status || "logged_in" }) };
    case "AGENT_LOGOUT": return { agent: agent({ out: true }) };
    case "AGENT_BREAK_START": return { agent: agent({ status: status || "on_break" }) };
    case "AGENT_CALL_START": return {
      agent: agent({ state: state || "on_call" }),
      call: aCall({ ...call, state: "answered", begins: true, agent: id }),
    };
    case "AGENT_CALL_END": return {
      agent: agent({ state: state || "after_call" }),
      call: aCall({ ...call, over: true, by: id }),
    };
    case "AGENT_TRANSFER": return { call: aCall({ ...call, agent: word("To-Agent-ID") }) };
  }
  return { agent: agent({ out: loggedOut(state) || loggedOut(status) }) };
}

const ownNames = { state: "Agent-State", State: "Agent-State", status: "Agent-Status", Status: "Agent-Status" };

/** The call's state is in the CDR's event, else in the last history entry, which also has the agent. */
function ofCallEvent(/** @type {(key: string) => unknown} */ f) {
  const cdr = spelled(object(f("CDR")) ?? {});
  const customer = object(f("Customer-Info")) ?? {};
  const history = f("History");
  const last = object(Array.isArray(history) ? history.at(-1) : undefined) ?? {};
  let step = nothing;
  for (const word of [cdr("Event"), f("Event"), f("Agent-State"), last.event]) {
    const meaning = stepOf(text(word));
    if (meaning) {
      step = meaning;
      break;
    }
  }
  let agent = "";
  if (step.state !== "waiting") agent = text(f("Agent-ID")) || (last.type === "agent" ? text(last.ext) : "");
  return aCall({
    id: text(cdr("Call-ID")) || text(f("Call-ID")) || text(customer.customer_uuid),
    agent, ...step,
  });
}

/**
 * Reads members by their Dash-Case name, spelt so or in snake_case; the last one
 * counts. Missing members are looked up in outer.
 * @param {Fields} fields
 * @param {(key: string) => unknown} [outer]
 * @param {Record<string, string>} [more] other spellings
 */
function spelled(fields, outer, more = {}) {
  const order = new Map(Object.keys(fields).map((key, at) => [key, at]));
  return (/** @type {string} */ key) => {
    const snake = key.toLowerCase().replaceAll("-", "_");
    const names = [key, snake, ...Object.keys(more).filter((name) => more[name] === key)];
    let best = -1, value;
    for (const name of names) {
      const at = order.get(name);
      if (at !== undefined && at > best) [best, value] = [at, fields[name]];
    }
    return best < 0 ? outer?.(key) : value;
  };
}

/** @returns {Fields|undefined} */
function object(/** @type {unknown} */ value) {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? /** @type {Fields} */ (value) : undefined;
}

/** Longer ids and words count as missing. */
const maxText = 256;
const utf8 = new TextEncoder();

function text(/** @type {unknown} */ value) {
  if (typeof value !== "string") return "";
  if (value.length * 3 + 2 > maxText && utf8.encode(JSON.stringify(value)).length > maxText) return "";
  return value;
}

/** FreeSWITCH's values may be URL-encoded. */
function decoded(/** @type {string} */ value) {
  if (!value.includes("%") || /%(?![0-9a-f]{2})/i.test(value)) return value;
  const bytes = [];
  for (const part of value.match(/%..|[^%]+/gs) ?? []) {
    if (part.startsWith("%")) bytes.push(parseInt(part.slice(1), 16));
    else bytes.push(...utf8.encode(part));
  }
  return new TextDecoder().decode(new Uint8Array(bytes));
}
