import assert from "node:assert/strict";
import { test } from "node:test";
import { averageWait, rowsAt, handlingTime, occupancy, otherCalls, otherTime, roundUp, sumByInterval, serviceLevel, sum } from "../static/formulas.js";

// The first interval of stats/hand_computed_day_test.go.
const row = {
  queue_id: "support", interval_start: 1795165200, interval_seconds: 900, offered: 3, answered: 2, abandoned: 1, abandoned_short: 1, answered_within: 1,
  transferred: 0, wait_ms_total: 52000, wait_ms_max: 40000, abandon_wait_ms_total: 3000, talk_ms_total: 520000, hold_ms_total: 15000, wrap_up_ms_total: 30000,
};

test("the formulas are those of docs/figures.md", () => {
  assert.equal(serviceLevel(row), 0.5);
  assert.equal(averageWait(row), 26000);
  assert.equal(handlingTime(row), 275000);
  assert.equal(otherCalls(row), 0);
  const agent = { logged_in_ms: 900000, available_ms: 300000, talking_ms: 120000, wrap_up_ms: 30000, break_ms: 400000 };
  assert.equal(occupancy(agent), 150000 / 450000);
  assert.equal(otherTime(agent), 50000);
});

test("without calls or time there is no share", () => {
  const none = sum([]);
  for (const value of [serviceLevel(none), averageWait(none), handlingTime(none), occupancy({ talking_ms: 0, wrap_up_ms: 0, available_ms: 0 })]) assert.ok(Number.isNaN(value));
  assert.ok(Number.isNaN(serviceLevel({ ...none, offered: 2, abandoned_short: 2 })));
});

test("a sum has the counts added, and the highest longest wait", () => {
  const total = sum([row, { ...row, offered: 5, wait_ms_max: 61000 }]);
  assert.equal(total.offered, 8);
  assert.equal(total.wait_ms_max, 61000);
  assert.equal(serviceLevel(total), 2 / 6);
});

test("only the row of the day that goes on is today's", () => {
  const day = (start) => ({ interval_start: start, interval_seconds: 86400 });
  const now = (1795132800 + 3600) * 1000; // an hour after a midnight
  assert.deepEqual(rowsAt([day(1795132800), day(1795132800 - 86400)], now), [day(1795132800)]);
});

test("a series has every interval, with all queues added up", () => {
  const later = { ...row, interval_start: row.interval_start + 1800 };
  const all = sumByInterval([row, { ...row, queue_id: "sales" }, later], row.interval_start - 900, 900, (row.interval_start + 1900) * 1000);
  assert.deepEqual(all.map(({ interval_start, offered }) => [interval_start - row.interval_start, offered]), [[-900, 0], [0, 6], [900, 0], [1800, 3]]);
});

test("axes end at round numbers", () => {
  assert.deepEqual([0, 1, 2, 3, 5, 7, 12, 41, 100, 101].map(roundUp), [1, 1, 2, 4, 5, 10, 20, 50, 100, 200]);
});
