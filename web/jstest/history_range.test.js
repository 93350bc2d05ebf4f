import assert from "node:assert/strict";
import { test } from "node:test";
import { localText, rangeOf, weekBefore } from "../static/history_range.js";

process.env.TZ = "Europe/Berlin";
const now = new Date("2026-11-26T15:30").getTime(); // a Thursday
const range = (/** @type {string} */ query) => rangeOf(new URLSearchParams(query), now);
const days = (/** @type {{start: number, end: number}} */ { start, end }) => [localText(start), localText(end - 1)];

test("ranges are whole days of the browser's time zone", () => {
  for (const [query, first, last] of [["", "2026-11-26", "2026-11-26"], ["range=yesterday", "2026-11-25", "2026-11-25"], ["range=week", "2026-11-23", "2026-11-26"],
    ["range=lastweek", "2026-11-16", "2026-11-22"], ["range=days30", "2026-10-28", "2026-11-26"], ["range=lastmonth", "2026-10-01", "2026-10-31"],
    ["from=2026-11-01&to=2026-11-03", "2026-11-01", "2026-11-03"], ["from=nonsense&to=2026-11-03", "2026-11-26", "2026-11-26"], ["range=nonsense", "2026-11-26", "2026-11-26"]]) {
    assert.deepEqual(days(range(query)), [first, last], query);
  }
  assert.deepEqual(range("from=2026-11-25T09:15&to=2026-11-25T10:00"), { name: "custom", start: new Date("2026-11-25T09:15").getTime() / 1000, end: new Date("2026-11-25T10:00").getTime() / 1000, interval: 900 });
});

test("a week before is the same days of the week, also over a change of the clock", () => {
  const autumn = weekBefore(range("from=2026-10-26&to=2026-10-26"));
  assert.deepEqual(days(autumn), ["2026-10-19", "2026-10-19"]);
  assert.equal(range("from=2026-10-25&to=2026-10-25").end - range("from=2026-10-25&to=2026-10-25").start, 25 * 3600);
  assert.deepEqual(days(weekBefore(range("range=yesterday"))), ["2026-11-18", "2026-11-18"]);
});

test("intervals follow the length, unless one is chosen", () => {
  assert.deepEqual(["", "range=yesterday", "range=days30", "range=days30&interval=3600", "interval=7"].map((query) => range(query).interval), [3600, 3600, 86400, 3600, 3600]);
});
