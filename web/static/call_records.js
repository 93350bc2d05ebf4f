/** Call records: one by its origination id, or those of a time range. */
import { runAction, copyButton, el, setText } from "./dom.js";
import { date, duration, shorten } from "./format.js";

/** The order of a record's fields; others follow them. */
const order = ["origination_call_id", "call_id", "interaction_id", "direction", "from", "to", "caller_id_name", "caller_id_number",
  "callee_id_name", "callee_id_number", "timestamp", "answered_time", "ended_time", "duration_seconds", "billing_seconds",
  "ringing_seconds", "hangup_cause", "presence_id", "other_leg_call_id", "recording_id", "media_server", "queue_id", "agent_id", "account_id", "id"];
const times = new Set(["timestamp", "answered_time", "ended_time"]);

export class CallRecordSearch {
  #session; #parts; #dial;

  /**
   * @param {import("./session.js").Session} session
   * @param {{form: HTMLFormElement, button: HTMLButtonElement, output: Element, result: Element}} parts
   * @param {(number: string) => void} dial
   */
  constructor(session, parts, dial) {
    this.#session = session;
    this.#parts = parts;
    this.#dial = dial;
    this.#setDefaultRange();
    parts.form.addEventListener("submit", (event) => {
      event.preventDefault();
      runAction(parts.button, parts.output, () => this.#search());
    });
  }

  /** Finds a call that was just placed. */
  find(/** @type {string} */ id) {
    this.#field("by").value = "origination_call_id";
    this.#field("value").value = id;
    this.#setDefaultRange();
    this.#parts.form.requestSubmit();
    this.#field("value").focus();
  }

  #setDefaultRange() {
    const now = new Date();
    this.#field("from").value = datetimeLocal(new Date(now.getTime() - 24 * 3600e3));
    this.#field("until").value = datetimeLocal(new Date(now.getTime() + 3600e3));
  }

  /** @returns {HTMLInputElement} */
  #field(/** @type {string} */ name) { return /** @type {any} */ (this.#parts.form.elements.namedItem(name)); }

  async #search() {
    const start = Date.parse(this.#field("from").value) / 1000, end = Date.parse(this.#field("until").value) / 1000;
    if (!Number.isFinite(start) || !Number.isFinite(end)) throw new Error("Enter both ends of the range");
    const query = new URLSearchParams({ startDate: String(Math.floor(start)), endDate: String(Math.floor(end)) });
    const value = this.#field("value").value.trim();
    if (value) query.set(this.#field("by").value, value);
    this.#parts.result.replaceChildren();
    const account = this.#field("account").value.trim() || undefined;
    const found = await this.#session.request(`/api/v2/reports/cdrs?${query}`, { account });
    if (Array.isArray(found.data)) this.#list(found, query, account);
    else {
      this.#parts.result.append(this.#record(found));
      setText(this.#parts.output, "One call found.");
    }
  }

  /** @param {{data: any[], next_start_key?: string}} page @param {URLSearchParams} query @param {string|undefined} account */
  #list(page, query, account) {
    const rows = el("tbody");
    const scroll = el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Call records" }, el("table", {},
      el("thead", {}, el("tr", {}, ...["Start", "From", "To", "Length", "Cause", ""].map((name) => el("th", { scope: "col" }, name)))), rows));
    const more = el("button", { type: "button", class: "quiet" }, "More");
    const add = (/** @type {typeof page} */ { data, next_start_key }) => {
      rows.append(...data.map((row) => this.#row(row)));
      more.hidden = !next_start_key;
      if (next_start_key) query.set("start_key", next_start_key);
      setText(this.#parts.output, rows.children.length ? `${rows.children.length} calls${next_start_key ? ", and more" : ""}.` : "No calls in this range.");
    };
    more.addEventListener("click", () => runAction(more, this.#parts.output, async () =>
      add(await this.#session.request(`/api/v2/reports/cdrs?${query}`, { account }))));
    if (page.data.length) this.#parts.result.append(scroll, more);
    add(page);
  }

  #row(/** @type {any} */ row) {
    const details = el("button", { type: "button", class: "quiet", onclick: () => {
      this.#parts.result.querySelector(".record")?.remove();
      const record = this.#record(row);
      this.#parts.result.append(record);
      record.focus();
    } }, "Details");
    details.setAttribute("aria-label", `Details of ${row.call_id}`);
    return el("tr", {}, el("td", {}, date(row.timestamp)), el("td", {}, row.from ?? ""), el("td", {}, row.to ?? ""),
      el("td", { class: "clock" }, row.duration_seconds === undefined ? "" : duration(row.duration_seconds)),
      el("td", {}, row.hangup_cause ?? ""), el("td", {}, details));
  }

  #record(/** @type {any} */ row) {
    const names = [...order.filter((name) => name in row), ...Object.keys(row).filter((name) => !order.includes(name))];
    const value = (/** @type {string} */ name) => {
      const v = row[name];
      if (times.has(name)) return date(v);
      return typeof v === "object" ? JSON.stringify(v) : String(v);
    };
    const numbers = [...new Set([row.from, row.to].filter((n) => typeof n === "string" && /^\+?\d{2,20}$/.test(n)))];
    return el("section", { class: "record", tabindex: "-1", "aria-label": `Call ${shorten(row.call_id ?? "")}` },
      el("dl", { class: "facts" }, ...names.flatMap((name) => [el("dt", {}, name), el("dd", {}, value(name))])),
      el("p", { class: "actions" }, copyButton("Copy JSON", () => JSON.stringify(row)),
        ...numbers.map((number) => el("button", { type: "button", class: "quiet", onclick: () => this.#dial(number) }, `Call ${number}`))));
  }
}

/** Formats a time for an input of the type datetime-local. */
function datetimeLocal(/** @type {Date} */ at) {
  return new Date(at.getTime() - at.getTimezoneOffset() * 60e3).toISOString().slice(0, 16);
}
