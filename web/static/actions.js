/** Actions on agents and calls (docs/control.md): what was asked is shown until the platform's event confirms it. */
import { allPages, link, ownEvents, session } from "./state.js";
import { displayText, userPart } from "./format.js";
import { Act, html, messageOf, useLoad, useState, Value } from "./ui.js";

/** What was asked of an agent or call, by its key. @type {Value<Map<string, {text: string, bad: boolean}>>} */
export const asked = new Value(new Map());

export const agentKey = (agent) => agent.key ?? `agent ${agent.account} ${agent.id}`;
export const callKey = (call) => `call ${call.account} ${call.id}`;

const shownFor = 10_000; // ms that a refusal stays
const pollEvery = 1000; // ms; events are faster, polling is reliable

function put(/** @type {string} */ key, /** @type {?{text: string, bad: boolean}} */ entry) {
  const next = new Map(asked.value);
  if (entry) next.set(key, entry);
  else next.delete(key);
  asked.set(next);
  if (entry?.bad) setTimeout(() => { if (asked.value.get(key) === entry) put(key, null); }, shownFor);
}

/**
 * Asks for an action and follows it; returns when the platform has taken it.
 * @param {"agents"|"calls"} kind
 * @param {any} target with id and account
 * @param {{action: string, queue_id?: string, reason?: string, destination?: string}} body
 */
export async function act(kind, target, body) {
  const key = kind === "agents" ? agentKey(target) : callKey(target);
  put(key, { text: `Asked: ${actionName(body)}`, bad: false });
  let id;
  try {
    ({ action_id: id } = await session.request(`/api/v2/${kind}/${encodeURIComponent(target.id)}/actions`, {
      method: "POST", body, account: target.account, headers: { "Idempotency-Key": crypto.randomUUID() },
    }));
  } catch (error) {
    put(key, { text: messageOf(error), bad: true });
    throw error;
  }
  follow(id, key, body);
}

/** Waits for the end of an action, by events and by polling. @param {string} id @param {string} key @param {{action: string}} body */
function follow(id, key, body) {
  let done = false;
  const end = ({ state, message = "" }) => {
    if (done || state === "accepted") return;
    done = true;
    stop();
    const name = actionName(body);
    put(key, state === "confirmed" ? null : { bad: true, text: state === "refused" ? `${name} was refused: ${message}` : `${name}: the platform has not confirmed it` });
  };
  const stop = ownEvents.watch(({ name, data }) => { if (name === "control.action" && data.action_id === id) end({ state: data.action_state, message: data.message }); });
  const poll = async () => {
    if (done) return;
    try {
      end(await session.request(`/api/v2/actions/${encodeURIComponent(id)}`));
    } catch { /* the next one may be answered */ }
    setTimeout(poll, pollEvery);
  };
  setTimeout(poll, pollEvery);
}

/** Break (lunch), Join sales, Transfer to 7001. */
export function actionName(/** @type {any} */ { action, queue_id: queue, reason, destination }) {
  const name = { login: "Log in", logout: "Log out", ready: "Ready", hangup: "Hang up" }[action] ?? displayText(action);
  return [name, queue && userPart(queue), reason && `(${reason})`, destination && `to ${destination}`].filter(Boolean).join(" ");
}

/** The address of a call's page. @param {{id: string, interaction?: string, since?: number}} call */
export function callLink({ id, interaction = "", since = 0 }) { return link(`history/call/${encodeURIComponent(interaction || id)}`, { call: id, at: since ? Math.floor(since) : "" }); }

const recordingActions = [["start", "Record"], ["pause", "Pause"], ["resume", "Resume"], ["stop", "Stop"]];
const recordingSaid = { start: "The call is being recorded.", pause: "Paused: silence is stored.", resume: "The recording goes on.", stop: "The recording has ended." };

/** Records a call that Trunkline connects, and has AI providers hear it; for administrators. @param {{id: string, account?: string}} call */
export function RecordingActions({ id, account }) {
  const [said, say] = useState(""), { data } = useLoad(() => allPages("/api/v2/config/ai_providers", {}, account), [account]);
  const hear = async ({ id: provider_id, name }) => {
    await session.request(`/api/v2/calls/${encodeURIComponent(id)}/listeners`, { method: "POST", account, body: { provider_id } });
    say(`${name} hears the call until it ends.`);
  };
  const run = async (action) => {
    say("");
    await session.request(`/api/v2/calls/${encodeURIComponent(id)}/recording`, { method: "POST", account, body: { action } });
    say(recordingSaid[action]);
  };
  return html`<div class="actions" role="group" aria-label="Recording">${recordingActions.map(([action, label]) => html`<${Act} key=${action}
    aria-label=${action === "start" ? label : `${label} the recording`} run=${() => run(action)}>${label}</${Act}>`)}
    ${data?.filter(({ mode }) => mode === "listen").map((one) => html`<${Act} key=${one.id} run=${() => hear(one)}>Let ${one.name} listen</${Act}>`)}</div>
    <p class="output" role="status">${said}</p>`;
}
