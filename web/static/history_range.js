/** Ranges of days in the browser's time zone, as the addresses of the History page name them. */

const dayMS = 86_400_000;

/** @type {Record<string, string>} */
export const rangeNames = {
  today: "Today", yesterday: "Yesterday", week: "This week", lastweek: "Last week", days7: "Last 7 days", days30: "Last 30 days", month: "This month", lastmonth: "Last month", custom: "Other dates",
};

/**
 * The range of an address: start and end in Unix seconds, the end excluded.
 * @param {URLSearchParams} query with range, or from and to: 2026-11-25 (to: its end) or 2026-11-25T09:15
 * @param {number} now ms
 */
export function rangeOf(query, now) {
  const name = query.get("from") ? "custom" : Object.hasOwn(rangeNames, query.get("range") ?? "") ? query.get("range") ?? "" : "today";
  const today = new Date(now);
  today.setHours(0, 0, 0, 0);
  const day = (/** @type {number} */ n) => shifted(today, n), month = (/** @type {number} */ n) => new Date(today.getFullYear(), today.getMonth() + n, 1);
  const monday = -((today.getDay() + 6) % 7);
  const [start, end] = {
    today: [today, day(1)], yesterday: [day(-1), today], week: [day(monday), day(1)], lastweek: [day(monday - 7), day(monday)], days7: [day(-6), day(1)], days30: [day(-29), day(1)],
    month: [month(0), day(1)], lastmonth: [month(-1), month(0)], custom: custom(query, today),
  }[name] ?? [today, day(1)];
  const days = (end.getTime() - start.getTime()) / dayMS, chosen = Number(query.get("interval"));
  return { name, start: start.getTime() / 1000, end: end.getTime() / 1000, interval: [900, 3600, 86400].includes(chosen) ? chosen : days <= 0.2 ? 900 : days <= 2.1 ? 3600 : 86400 };
}

function custom(/** @type {URLSearchParams} */ query, /** @type {Date} */ today) {
  const parse = (/** @type {string|null} */ text) => text ? new Date(text.length === 10 ? `${text}T00:00` : text) : today;
  const start = parse(query.get("from")), to = query.get("to"), end = parse(to), whole = !to || to.length === 10;
  if (!Number.isFinite(start.getTime()) || !Number.isFinite(end.getTime())) return [today, shifted(today, 1)];
  const until = whole ? shifted(end, 1) : end;
  return until > start ? [start, until] : [start, shifted(start, 1)];
}

/** The same time of day some days later, also over a change of the clock. */
export function shifted(/** @type {Date} */ at, /** @type {number} */ days) {
  const other = new Date(at);
  other.setDate(other.getDate() + days);
  return other;
}

/** The range a week before. @template {{start: number, end: number}} R @param {R} range @returns {R} */
export function weekBefore(range) {
  const before = (/** @type {number} */ seconds) => shifted(new Date(seconds * 1000), -7).getTime() / 1000;
  return { ...range, start: before(range.start), end: before(range.end) };
}

/** 2026-11-25, or 2026-11-25T09:15 with a time, for an address or a field. */
export function localText(/** @type {number} */ seconds, /** @type {boolean} */ withTime = false) {
  const at = new Date(seconds * 1000);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60e3).toISOString().slice(0, withTime ? 16 : 10);
}
