/** Shows the state of the connection, as text and colour. */
import { duration, time } from "./format.js";
import { channel, connection, now } from "./state.js";
import { html, useEffect, useRef, useState, useValue } from "./ui.js";

/** @typedef {import("./channel_connection.js").State} State */

const phaseTexts = {
  snapshot: "Loading", connecting: "Connecting", "catching up": "Catching up", live: "Live",
  waiting: "Not connected", login: "Logged out", stopped: "Stopped",
};
/** Texts for screen readers, the same for all connection attempts. @type {Record<State["phase"], string>} */
const screenReaderTexts = {
  snapshot: "Not connected yet", connecting: "Not connected", "catching up": "Connected, catching up", live: "Live",
  waiting: "Not connected", login: "Logged out", stopped: "Stopped",
};

export function ConnectionLight() {
  const state = useValue(connection);
  useValue(now); // the countdown
  const left = Math.max(0, Math.ceil((state.retryAt - Date.now()) / 1000));
  const lost = state.lostAt ? ` · ${duration((Date.now() - state.lostAt) / 1000)}` : "";
  /** @type {Partial<Record<State["phase"], string>>} */
  const details = {
    waiting: `${state.reason}. Retry in ${left} s${lost}`, connecting: state.reason ? `${state.reason}${lost}` : "",
    "catching up": `${state.replayed} events`, stopped: state.reason, login: state.reason,
  };
  return html`<div id="light" class="light" data-phase=${state.phase}>
    <span class="lamp" aria-hidden="true"></span><span id="phase">${phaseTexts[state.phase]}</span><span class="unseen" role="status">
      ${screenReaderTexts[state.phase]}</span>
    <span class="detail">${details[state.phase] ?? ""}</span>
    ${state.phase === "waiting" && html`<button type="button" onClick=${() => channel.retryNow()}>Reconnect now</button>`}
  </div>`;
}

/** Tells after a disconnect how long it was and how many events were replayed. */
export function Notice() {
  const state = useValue(connection), before = useRef(state), [notice, show] = useState(null);
  useEffect(() => {
    const last = before.current;
    before.current = state;
    if (last.phase === "catching up" && state.phase === "live") show(reconnected(state));
    if (state.phase === "stopped" && state.reason && last.phase !== "stopped") show({ text: state.reason, how: "bad" });
  });
  return html`<div class="notices" role="status">${notice && html`<p id="notice" class="notice" data-how=${notice.how}><span>${notice.text}</span>
    <button type="button" onClick=${() => show(null)}>Close</button></p>`}</div>`;
}

function reconnected(/** @type {State} */ { disconnectedFor, replayed, gap }) {
  const lasted = disconnectedFor < 1000 ? "a moment" : duration(disconnectedFor / 1000), at = time(Date.now());
  if (gap) return { how: "bad", text: `${at}  Reconnected after ${lasted}. Events since the disconnect were no longer available: some were missed, and the floor was loaded again.` };
  const events = replayed === 0 ? "There were no events meanwhile" : `${replayed} event${replayed === 1 ? " was" : "s were"} replayed`;
  return { how: "good", text: `${at}  Reconnected after ${lasted}. ${events}; none was missed.` };
}
