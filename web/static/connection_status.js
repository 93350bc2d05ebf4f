/** Shows the state of the connection, as text and colour. */
import { byID, copyButton, setText } from "./dom.js";
import { duration, time } from "./format.js";

/** @typedef {import("./channel_connection.js").State} State */

const phaseTexts = {
  snapshot: "Loading the snapshot", connecting: "Connecting", "catching up": "Catching up", live: "Live",
  waiting: "Not connected", login: "Logged out", stopped: "Stopped",
};

/** Texts for screen readers, the same for all connection attempts. @type {Record<State["phase"], string>} */
const screenReaderTexts = {
  snapshot: "Not connected yet", connecting: "Not connected", "catching up": "Connected, catching up", live: "Live",
  waiting: "Not connected", login: "Logged out", stopped: "Stopped",
};

export class ConnectionStatus {
  /** @type {?State} */ #state = null;

  constructor() {
    byID("notice-close").addEventListener("click", () => { byID("notice").hidden = true; });
    byID("last-id-copy").append(copyButton("Copy", () => this.#state?.lastID ?? ""));
  }

  show(/** @type {State} */ state) {
    const before = this.#state;
    this.#state = state;
    byID("light").dataset.phase = state.phase;
    setText(byID("phase"), phaseTexts[state.phase]);
    setText(byID("phase-status"), screenReaderTexts[state.phase]);
    byID("reconnect").hidden = state.phase !== "waiting";
    setText(byID("transport"), state.transport || "–");
    setText(byID("breaks"), state.disconnects);
    if (before?.phase === "catching up" && state.phase === "live") this.#noticeReconnect(state);
    if (state.phase === "stopped" && state.reason) this.#notice(state.reason, "bad");
    this.tick();
  }

  /** Shows the length of the disconnect and the number of replayed events. */
  #noticeReconnect(/** @type {State} */ { disconnectedFor, replayed, gap }) {
    const lasted = disconnectedFor < 1000 ? "a moment" : duration(disconnectedFor / 1000);
    if (gap) return this.#notice(`Reconnected after ${lasted}. Events since the disconnect were no longer available: some were missed, and the floor was loaded again.`, "bad");
    this.#notice(`Reconnected after ${lasted}. ${replayed === 0 ? "There were no events meanwhile" : `${replayed} event${replayed === 1 ? " was" : "s were"} replayed`}; none was missed.`, "good");
  }

  #notice(/** @type {string} */ text, /** @type {"good"|"bad"} */ tone) {
    const notice = byID("notice");
    notice.dataset.how = tone;
    setText(byID("notice-text"), `${time(Date.now())}  ${text}`);
    notice.hidden = false;
  }

  /** Updates the countdown. */
  tick() {
    const state = this.#state;
    if (!state) return;
    setText(byID("last-id"), state.lastID || "–");
    byID("last-id-copy").hidden = !state.lastID;
    const left = Math.max(0, Math.ceil((state.retryAt - Date.now()) / 1000));
    const lost = state.lostAt ? ` · ${duration((Date.now() - state.lostAt) / 1000)}` : "";
    /** @type {Partial<Record<State["phase"], string>>} */
    const details = {
      waiting: `${state.reason}. Retry in ${left} s${lost}`, connecting: state.reason ? `${state.reason}${lost}` : "",
      "catching up": `${state.replayed} events`, stopped: state.reason, login: state.reason,
    };
    setText(byID("phase-detail"), details[state.phase] ?? "");
  }
}
