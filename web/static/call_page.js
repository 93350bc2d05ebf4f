/** One call: its legs, its events and its recording. */
import { StreamReader } from "./sse.js";
import { callableNumbers, date, displayText, duration, eventName, shorten, summary, time } from "./format.js";
import { eventTypes } from "./event_types.js";
import { placeCall } from "./phone.js";
import { showRecording } from "./recording_player.js";
import { channel, clock, session } from "./state.js";
import { Act, Copy, Facts, html, useEffect, useLoad, useState } from "./ui.js";

/** The order of a record's fields; others follow them. */
const order = ["direction", "from", "to", "caller_id_name", "caller_id_number", "callee_id_name", "callee_id_number", "timestamp", "answered_time", "ended_time", "duration_seconds", "billing_seconds",
  "ringing_seconds", "hangup_cause", "queue_id", "agent_id", "presence_id", "recording_id", "media_server", "call_id",
  "other_leg_call_id", "interaction_id", "origination_call_id", "account_id", "id"];
const times = new Set(["timestamp", "answered_time", "ended_time"]);
const reports = "/api/v2/reports/cdrs";
const around = 86400, wait = 1000, tries = 8; // seconds around a call; a record is there about two seconds after the call

/** @param {{id: string, query: URLSearchParams}} properties id of the interaction or call; "origination" with the id in the query */
export function CallPage({ id, query }) {
  const at = Number(query.get("at")) || Math.floor(clock.now() / 1000), account = query.get("account") || undefined;
  const { data: legs, error } = useLoad(() => id === "origination" ? placedLegs(query.get("id") ?? "", at, account) : legsOf([["interaction_id", id],
    ["call_id", query.get("call") ?? id]], at, account), [id, query.toString()]);
  const ids = [...new Set([id, query.get("call") ?? "", ...(legs ?? []).flatMap((leg) => [leg.call_id, leg.interaction_id])])].filter((one) => one && one !== "origination");
  const start = Math.min(at, ...(legs ?? []).map((leg) => leg.timestamp));
  return html`<div class="view" id="call"><h1>Call of ${date(start)}</h1><p class="actions"><button type="button" onClick=${() => history.back()}>Back</button>
    <${Copy} text=${() => location.href}>Copy link</${Copy}></p>
    ${error && html`<p class="output bad" role="alert">${error}</p>`}
    ${!legs && !error && html`<p class="empty" role="status">Loading …</p>`}
    ${legs?.length === 0 && html`<p class="panel empty">The call has no record: it has not ended, or its platform sends none.</p>`}
    ${legs?.map((/** @type {any} */ leg, /** @type {number} */ i) => html`<${Leg} key=${leg.id} leg=${leg} open=${i === 0} />`)}
    ${legs?.filter((/** @type {any} */ leg) => leg.recording_id).slice(0, 1).map((/** @type {any} */ leg) => html`<${Recording} key=${leg.recording_id} id=${leg.recording_id} account=${account} />`)}
    ${legs && ids.length > 0 && html`<${CallEvents} key=${ids.join()} ids=${ids} start=${start} />`}</div>`;
}

/** The legs of an interaction, by the first key that finds some. @param {string[][]} keys @param {number} at @param {string|undefined} account */
async function legsOf(keys, at, account) {
  const range = { startDate: String(at - around), endDate: String(at + around) };
  for (const [name, value] of keys) {
    const { data } = await session.request(`${reports}?${new URLSearchParams({ ...range, [name]: value, page_size: "1000" })}`, { account });
    if (data.length > 0) return data.sort((a, b) => a.timestamp - b.timestamp);
  }
  return [];
}

