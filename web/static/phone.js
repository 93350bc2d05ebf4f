/** Click to call: one request at a time, and the progress of each call, from events and, where these are missing, by polling. */
import { RecordingActions } from "./actions.js";
import { RequestError } from "./http.js";
import { time } from "./format.js";
import { go, isAdmin, link, ownEvents, route, session } from "./state.js";
import { Act, Copy, Form, html, useEffect, useReducer, useRef, useState, useValue, Value } from "./ui.js";

/** @type {Record<string, string>} */
const steps = {
  accepted: "Accepted", ringing_user: "Your phone rings", user_answered: "You answered", dialling: "Dialling", bridged: "Connected", ended: "Ended",
};
const order = Object.keys(steps), maxCalls = 6;

/** The calls that were placed since the page was opened, newest first. @type {Value<{id: string, number: string, at: number}[]>} */
const placed = new Value([]);

/** Places a call, and shows its progress on this page. A repeat with the same key does not ring twice. */
export async function placeCall(/** @type {string} */ number, /** @type {string} */ key = crypto.randomUUID()) {
  const { origination_call_id: id } = await session.request(`/ucp/v2/c2c/${encodeURIComponent(number)}`, { method: "POST",
    headers: { "Idempotency-Key": key } });
  if (id) placed.set([{ id, number, at: Date.now() }, ...placed.value].slice(0, maxCalls));
  go("phone");
  return id ? "" : `The call to ${number} is placed. The platform returned no id, so its progress cannot be shown.`;
}

export function Phone() {
  const { query } = useValue(route), calls = useValue(placed), number = query.get("number") ?? "", [said, say] = useState(""), attempt = useRef(null);
  const extension = session.user?.presence_id;
  const place = async ({ number: to = "" }) => {
    const wanted = to.trim();
    if (wanted === "") throw new Error("Enter a number");
    if (attempt.current?.number !== wanted) attempt.current = { number: wanted, key: crypto.randomUUID() }; // a retry must not ring twice
    say(await placeCall(wanted, attempt.current.key));
    attempt.current = null;
  };
  return html`<div class="view narrow" id="phone"><section class="panel" aria-labelledby="dial-title"><header><h1 id="dial-title">Click to call</h1></header>
    <p class="hint">${extension ? `Your phone with extension ${extension} rings first.` : "Your user has no extension, which click to call needs."}</p>
    <${Form} key=${`${number} ${calls[0]?.id}`} id="dial" label="Call" initial=${{ number: number || undefined }} submit=${place}
      fields=${[{ name: "number", label: "Number or extension", type: "tel", required: true, maxlength: 64, autofocus: true }]} />
    <p class="output" role="status">${said}</p>
    <ol class="cards" aria-label="Your calls">${calls.map((call) => html`<${Call} key=${call.id} ...${call} />`)}</ol></section></div>`;
}

/** @param {{id: string, number: string, at: number}} properties */
function Call({ id, number, at }) {
  const path = `/api/v2/calls/${encodeURIComponent(id)}`, [problem, setProblem] = useState("");
  // Answers and events come in any order.
  const [history, step] = useReducer((before, one) => before.some(({ state }) => state === one.state) ? before
    : [...before, one].sort((a, b) => order.indexOf(a.state) - order.indexOf(b.state)), []);
  const ended = history.some(({ state }) => state === "ended"), last = history.at(-1);
  useEffect(() => ownEvents.watch(({ name, data }) => {
    if (name === "call.progress" && data.origination_call_id === id) step({ state: data.state, at: data.timestamp, cause: data.cause });
  }), [id]);
  useEffect(() => { // events are faster, polling is reliable
    if (ended) return;
    let wait = 400, timer;
    const poll = async () => {
      try {
        const call = await session.request(path);
        for (const { state, at: when } of call.history) step({ state, at: when, cause: state === "ended" ? call.cause : undefined });
      } catch (error) {
        if (error instanceof RequestError && error.status === 404) return setProblem(error.message);
      }
      wait = Math.min(wait * 1.3, 5000);
      timer = setTimeout(poll, wait);
    };
    timer = setTimeout(poll, wait);
    return () => clearTimeout(timer);
  }, [ended]);
  return html`<li class="card" aria-label=${`Call to ${number}`}><h2>Call to <span class="clock">${number}</span></h2>
    <ol class="steps">${history.map(({ state, at: when, cause }) => html`<li key=${state} data-state=${state}><span>${steps[state] ?? state}</span>
      ${cause && html`<span class="sub">${cause}</span>`}<span class="clock">${time(when * 1000)}</span></li>`)}</ol>
    <p class="unseen" role="status">${last && `Call to ${number}: ${steps[last.state] ?? last.state}${last.cause ? `, ${last.cause}` : ""}`}</p>
    ${isAdmin() && last?.state === "bridged" && html`<${RecordingActions} id=${id} />`}
    <p class="actions">${!ended && html`<${Act} run=${() => session.request(path, { method: "DELETE" })}>Hang up</${Act}>`}
      <${Copy} text=${() => id}>Copy id</${Copy}>
      ${ended && html`<a class="button" href=${link("history/call/origination", { id, at: Math.floor(at / 1000) })}>Its record</a>`}</p>
    ${problem && html`<p class="output bad" role="alert">${problem}</p>`}</li>`;
}
