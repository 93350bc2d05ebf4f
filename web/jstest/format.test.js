import assert from "node:assert/strict";
import { test } from "node:test";
import { duration, typeName, eventName, userPart, milliseconds, callableNumbers, rate, summary, displayText } from "../static/format.js";

test("times", () => {
  assert.deepEqual([-1, 7, 760, 11_100].map(duration), ["0:00", "0:07", "12:40", "3:05:00"]);
  assert.deepEqual([8.4, 1200, 14_000, NaN].map(milliseconds), ["8 ms", "1.2 s", "14 s", "–"]);
  assert.deepEqual([0, 0.44, 12.2, 1300].map(rate), ["0", "0.4", "12", "1.3k"]);
});

test("words", () => {
  assert.equal(userPart("1002@pbx.example.com"), "1002");
  assert.equal(userPart("@odd"), "@odd");
  assert.equal(displayText("wrap_up"), "Wrap up");
  assert.equal(typeName("AGENT_BREAK_START"), "Break start");
});

test("an event is shown by its facts alone", () => {
  const facts = { name: "queue.call_answered", agent_id: "1002@x.y", queue_id: "q@x.y", call_id: "c", caller: "+12025550104", callee: "q",
    state: "talking", wait_ms: 12_000 };
  const message = { type: "svc_cc_queue_on_call_event", data: { state: "another", agent_id: "9" }, metadata: { queue_id: "q@x.y", facts } };
  assert.equal(eventName(message), "Queue call answered");
  assert.equal(summary(message), "agent 1002 · q · talking · waited 0:12 · c");
  assert.equal(summary({ metadata: { facts: { name: "agent.break_start", agent_id: "7", agent_name: "Ada", state: "break", reason: "lunch" } } }), "agent Ada · break · lunch");
  assert.deepEqual(callableNumbers(message), ["+12025550104"]);
  assert.equal(eventName({ type: "AGENT_PERFORMANCE", metadata: { facts: { name: "other" } } }), "Performance");
});

test("an event from before there were facts is shown by its type", () => {
  for (const metadata of [undefined, null, {}, { facts: null }, { facts: { name: 7 } }]) {
    const message = { type: "AGENT_LOGIN", data: { agent_id: "7" }, metadata };
    assert.deepEqual([eventName(message), summary(message), callableNumbers(message)], ["Login", "", []]);
  }
  assert.equal(summary({ type: "AGENT_LOGIN", metadata: { queue_id: "q@x.y" } }), "q");
});
