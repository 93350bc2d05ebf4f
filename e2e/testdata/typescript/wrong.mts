// Wrong uses of clients/js: the compiler fails where one of them has no error.
import { Client, TrunklineError } from "@trunkline/client";
import type { Agent, FactName, Item } from "@trunkline/client";
import { FileStore } from "@trunkline/client/node";

const url = "https://localhost:9443";
// @ts-expect-error no credentials
new Client({ url });
// @ts-expect-error a password without a user
new Client({ url, password: "secret", domain: "demo.local" });
// @ts-expect-error no url
new Client({ apiKey: "key" });

const client = new Client({ url, apiKey: "key" });
// @ts-expect-error since is text
client.subscribe({ since: 1795193434 });
// @ts-expect-error no such option
client.subscribe({ queue: "support" });
// @ts-expect-error no such filter
client.subscribe({ filters: { queues: ["support"] } });
// @ts-expect-error a filter is a list
client.subscribe({ filters: { queue_ids: "support" } });
// @ts-expect-error no such type
client.subscribe({ filters: { event_types: ["AGENT_VANISHED"] } });
// @ts-expect-error neither a name nor a class
client.subscribe({ filters: { names: ["agent"] } });
// @ts-expect-error a store saves
client.subscribe({ store: { load: () => null } });
// @ts-expect-error a file has a name
new FileStore();

// @ts-expect-error no such name
const name: FactName = "queue.call_lost";
// @ts-expect-error an agent in a snapshot is logged in
const state: Agent["state"] = "offline";

export function show({ snapshot, event }: Item): void {
  // @ts-expect-error an item may be a snapshot
  console.log(event.id);
  // @ts-expect-error an item may be an event
  console.log(snapshot.agents);
  if (!event) return;
  // @ts-expect-error events that are older than facts have none
  console.log(event.metadata.facts.name);
  // @ts-expect-error no event has this name
  if (event.metadata.facts?.name === "agent.vanished") console.log(name, state);
  // @ts-expect-error the source's own fields may be anything
  console.log(event.data.agent_id.length);
}

export function change(error: TrunklineError): void {
  // @ts-expect-error an error is read only
  error.permanent = false;
}
