import assert from "node:assert/strict";
import { test } from "node:test";
import { Pulse, quantile } from "../static/pulse.js";
import { runs } from "../static/spark.js";

test("events are counted by the second, and forgotten", () => {
  const pulse = new Pulse(), start = 1_000_000_000;
  pulse.recent(start);
  for (let ms = 0; ms < 10_000; ms += 250) pulse.beat(start + ms, 7);
  assert.deepEqual(pulse.recent(start + 10_000), { rate: 4, median: 7, p95: 7 });
  assert.equal(pulse.rates(start + 10_000).filter((n) => n === 4).length, 10);
  assert.ok(Number.isNaN(pulse.rates(start + 10_000)[0]), "nothing is known of before");
  assert.equal(pulse.rates(start + 60_000).reduce((a, b) => a + (b || 0), 0), 40);
  assert.equal(pulse.rates(start + 600_000).reduce((a, b) => a + b, 0), 0);
});

test("what was caught up has no delay, and no delay is below nothing", () => {
  const pulse = new Pulse();
  pulse.beat(5000, NaN);
  assert.ok(Number.isNaN(pulse.recent(6000).median));
  pulse.beat(6000, -3);
  assert.equal(pulse.recent(7000).median, 0);
});

test("quantiles", () => {
  assert.ok(Number.isNaN(quantile([], 0.5)));
  assert.equal(quantile([3, 1, 2], 0.5), 2);
  assert.equal(quantile([1, 2, 3, 4], 1), 4);
});

test("a line goes over what is missing for a moment, and breaks over a break", () => {
  const gap = (n) => new Array(n).fill(NaN);
  assert.deepEqual(runs([NaN, 1, NaN, 2, ...gap(9), 3]), [[1, 3], [13]]);
  assert.deepEqual(runs(gap(5)), []);
});
