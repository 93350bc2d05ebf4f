import assert from "node:assert/strict";
import { test } from "node:test";
import { mismatchText, noteText, reasonText } from "../static/explain_texts.js";

test("why a connection did not get an event", () => {
  assert.equal(reasonText({ outcome: "filtered", filtered_by: { field: "queue_ids", admits: ["sales"], count: 1 } }), "queue_ids is sales");
  assert.equal(mismatchText({ field: "call_ids", admits: ["a", "b"], count: 5 }), "call_ids is a, b and 3 more");
  assert.equal(mismatchText({ field: "event_types" }), "event_types does not select it");
  assert.equal(reasonText({ outcome: "delivered", resumed_from: "earliest" }), "resumed after earliest");
  assert.match(reasonText({ outcome: "dropped", ended_at: 1795193617.9, code: 4008, reason: "too slow", last_event_id: "cc_evt_1" }),
    /^ended .+ with 4008 too slow; last event cc_evt_1$/);
  assert.equal(reasonText({ outcome: "delivered" }), "");
});

test("what the tables leave out", () => {
  assert.equal(noteText({ connection_counts: {}, connections: [], complete: true }), "No connection is known.");
  assert.equal(noteText({ connection_counts: { delivered: 2, not_visible: 3 }, connections: [1, 2, 3], complete: false }),
    "3 connections may not see the account. 3 of 5 connections are listed. Not all nodes have answered.");
  assert.equal(noteText({ connection_counts: { delivered: 1 }, connections: [1], complete: true }), "");
});
