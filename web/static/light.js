/** Shows the state of the connection, as text and colour. */
import { byID, copyButton, setText } from "./dom.js";
import { duration, time } from "./show.js";

/** @typedef {import("./link.js").State} State */

const names = {
  snapshot: "Loading the snapshot", connecting: "Connecting", "catching up": "Catching up", live: "Live",
  waiting: "Not connected", login: "Logged out", stopped: "Stopped",
};

/** Texts for screen readers, the same for all connection attempts. @type {Record<State["phase"], string>} */
const aloud = {
  snapshot: "Not connected yet", connecting: "Not connected", "catching up": "Connected, catching up", live: "Live",
  waiting: "Not connected", login: "Logged out", stopped: "Stopped",
};

export class Light {
  /** @type {?State} */ #state = null;

  constructor() {
    byID("notice-close").addEventListener("click", () => { byID("notice").hidden = true; });
    byID("last-id-copy").append(copyButton("Copy", () => this.#state?.lastID ?? ""));
  }

  show(/** @type {State} */ state) {
    const was = this.#state;
    this.#state = state;
    byID("light").dataset.phase = state.phase;
    setText(byID("phase"), names[state.phase]);
    setText(byID("phase-status"), aloud[state.phase]);
    byID("reconnect").hidden = state.phase !== "waiting";
    setText(byID("transport"), state.transport || "–");
    setText(byID("breaks"), state.breaks);
    if (was?.phase === "catching up" && state.phase === "live") this.#back(state);
    if (state.phase === "stopped" && state.why) this.#notice(state.why, "bad");
    this.tick();
  }

  /** Shows the length of the disconnect and the number of replayed events. */
  #back(/** @type {State} */ { away, caughtUp, gap }) {
    const lasted = away < 1000 ? "a moment" : duration(away / 1000);
    if (gap) return this.#notice(`Reconnected after ${lasted}. Events since the disconnect were no longer available: some were missed, and the floor was loaded again.`, "bad");
    this.#notice(`Reconnected after ${lasted}. ${caughtUp === 0 ? "There were no events meanwhile" : `${caughtUp} event${caughtUp === 1 ? " was" : "s were"} replayed`}; none was missed.`, "good");
  }

  #notice(/** @type {string} */ text, /** @type {"good"|"bad"} */ how) {
    const notice = byID("notice");
    notice.dataset.how = how;
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
      waiting: `${state.why}. Retry in ${left} s${lost}`, connecting: state.why ? `${state.why}${lost}` : "",
      "catching up": `${state.caughtUp} events`, stopped: state.why, login: state.why,
    };
    setText(byID("phase-detail"), details[state.phase] ?? "");
  }
}
