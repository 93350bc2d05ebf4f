import assert from "node:assert/strict";
import { test } from "node:test";
import { EventRates, quantile } from "../static/event_rates.js";
import { knownRuns } from "../static/plot.js";

test("events are counted by the second, and forgotten", () => {
  const rates = new EventRates(), start = 1_000_000_000;
  rates.recent(start);
  for (let ms = 0; ms < 10_000; ms += 250) rates.count(start + ms, 7);
  assert.deepEqual(rates.recent(start + 10_000), { rate: 4, median: 7, p95: 7 });
  assert.equal(rates.rates(start + 10_000).filter((n) => n === 4).length, 10);
  assert.ok(Number.isNaN(rates.rates(start + 10_000)[0]), "nothing is known of before");
  assert.equal(rates.rates(start + 60_000).reduce((a, b) => a + (b || 0), 0), 40);
  assert.equal(rates.rates(start + 600_000).reduce((a, b) => a + b, 0), 0);
});

test("what was caught up has no delay, and no delay is below nothing", () => {
  const rates = new EventRates();
  rates.count(5000, NaN);
  assert.ok(Number.isNaN(rates.recent(6000).median));
  rates.count(6000, -3);
  assert.equal(rates.recent(7000).median, 0);
});

test("quantiles", () => {
  assert.ok(Number.isNaN(quantile([], 0.5)));
  assert.equal(quantile([3, 1, 2], 0.5), 2);
  assert.equal(quantile([1, 2, 3, 4], 1), 4);
});

test("a line goes over what is missing for a moment, and breaks over a break", () => {
  const gap = (n) => new Array(n).fill(NaN);
  assert.deepEqual(knownRuns([NaN, 1, NaN, 2, ...gap(9), 3]), [[1, 3], [13]]);
  assert.deepEqual(knownRuns(gap(5)), []);
});
