import assert from "node:assert/strict";
import { test } from "node:test";
import { Clock } from "../static/clock.js";

test("a clock that may be right is believed", () => {
  const clock = new Clock();
  assert.equal(clock.offset, 0);
  for (let at = 1_000_000; at < 1_010_000; at += 130) clock.observe(Math.floor((at + 20) / 1000), at, at + 40);
  assert.equal(clock.offset, 0);
});

test("a clock that is wrong is corrected, the better the more samples there are", () => {
  const clock = new Clock(), off = -90_000;
  for (let at = 1_000_000; at < 1_010_000; at += 130) clock.observe(Math.floor((at + 20 + off) / 1000), at, at + 40);
  assert.ok(Math.abs(clock.offset - off) < 250, String(clock.offset));
});

test("a clock that is set anew is followed, and nonsense is not", () => {
  const clock = new Clock();
  clock.observe(1000, 1_000_100, 1_000_200);
  clock.observe(NaN, 1, 2);
  clock.observe(2000, 1_000_100, 1_000_200);
  assert.ok(clock.offset > 999_000);
});
