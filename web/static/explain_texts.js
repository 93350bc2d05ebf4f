/** The texts of explanations. */
import { date } from "./format.js";

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
