import assert from "node:assert/strict";
import { test } from "node:test";
import { numbersIn, summary } from "../static/feed.js";
import { duration, kind, local, milliseconds, rate, tone, word } from "../static/show.js";

test("times", () => {
  assert.deepEqual([-1, 7, 760, 11_100].map(duration), ["0:00", "0:07", "12:40", "3:05:00"]);
  assert.deepEqual([8.4, 1200, 14_000, NaN].map(milliseconds), ["8 ms", "1.2 s", "14 s", "–"]);
  assert.deepEqual([0, 0.44, 12.2, 1300].map(rate), ["0", "0.4", "12", "1.3k"]);
});

test("words", () => {
  assert.equal(local("1002@pbx.example.com"), "1002");
  assert.equal(local("@odd"), "@odd");
  assert.equal(word("in_a_queue_call"), "In a queue call");
  assert.equal(kind("AGENT_BREAK_START"), "Break start");
});

test("tones of the sources' words", () => {
  const want = [["Waiting", "Available", "available"], ["Idle", "Available", "wrap"], ["idle", "logged_in", "available"],
    ["Waiting", "On Break", "break"], ["In a queue call", "Available", "talking"], ["ringing", "", "ringing"],
    ["wrap-up", "logged_in", "wrap"], ["paused", "", "break"], ["constructor", "__proto__", "other"], ["", "", "other"]];
  for (const [state, status, tone_] of want) assert.equal(tone({ state, status }), tone_, `${state}/${status}`);
});

test("an event of any shape has a summary", () => {
  for (const data of [undefined, null, 1, "x", [], {}, { data: null }, { history: [null] }, { history: "x" }, { CDR: 3 }, { data: { agent_id: 7 } }]) {
    assert.equal(typeof summary({ data, metadata: null }), "string");
    assert.ok(Array.isArray(numbersIn(data)));
  }
  assert.equal(summary({ data: { "CC-Agent": "7@x.y", "CC-Action": "agent-offering" }, metadata: { queue_id: "q@x.y" } }), "agent 7 · q · agent-offering");
  assert.deepEqual(numbersIn({ "CC-Member-CID-Number": "+12025550104" }), ["+12025550104"]);
});
