// Reads messages, one JSON text a line, and writes the floor after each: agents
// and calls in short, as floor_test.go of this package compares them with
// fanout/snapshot's. A line {"restart": true} begins anew.
import { createInterface } from "node:readline";
import { Floor } from "../static/floor.js";

let floor = new Floor();
for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line);
  if (message.restart) floor = new Floor();
  else floor.apply(message);
  const agents = floor.agents.map((a) => ["agent", a.account, a.id, a.state, a.status, a.since]);
  const calls = floor.calls.map((c) => ["call", c.account, c.id, c.state, c.queue, c.agent, c.since]);
  console.log(JSON.stringify([...agents, ...calls].map((one) => one.join("|")).sort()));
}
