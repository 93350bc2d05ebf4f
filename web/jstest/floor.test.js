import { test } from "node:test";
import assert from "node:assert/strict";
import { Floor, FloorRefresh, changesFloor, pace, total } from "../static/floor.js";

test("the numbers of a queue are the server's, whatever calls there are", () => {
  const floor = new Floor();
  floor.show({
    agents: [{ account_id: "a", agent_id: "1", agent_name: "Ann", state: "talking", since: 5, call_id: "visit" }],
    calls: [1, 2, 3].map((n) => ({ account_id: "a", call_id: `leg ${n}`, queue_id: "q", agent_id: "", state: "talking", since: 5 })),
    queues: [{ account_id: "a", queue_id: "q", waiting: 2, talking: 1, longest_wait_since: 4, agents: { available: 1 }, offered: 30, answered: 20, abandoned: 9, service_level: 0.6667, service_level_strict: 0.5333 }],
  });
  assert.deepEqual(floor.queues, [{ account: "a", id: "q", waiting: 2, talking: 1, since: 4, agents: { available: 1 },
    offered: 30, answered: 20, abandoned: 9, level: 0.6667, within: 16, counted: 24 }]);
  const sum = total([...floor.queues, { ...floor.queues[0], since: 3, within: 4, counted: 8 }]);
  assert.deepEqual([sum.waiting, sum.since, sum.level], [4, 3, 20 / 32]);
  assert.ok(Number.isNaN(total([]).level));
  assert.equal(floor.nameOf("a", "1"), "Ann");
  floor.show(null);
  assert.deepEqual([floor.agents, floor.calls, floor.queues, floor.nameOf("a", "1")], [[], [], [], "Ann"]);
});

test("events of agents, queues and calls change the floor", () => {
  for (const [facts, want] of /** @type {[any, boolean][]} */ ([[{ name: "agent.state" }, true], [{ name: "queue.call_entered" }, true],
    [{ name: "other", call_id: "c", state: "talking" }, true], [{ name: "other" }, false], [{ name: "device.registered" }, false], [undefined, false]])) {
    assert.equal(changesFloor(facts), want);
  }
});

test("it asks until a snapshot has the last event, once at a time", async () => {
  Object.assign(pace, { first: 1, next: 1 });
  const id = (/** @type {number} */ n) => `cc_evt_179519364706801${n}523`;
  let asked = 0;
  const refresh = new FloorRefresh(async () => {
    asked++;
    refresh.event(id(1000)); // while it asks
    return { event_id: asked < 3 ? "cc_evt_1795193600000000000" : "cc_evt_1795193999000000000" };
  });
  await refresh.event("cc_evt_1795193647068011523");
  assert.equal(asked, 3);
  await new FloorRefresh(async () => null).event("cc_evt_1795193647068011523"); // no snapshot: the connection tells why
});