/** The legs of a call that was placed a moment ago. @param {string} id @param {number} at @param {string|undefined} account */
async function placedLegs(id, at, account) {
  for (let attempt = 1; ; attempt++) {
    try {
      const row = await session.request(`${reports}?${new URLSearchParams({ startDate: String(at - around), endDate: String(at + around),
        origination_call_id: id })}`, { account });
      return legsOf([["interaction_id", row.interaction_id]], at, account);
    } catch (problem) {
      if (attempt === tries || /** @type {any} */ (problem).status !== 404) throw problem;
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }
}

function Leg({ leg, open }) {
  const names = [...order.filter((name) => name in leg), ...Object.keys(leg).filter((name) => !order.includes(name))];
  const value = (name) => times.has(name) ? date(leg[name]) : typeof leg[name] === "object" ? JSON.stringify(leg[name]) : String(leg[name]);
  const numbers = [...new Set([leg.from, leg.to].filter((n) => typeof n === "string" && /^\+?\d{2,20}$/.test(n)))];
  return html`<details class="panel" open=${open}><summary>
    ${leg.from ?? "?"} → ${leg.to ?? "?"} · ${leg.duration_seconds === undefined ? "" : duration(leg.duration_seconds)} · ${leg.hangup_cause ?? ""} <span class="sub">${shorten(leg.call_id)}
      </span>
    </summary>
    <${Facts} of=${names.map((name) => [displayText(name), value(name)])} /><p class="actions"><${Copy} text=${() => JSON.stringify(leg)}>Copy JSON</${Copy}>
    ${session.user?.presence_id && numbers.map((number) => html`<${Act} key=${number} run=${() => placeCall(number)}>Call ${number}</${Act}>`)}</p></details>`;
}

/** The player is loaded when somebody wants to listen: each request is in the audit log. @param {{id: string, account?: string, now?: boolean}} properties */
export function Recording({ id, account, now = false }) {
  const [element, setElement] = useState(/** @type {?Element} */ (null));
  const [wanted, setWanted] = useState(now);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    if (!element || !wanted) return;
    let gone = false, end = () => {};
    showRecording(element, id, session, account).then((ended) => { gone ? ended() : end = ended; }, (error) => setProblem(error.message));
    return () => { gone = true; end(); };
  }, [element, wanted, id]);
  return html`<section class="panel" aria-labelledby="recording-title"><header><h2 id="recording-title">Recording</h2><span class="sub">${id}</span></header>
    ${!wanted && html`<p class="actions"><button type="button" onClick=${() => setWanted(true)}>Listen</button></p>`}
    <div ref=${setElement}></div>${problem && html`<p class="output bad" role="alert">${problem}</p>`}</section>`;
}

/** The events of a call, from the log. @param {{ids: string[], start: number}} properties */
function CallEvents({ ids, start }) {
  const [state, show] = useState(/** @type {any} */ ({ events: [], error: "", busy: true }));
  useEffect(() => {
    const abort = new AbortController(), events = [];
    readEvents(ids, start, abort, (message) => {
      events.push(message);
      show({ events: [...events], error: "", busy: true });
    }).then((error) => show({ events: [...events], error, busy: false }));
    return () => abort.abort();
  }, []);
  return html`<section class="panel" aria-labelledby="call-events"><header><h2 id="call-events">Events</h2><span class="sub" role="status">
    ${state.busy ? "Reading …" : `${state.events.length} events`}</span></header>
    ${state.error && html`<p class="output bad" role="alert">${state.error}</p>`}
    <ol class="feed">${state.events.map((m) => html`<li key=${m.id}><details><summary><span class="clock">
      ${time((m.metadata?.facts?.timestamp_ms ?? m.timestamp * 1000))}</span> <b>${eventName(m)}</b> <span class="sub">
      ${summary(m)}${callableNumbers(m).length ? ` · ${callableNumbers(m).join(" → ")}` : ""}</span></summary>
      <pre tabindex="0" aria-label="The event as JSON">${JSON.stringify(m, null, 2)}</pre></details></li>`)}</ol></section>`;
}

const before = 60, partitions = 1024n; // seconds before the call

/**
 * Reads the events of calls from the log, with a token of its own. Returns why it could not.
 * @param {string[]} ids @param {number} start @param {AbortController} abort @param {(message: any) => void} each
 */
async function readEvents(ids, start, abort, each) {
  try {
    const { access_token: token } = await session.request("/ws/v1/cc_events/login", { method: "POST", body: { call_ids: ids, event_types: eventTypes } });
    const last = channel.state.lastID.replace("cc_evt_", ""), headers = { Authorization: `Bearer ${token}` };
    // An id of the time before the call, in the partition of the account's events.
    const wanted = BigInt(Math.floor(start - before)) * 1_000_000_000n, from = last ? `cc_evt_${wanted - wanted % partitions + BigInt(last) % partitions}` : "earliest";
    const open = (since) => fetch(`/ws/v1/cc_events/stream?until=now&since=${since}`, { headers, signal: abort.signal, cache: "no-store" });
    let answer = await open(from);
    if (answer.status === 410) answer = await open("earliest"); // the log begins later
    if (!answer.ok || !answer.body) return `The events could not be read: the server answered ${answer.status}`;
    const lines = new StreamReader((data) => {
      const message = JSON.parse(data);
      if (message.id !== undefined) each(message);
    }, () => {});
    const reader = answer.body.getReader(), decoder = new TextDecoder();
    for (let part = await reader.read(); !part.done; part = await reader.read()) lines.feed(decoder.decode(part.value, { stream: true }));
  } catch (error) {
    if (!abort.signal.aborted) return `The events could not be read: ${error instanceof Error ? error.message : error}`;
  }
  return "";
}
