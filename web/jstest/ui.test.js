import assert from "node:assert/strict";
import { test } from "node:test";
import { RequestError } from "../static/http.js";
import { at, errorsByField, placed, withAt } from "../static/ui.js";

test("values have places in the body", () => {
  const body = withAt(withAt({ name: "a" }, "websocket.url", "wss://x"), "websocket.headers", { A: "b" });
  assert.deepEqual(body, { name: "a", websocket: { url: "wss://x", headers: { A: "b" } } });
  assert.equal(at(body, "websocket.url"), "wss://x");
  assert.equal(at(body, "media.rate"), undefined);
  assert.deepEqual(withAt(withAt(body, "websocket.url", undefined), "websocket.headers", undefined), { name: "a" });
});

test("an error stands at its field, the others at the form", () => {
  const error = new RequestError(400, "Invalid", [{ field: "filters.names[1]", code: "unknown", message: "is unknown" }, { field: "filters", code: "wrong_type", message: "is wrong" },
    { field: "domain", code: "invalid", message: "is no domain" }, { field: "domain", code: "taken", message: "is taken" }]);
  assert.deepEqual(errorsByField(error, ["domain", "filters.names", "name"]), { "filters.names": "is unknown", "": "filters: is wrong", domain: "is no domain; is taken" });
  assert.deepEqual(errorsByField(new Error("no network"), ["domain"]), { "": "no network" });
});

test("who comes and goes moves nobody else", () => {
  /** @type {{key: string}[]} */
  let before = [];
  const shown = (/** @type {string} */ items) => {
    const places = placed([...items], (one) => one, before);
    before = places;
    return places.map(({ item }) => item ?? "-").join("");
  };
  for (const [items, want] of [["abcd", "abcd"], ["bd", "-b-d"], ["abd", "ab-d"], ["abdx", "abxd"], ["abcdx", "abxdc"], ["ab", "ab"], ["abz", "abz"], ["", ""]]) {
    assert.equal(shown(items), want);
  }
});
