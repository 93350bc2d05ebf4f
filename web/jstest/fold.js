// Folds messages from stdin, one per line, and prints the floor after each; a line with a
// snapshot restarts from it.
import { createInterface } from "node:readline";
import { Floor } from "../static/floor.js";

const floor = new Floor();
for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line);
  if (message.snapshot !== undefined) floor.start(message.snapshot);
  else floor.apply(message);
  const agents = floor.agents.map((a) => ["agent", a.account, a.id, a.state, a.since, a.name, a.call, a.reason]);
  const calls = floor.calls.map((c) => ["call", c.account, c.id, c.state, c.since, c.queue, c.agent, c.caller]);
  console.log(JSON.stringify([...agents, ...calls].map((one) => one.join("|")).sort()));
}
