import assert from "node:assert/strict";
import { test } from "node:test";
import { closeCodeIn, jitter, endingOfClose, endingOfStatus, backoff } from "../static/reconnect.js";

test("close codes do what docs/channel.md says", () => {
  const want = { 1001: "retry", 1006: "retry", 1008: "stop", 1011: "retry", 1012: "reconnect", 4001: "login", 4003: "stop", 4008: "retry", 4009: "stop" };
  for (const [code, action] of Object.entries(want)) assert.equal(endingOfClose(Number(code)).action, action, code);
});

test("refusals do what docs/channel.md says", () => {
  const want = { 400: "restart", 401: "login", 403: "stop", 410: "restart", 429: "retry", 500: "retry", 503: "retry" };
  for (const [status, action] of Object.entries(want)) assert.equal(endingOfStatus(Number(status)).action, action, status);
  assert.equal(endingOfStatus(503, 7000).retryAfter, 7000);
});

test("a stream says in a comment why it ends", () => {
  assert.equal(closeCodeIn(" 1012 restart; last cc_evt_1"), 1012);
  assert.equal(closeCodeIn(""), 0);
  assert.equal(closeCodeIn(" keep alive"), 0);
});

test("pauses grow, are bounded, and differ", () => {
  assert.equal(backoff(1, () => 1), 500);
  assert.equal(backoff(3, () => 1), 2000);
  assert.equal(backoff(100, () => 1), 30_000);
  assert.equal(backoff(100, () => 0), 15_000);
  assert.ok(jitter(() => 0) > 0 && jitter(() => 1) <= 1000);
});
