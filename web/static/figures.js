/** The Figures page: today's service level, calls by interval, agents' occupancy. */
import { byID, el, setText, syncChildren } from "./dom.js";
import { RequestError } from "./http.js";
import { clock, Plot, shareBar } from "./plot.js";
import { duration, userPart, milliseconds, time } from "./format.js";
import { averageWait, rowsAt, handlingTime, occupancy, otherCalls, otherTime, sumByInterval, serviceLevel, sum } from "./formulas.js";

/** @typedef {import("./formulas.js").Row} Row */

const loadInterval = 4000; // ms between two loads
const maxLoadInterval = 60_000; // ms, after failures
const reloadAge = 3 * 3600; // seconds; intervals of this age are reloaded each time, older ones every fullLoadInterval
const fullLoadInterval = 300_000; // ms
const pageSize = 1000, maxPages = 40;

export class Figures {
  #session; #clock; #nameOf; #plot;
  #shown = false;
  /** @type {ReturnType<typeof setTimeout>|undefined} */ #timer;
  #wait = loadInterval;
  #load = 0; // number of the current load; results of earlier ones are discarded
  /** @type {Map<string, Row>} intervals of queues, by queue and start */ #intervals = new Map();
  #loadedKey = ""; // account and interval length of #intervals
  #fullLoadAt = 0; // time of the last complete load
  #loadedAt = 0;

