/**
 * Computes the figures of the Figures page from rows of the reports of queues and agents, by the
 * formulas of docs/figures.md.
 */

/** @typedef {Record<string, any>} Row of /api/v2/reports/queues or …/agents */

const counts = ["offered", "answered", "abandoned", "abandoned_short", "answered_within", "transferred",
  "wait_ms_total", "abandon_wait_ms_total", "talk_ms_total", "hold_ms_total", "wrap_up_ms_total"];

/** The rows whose interval contains now. @returns {Row[]} */
export function rowsAt(/** @type {Row[]} */ rows, /** @type {number} */ now) {
  return rows.filter((row) => row.interval_start * 1000 <= now && now < (row.interval_start + row.interval_seconds) * 1000);
}

/** The sum of rows of queues. @returns {Row} */
export function sum(/** @type {Row[]} */ rows) {
  /** @type {Row} */
  const total = { wait_ms_max: 0 };
  for (const name of counts) total[name] = 0;
  for (const row of rows) {
    for (const name of counts) total[name] += row[name] ?? 0;
    total.wait_ms_max = Math.max(total.wait_ms_max, row.wait_ms_max ?? 0);
  }
  return total;
}

const fraction = (/** @type {number} */ n, /** @type {number} */ total) => total > 0 ? n / total : NaN;

/** The fraction answered in time, without short abandons; NaN: no calls count. */
export function serviceLevel(/** @type {Row} */ row) { return fraction(row.answered_within, row.offered - row.abandoned_short); }

/** Mean wait of answered calls, ms; NaN: none. */
export function averageWait(/** @type {Row} */ row) { return fraction(row.wait_ms_total, row.answered); }

/** Mean handling time of answered calls, ms; NaN: none. */
export function handlingTime(/** @type {Row} */ row) { return fraction(row.talk_ms_total + row.wrap_up_ms_total, row.answered); }

/** Calls neither answered nor abandoned: waiting, or ended otherwise. */
export function otherCalls(/** @type {Row} */ row) { return Math.max(0, row.offered - row.answered - row.abandoned); }

/** Talking and wrap-up time as a fraction of that plus available time; NaN: none. */
export function occupancy(/** @type {Row} */ row) {
  const busy = row.talking_ms + row.wrap_up_ms;
  return fraction(busy, busy + row.available_ms);
}

/** The rest of an agent's time: ringing and other states, ms. */
export function otherTime(/** @type {Row} */ row) {
  return Math.max(0, row.logged_in_ms - row.available_ms - row.talking_ms - row.wrap_up_ms - row.break_ms);
}

/**
 * The sum of all queues for each interval from start to now, the last of which is incomplete.
 * @param {Row[]} rows of length seconds
 * @param {number} start Unix seconds
 * @param {number} seconds
 * @param {number} now ms
 * @returns {Row[]}
 */
export function sumByInterval(rows, start, seconds, now) {
  /** @type {Map<number, Row[]>} */
  const at = new Map();
  for (const row of rows) {
    const list = at.get(row.interval_start);
    if (list) list.push(row);
    else at.set(row.interval_start, [row]);
  }
  const first = Math.min(start, ...at.keys()), all = [];
  for (let t = first; t * 1000 <= now && all.length < 200; t += seconds) {
    all.push({ ...sum(at.get(t) ?? []), interval_start: t, interval_seconds: seconds });
  }
  return all;
}

/** A round number at or above n, for the top of an axis: 1, 2, 4, 5, 10, 20, 40 … */
export function roundUp(/** @type {number} */ n) {
  if (!(n > 1)) return 1;
  const ten = 10 ** Math.floor(Math.log10(n));
  return [1, 2, 4, 5, 10].map((step) => step * ten).find((top) => top >= n) ?? n;
}

/** 83 %, – */
export function percent(/** @type {number} */ part) { return Number.isFinite(part) ? `${Math.round(part * 100)} %` : "–"; }
