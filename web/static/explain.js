/** For administrators: the source of an event, and its outcome at each client and webhook. */
import { runAction, el, setText } from "./dom.js";
import { date, shorten, displayText } from "./format.js";

export class Explain {
  #session;

  constructor(/** @type {import("./session.js").Session} */ session) {
    this.#session = session;
  }

  /** The button for an event and the element of the answer; empty for users. @returns {Node[]} */
  controls(/** @type {string} */ id) {
    if (this.#session.user?.role !== "admin") return [];
    const output = el("p", { class: "output", role: "status" }), result = el("div");
    const button = el("button", { type: "button", class: "quiet", onclick: () => runAction(button, output, async () => {
      const explanation = await this.#session.request(`/api/v2/events/${encodeURIComponent(id)}/explain`);
      result.replaceChildren(...explanationNodes(explanation));
      setText(output, noteText(explanation));
    }) }, "Explain");
    return [el("p", { class: "actions" }, button), output, result];
  }
}

/** @returns {Node[]} */
function explanationNodes(/** @type {any} */ e) {
  const raw = e.raw.available ? `cc.raw ${e.raw.position}, stored ${date(e.raw.at)}` : "deleted, or the log was cut";
  const nodes = [el("dl", { class: "facts" }, ...[
    ["Raw record", raw], ["Format", `${e.format.name}, from ${e.format.from}`], ["Account", `${e.account.id}, from ${e.account.from}`],
    ...e.facts.map((/** @type {any} */ f) => [f.name, `${typeof f.value === "object" ? JSON.stringify(f.value) : f.value}, from ${f.from}`]),
  ].flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]))];
  const visible = e.connections.filter((/** @type {any} */ c) => c.outcome !== "not_visible");
  if (visible.length) nodes.push(table("Connections", ["User", "Account", "Connected", "Outcome", "Why"], visible.map((/** @type {any} */ c) =>
    [c.username ?? c.user_id ?? c.key_id ?? shorten(c.id), c.account_id, date(c.connected_at), displayText(c.outcome), reasonText(c)])));
  if (e.webhooks.length) nodes.push(table("Webhooks", ["URL", "Outcome", "Why"], e.webhooks.map((/** @type {any} */ w) =>
    [w.url, displayText(w.outcome), w.filtered_by ? mismatchText(w.filtered_by) : w.last_error ?? ""])));
  return nodes;
}

/** @param {string} name @param {string[]} columns @param {string[][]} rows */
function table(name, columns, rows) {
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": name }, el("table", {},
    el("thead", {}, el("tr", {}, ...columns.map((column) => el("th", { scope: "col" }, column)))),
    el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map((text) => el("td", {}, text)))))));
}

/** The reasons for the outcome at a connection. */
export function reasonText(/** @type {any} */ c) {
  if (c.filtered_by) return mismatchText(c.filtered_by);
  const texts = [];
  if (c.resumed_from) texts.push(`resumed after ${c.resumed_from}`);
  if (c.ended_at) texts.push(`ended ${date(c.ended_at)} with ${c.code ?? "no code"} ${c.reason ?? ""}`.trim());
  if (c.ended_at && c.last_event_id) texts.push(`last event ${c.last_event_id}`);
  return texts.join("; ");
}

/** The criteria of a filter. */
export function mismatchText(/** @type {{field: string, admits?: string[], count?: number}} */ { field, admits = [], count = 0 }) {
  if (!count) return `${field} does not select it`;
  return `${field} is ${admits.join(", ")}${count > admits.length ? ` and ${count - admits.length} more` : ""}`;
}

/** Information that is not in the tables. */
export function noteText(/** @type {any} */ e) {
  const texts = [], hidden = e.connection_counts.not_visible ?? 0;
  const all = Object.values(e.connection_counts).reduce((sum, n) => sum + n, 0);
  if (!all) texts.push("No connection is known.");
  if (hidden) texts.push(`${hidden} connections may not see the account.`);
  if (all > e.connections.length) texts.push(`${e.connections.length} of ${all} connections are listed.`);
  if (!e.complete) texts.push("Not all nodes have answered.");
  return texts.join(" ");
}
