import assert from "node:assert/strict";
import { test } from "node:test";
import { Place, timeOf } from "../static/place.js";

test("what comes again after a break is dropped, and nothing else", () => {
  const place = new Place();
  place.start("c0");
  place.opened();
  assert.ok(place.admit("e1"));
  place.reached("c1");
  assert.ok(place.admit("e2") && place.admit("e3"));
  assert.equal(place.since, "c1");
  place.opened(); // after a disconnect: the server repeats e2 and e3
  assert.equal(place.admit("e2"), false);
  assert.ok(place.admit("e4"));
  assert.equal(place.admit("e3"), false);
});

test("a cursor between repeats does not let the later ones through", () => {
  const place = new Place();
  place.start("c0");
  place.opened();
  place.admit("e1");
  place.admit("e2");
  place.opened();
  assert.equal(place.admit("e1"), false);
  place.reached("c1"); // covers e1 only
  assert.equal(place.admit("e2"), false);
  place.opened(); // the server repeats e2, which c1 does not cover
  assert.equal(place.admit("e2"), false);
});

test("what is remembered is bounded by what can come again", () => {
  const place = new Place();
  place.start("c0");
  for (let i = 0, n = 0; i < 50; i++) {
    place.opened();
    for (let k = 0; k < 100; k++) place.admit(`e${n++}`);
    place.reached(`c${i}`);
  }
  assert.equal(place.remembered, 0);
});

test("before the first cursor an id is the place", () => {
  const place = new Place();
  place.start("");
  place.admit("e1");
  assert.equal(place.since, "e1");
  place.reached("c1");
  place.admit("e2");
  assert.equal(place.since, "c1");
  place.start("");
  assert.equal(place.since, "");
  assert.ok(place.admit("e1"), "a fresh start forgets");
});

test("an id's time is its milliseconds", () => {
  assert.equal(timeOf("cc_evt_1795193658637000704"), 1795193658637);
  assert.ok(Number.isNaN(timeOf("cc_evt_12")));
});