  /**
   * @param {import("./session.js").Session} session
   * @param {import("./clock.js").Clock} clock
   * @param {(account: string, agent: string) => string} nameOf an agent's name, "" when not known
   */
  constructor(session, clock, nameOf) {
    this.#session = session;
    this.#clock = clock;
    this.#nameOf = nameOf;
    this.#plot = new Plot(byID("calls-plot"), "Calls of today by interval",
      [{ name: "Answered", tone: "answered" }, { name: "Abandoned", tone: "abandoned" }, { name: "Waiting or left otherwise", tone: "others" }]);
    byID("figures-choice").addEventListener("submit", (/** @type {Event} */ event) => { event.preventDefault(); this.#loadNow(); });
    for (const id of ["figures-interval", "figures-queue"]) byID(id).addEventListener("change", () => this.#loadNow());
    byID("figures-account").addEventListener("change", () => { byID("figures-queue").value = ""; this.#loadNow(); });
    byID("figures-retry").addEventListener("click", () => this.#loadNow());
    document.addEventListener("visibilitychange", () => { if (!document.hidden && this.#shown) this.#loadNow(); });
  }

  /** Loads repeatedly while the page is shown. */
  show(/** @type {boolean} */ visible) {
    this.#shown = visible;
    if (visible) this.#loadNow();
    else clearTimeout(this.#timer);
  }

  #loadNow() {
    if (!this.#session.user) return;
    clearTimeout(this.#timer);
    this.#wait = loadInterval;
    this.#loadRepeatedly();
  }

  async #loadRepeatedly() {
    const load = ++this.#load;
    try {
      const loaded = await this.#read();
      if (load !== this.#load) return;
      this.#loadedAt = this.#clock.now();
      this.#draw(loaded);
      this.#wait = loadInterval;
      this.#showError("");
    } catch (error) {
      if (load !== this.#load) return;
      this.#wait = Math.min(maxLoadInterval, this.#wait * 2);
      const since = this.#loadedAt ? ` These are the figures of ${time(this.#loadedAt)}.` : "";
      this.#showError(`${error instanceof Error ? error.message : error}.${since}`);
      if (error instanceof RequestError && error.status >= 400 && error.status < 429) return; // a retry would fail in the same way
    }
    if (this.#shown && !document.hidden) this.#timer = setTimeout(() => this.#loadRepeatedly(), this.#wait);
  }

  /** Shows an error; "": none. */
  #showError(/** @type {string} */ text) {
    byID("figures-error").hidden = text === "";
    setText(byID("figures-error-text"), text);
    byID("figures-page").classList.toggle("old", text !== "");
  }

  async #read() {
    const account = byID("figures-account").value.trim() || undefined, seconds = Number(byID("figures-interval").value);
    const now = this.#clock.now(), end = Math.floor(now / 1000);
    const days = { startDate: end - 26 * 3600, endDate: end, interval: 86400 }; // a day has up to 25 hours
    const [queues, agents] = await Promise.all([this.#rows("queues", days, account), this.#rows("agents", days, account)])
      .then((both) => both.map((rows) => rowsAt(rows, now)));
    const start = queues[0]?.interval_start ?? midnight(now);
    const key = `${account ?? ""} ${seconds} ${start}`;
    if (key !== this.#loadedKey || now - this.#fullLoadAt > fullLoadInterval) {
      const rows = await this.#rows("queues", { startDate: start, endDate: end, interval: seconds }, account);
      this.#loadedKey = key;
      this.#fullLoadAt = now;
      this.#intervals = new Map(rows.map((row) => [`${row.interval_start} ${row.queue_id}`, row]));
    } else {
      const from = Math.max(start, end - end % 3600 - reloadAge);
      for (const row of await this.#rows("queues", { startDate: from, endDate: end, interval: seconds }, account)) {
        this.#intervals.set(`${row.interval_start} ${row.queue_id}`, row);
      }
    }
    return { queues, agents, start, seconds, now };
  }

  /** @param {string} kind @param {Record<string, number>} range @param {string|undefined} account @returns {Promise<Row[]>} */
  async #rows(kind, range, account) {
    /** @type {Row[]} */
    const all = [];
    let key = "";
    for (let page = 0; page < maxPages; page++) {
      const query = new URLSearchParams({ ...Object.fromEntries(Object.entries(range).map(([name, n]) => [name, String(n)])), page_size: String(pageSize) });
      if (key) query.set("start_key", key);
      const response = await this.#session.request(`/api/v2/reports/${kind}?${query}`, { account });
      all.push(...response.data);
      key = response.next_start_key ?? "";
      if (!key) return all;
    }
    throw new Error("Too many queues for this page: choose longer intervals");
  }

  /** @param {{queues: Row[], agents: Row[], start: number, seconds: number, now: number}} loaded */
  #draw({ queues, agents, start, seconds, now }) {
    const chosen = this.#offerQueues(queues);
    const wanted = chosen === "" ? queues : queues.filter((row) => row.queue_id === chosen);
    this.#drawDay(sum(wanted));
    this.#drawQueues(queues);
    const rows = [...this.#intervals.values()].filter((row) => chosen === "" || row.queue_id === chosen);
    this.#drawCalls(sumByInterval(rows, start, seconds, now));
    this.#drawAgents(agents);
    byID("figures-empty").hidden = queues.length > 0 || agents.length > 0;
    setText(byID("figures-at"), `As of ${time(now)}`);
  }

  /** Lists the queues to choose from, and returns the chosen one; "": all. */
  #offerQueues(/** @type {Row[]} */ queues) {
    const select = byID("figures-queue"), before = select.value;
    const ids = queues.map((row) => row.queue_id);
    if (before !== "" && !ids.includes(before)) ids.push(before);
    syncChildren(select, ["", ...ids.sort()], (id) => id, (id) => el("option", { value: id }, id === "" ? "All queues" : userPart(id)), () => {});
    select.value = before;
    return before;
  }

  #drawDay(/** @type {Row} */ day) {
    const level = serviceLevel(day);
    setText(byID("day-level"), percent(level));
    setText(byID("day-level-sub"), Number.isFinite(level) ? `${day.answered_within} of ${day.offered - day.abandoned_short} in time` : "no calls yet");
    byID("day-level-bar").replaceChildren(Number.isFinite(level)
      ? shareBar([{ tone: "answered", part: level }, { tone: "free", part: 1 - level }], `${percent(level)} of 100 %`) : "");
    setText(byID("day-offered"), day.offered);
    setText(byID("day-answered"), day.answered);
    setText(byID("day-answered-sub"), day.answered ? `after ${milliseconds(averageWait(day))} on average` : "\u00a0");
    setText(byID("day-abandoned"), day.abandoned);
    setText(byID("day-abandoned-sub"), day.offered ? `${percent(day.abandoned / day.offered)} of calls` : "\u00a0");
    setText(byID("day-longest"), day.wait_ms_max ? duration(day.wait_ms_max / 1000) : "–");
  }

  #drawQueues(/** @type {Row[]} */ queues) {
    const rows = [...queues].sort((a, b) => b.offered - a.offered || (a.queue_id < b.queue_id ? -1 : 1));
    byID("queues-empty").hidden = rows.length > 0;
    byID("queues-table").hidden = rows.length === 0;
    table(byID("queue-rows"), rows, (row) => row.queue_id, (row) => {
      const level = serviceLevel(row);
      return [userPart(row.queue_id), percent(level),
        Number.isFinite(level) ? shareBar([{ tone: "answered", part: level }, { tone: "free", part: 1 - level }], "") : "",
        row.offered, row.answered, row.abandoned, milliseconds(averageWait(row)), formatTime(handlingTime(row)), duration(row.wait_ms_max / 1000)];
    });
  }

  #drawCalls(/** @type {Row[]} */ intervals) {
    const until = (/** @type {Row} */ row) => `${clock(row.interval_start)}–${clock(row.interval_start + row.interval_seconds)}`;
    const bars = intervals.map((row) => ({
      start: row.interval_start, row, values: [row.answered, row.abandoned, otherCalls(row)],
      text: `${until(row)}: ${row.offered} offered, ${row.answered} answered, ${row.abandoned} abandoned, service level ${percent(serviceLevel(row))}`,
    }));
    const all = sum(intervals), most = intervals.reduce((/** @type {?Row} */ best, row) => row.offered > (best?.offered ?? 0) ? row : best, null);
    this.#plot.draw(bars, most ? `${all.offered} offered, ${all.answered} answered, ${all.abandoned} abandoned; most from ${until(most)}, ${most.offered}.` : "No calls yet.");
    if (byID("calls-numbers").open || !byID("calls-table").firstChild) {
      byID("calls-table").replaceChildren(this.#plot.table(["Interval", "Offered", "Answered", "Abandoned", "Service level"], (/** @type {any} */ { row }) =>
        [until(row), row.offered, row.answered, row.abandoned, percent(serviceLevel(row))]));
    }
  }

  #drawAgents(/** @type {Row[]} */ agents) {
    const order = (/** @type {Row} */ row) => Number.isFinite(occupancy(row)) ? occupancy(row) : -1;
    const rows = [...agents].sort((a, b) => order(b) - order(a) || (a.agent_id < b.agent_id ? -1 : 1));
    byID("occupancy-empty").hidden = rows.length > 0;
    byID("occupancy-table").hidden = rows.length === 0;
    table(byID("agent-rows"), rows, (row) => row.agent_id, (row) => {
      const parts = [{ tone: "talking", part: row.talking_ms }, { tone: "wrap_up", part: row.wrap_up_ms }, { tone: "available", part: row.available_ms },
        { tone: "break", part: row.break_ms }, { tone: "others", part: otherTime(row) }];
      return [this.#nameOf(row.account_id, row.agent_id) || userPart(row.agent_id), percent(occupancy(row)), shareBar(parts, ""), formatTime(row.talking_ms), formatTime(row.wrap_up_ms),
        formatTime(row.available_ms), formatTime(row.break_ms), formatTime(row.logged_in_ms), row.answered];
    });
  }
}

/** Fills the body of a table; the first cell of a row is its heading. @param {Element} body @param {Row[]} rows @param {(row: Row) => string} key @param {(row: Row) => any[]} cells */
function table(body, rows, key, cells) {
  syncChildren(body, rows, key, () => el("tr"), (tr, row) => {
    cells(row).forEach((cell, i) => {
      const td = tr.children[i] ?? tr.appendChild(el(i === 0 ? "th" : "td", i === 0 ? { scope: "row", title: key(row) } : {}));
      if (cell instanceof Node) td.replaceChildren(cell);
      else setText(td, cell);
    });
  });
}

/** 83 %, – */
function percent(/** @type {number} */ part) { return Number.isFinite(part) ? `${Math.round(part * 100)} %` : "–"; }

/** Minutes and seconds of ms, – for NaN. */
function formatTime(/** @type {number} */ ms) { return Number.isFinite(ms) ? duration(ms / 1000) : "–"; }

/** Midnight by the browser's clock, Unix seconds. */
function midnight(/** @type {number} */ now) { return Math.floor(new Date(now).setHours(0, 0, 0, 0) / 1000); }
