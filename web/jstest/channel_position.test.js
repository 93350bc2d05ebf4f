import assert from "node:assert/strict";
import { test } from "node:test";
import { ChannelPosition, eventTime } from "../static/channel_position.js";

test("what comes again after a break is dropped, and nothing else", () => {
  const position = new ChannelPosition();
  position.reset("c0");
  position.connectionOpened();
  assert.ok(position.accept("e1"));
  position.setCursor("c1");
  assert.ok(position.accept("e2") && position.accept("e3"));
  assert.equal(position.since, "c1");
  position.connectionOpened(); // after a disconnect: the server repeats e2 and e3
  assert.equal(position.accept("e2"), false);
  assert.ok(position.accept("e4"));
  assert.equal(position.accept("e3"), false);
});

test("a cursor between repeats does not let the later ones through", () => {
  const position = new ChannelPosition();
  position.reset("c0");
  position.connectionOpened();
  position.accept("e1");
  position.accept("e2");
  position.connectionOpened();
  assert.equal(position.accept("e1"), false);
  position.setCursor("c1"); // covers e1 only
  assert.equal(position.accept("e2"), false);
  position.connectionOpened(); // the server repeats e2, which c1 does not cover
  assert.equal(position.accept("e2"), false);
});

test("what is remembered is bounded by what can come again", () => {
  const position = new ChannelPosition();
  position.reset("c0");
  for (let i = 0, n = 0; i < 50; i++) {
    position.connectionOpened();
    for (let k = 0; k < 100; k++) position.accept(`e${n++}`);
    position.setCursor(`c${i}`);
  }
  assert.equal(position.storedIDs, 0);
});

test("before the first cursor an id is the position", () => {
  const position = new ChannelPosition();
  position.reset("");
  position.accept("e1");
  assert.equal(position.since, "e1");
  position.setCursor("c1");
  position.accept("e2");
  assert.equal(position.since, "c1");
  position.reset("");
  assert.equal(position.since, "");
  assert.ok(position.accept("e1"), "a fresh start forgets");
});

test("an id's time is its milliseconds", () => {
  assert.equal(eventTime("cc_evt_1795193658637000704"), 1795193658637);
  assert.ok(Number.isNaN(eventTime("cc_evt_12")));
});
