import assert from "node:assert/strict";
import { test } from "node:test";
import { codeOf, jitter, ofClose, ofStatus, pause } from "../static/endings.js";

test("close codes do what docs/channel.md says", () => {
  const want = { 1001: "again", 1006: "again", 1008: "stay", 1011: "again", 1012: "soon", 4001: "login", 4003: "stay", 4008: "again", 4009: "stay" };
  for (const [code, then] of Object.entries(want)) assert.equal(ofClose(Number(code)).then, then, code);
});

test("refusals do what docs/channel.md says", () => {
  const want = { 400: "restart", 401: "login", 403: "stay", 410: "restart", 429: "again", 500: "again", 503: "again" };
  for (const [status, then] of Object.entries(want)) assert.equal(ofStatus(Number(status)).then, then, status);
  assert.equal(ofStatus(503, 7000).after, 7000);
});

test("a stream says in a comment why it ends", () => {
  assert.equal(codeOf(" 1012 restart; last cc_evt_1"), 1012);
  assert.equal(codeOf(""), 0);
  assert.equal(codeOf(" keep alive"), 0);
});

test("pauses grow, are bounded, and differ", () => {
  assert.equal(pause(1, () => 1), 500);
  assert.equal(pause(3, () => 1), 2000);
  assert.equal(pause(100, () => 1), 30_000);
  assert.equal(pause(100, () => 0), 15_000);
  assert.ok(jitter(() => 0) > 0 && jitter(() => 1) <= 1000);
});
