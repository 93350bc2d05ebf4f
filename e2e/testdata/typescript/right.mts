// Uses every export of clients/js, as its types allow.
import {
  AccessRevokedError, CertificateError, Client, ClosedError, ConnectionLostError, GoingAwayError, LocalStorageStore,
  LoginRefusedError, MemoryStore, MisuseError, PositionGoneError, ProtocolError, RefusedError, ReplacedError, RestartError,
  ServerFaultError, TokenExpiredError, TooSlowError, TrunklineError,
} from "@trunkline/client";
import type {
  Agent, AgentSaid, AgentState, Call, CallEventData, CallState, CallStep, Credentials, DeviceState, Event, EventType, FactName, Facts, Filters, Item, Membership,
  Queue, Snapshot, Status, Store, SubscribeOptions,
} from "@trunkline/client";
import { FileStore } from "@trunkline/client/node";

const credentials: Credentials[] = [
  { username: "alice", password: "secret", domain: "demo.local" },
  { portalToken: "token" }, { portalToken: () => "token" }, { portalToken: async () => "token" },
  { apiKey: "key" },
];
const stores: Store[] = [
  new FileStore("position"), new LocalStorageStore(), new LocalStorageStore("board"), new MemoryStore(),
  { load: async () => null, save: (position) => console.log(position.length) },
];
const types: EventType[] = ["AGENT_LOGIN", "svc_cc_queue_on_call_event"];
const names: FactName[] = ["agent.login", "queue.call_offered"];
const filters: Filters = { account_ids: ["demo"], event_types: types, queue_ids: ["support"], agent_ids: [], call_ids: [], names: [...names, "call.*"] };

const onStatus = ({ state, error, retryIn }: Status) => console.log(state, error && describe(error), (retryIn ?? 0) / 1000);
const options: SubscribeOptions = {
  since: "earliest", snapshot: true, filters, store: stores[0], signal: new AbortController().signal, onStatus,
  retryMin: 250, retryMax: 30_000, silence: 60_000,
};

/** Follows the channel; nothing of this program calls it. */
export async function follow(): Promise<void> {
  for (const one of credentials) {
    const client = new Client({ url: "https://localhost:9443", ...one, fetch });
    for await (const item of client.subscribe(options)) show(item);
    for await (const { event } of client.subscribe()) console.log(event?.id);
  }
}

function show(item: Item): void {
  if (item.snapshot) {
    const { agents, calls, queues, cursor }: Snapshot = item.snapshot;
    agents.forEach(({ agent_name, agent_id, state, since }: Agent) => console.log(agent_name ?? agent_id, seconds(state, since)));
    agents.flatMap(({ memberships = [] }) => memberships).forEach(({ queue_id, state, paused_since }: Membership) => console.log(queue_id, seconds(state, paused_since ?? 0)));
    calls.forEach(({ caller, position, state, since }: Call) => console.log(caller?.length, position, seconds(state, since)));
    queues.forEach(({ waiting, agents: { available = 0 }, service_level }: Queue) => console.log(waiting + available, service_level?.toFixed(1)));
    console.log(cursor.length);
  } else {
    const event: Event = item.event;
    console.log(event.id, item.cursor.length, new Date(event.timestamp * 1000), Object.keys(event.data));
    if (event.metadata.facts) tell(event.metadata.facts);
    if (event.type === "svc_cc_queue_on_call_event") console.log(history(event.data as unknown as CallEventData));
  }
}

function history({ CDR, customer_info, history }: CallEventData): string {
  const step = ({ type, ext, event, first_name }: CallStep): string => `${type} ${ext} ${first_name}: ${event}`;
  return [CDR["Call-ID"], customer_info.customer_callerid_number, ...history.map(step)].join(", ");
}

function tell(facts: Facts): void {
  const said: AgentSaid = facts.agent ?? {};
  if (said.paused) console.log(said.device, said.reason, (said.wrap_up_until_ms ?? 0) / 1000);
  switch (facts.name) {
    case "queue.call_offered": return console.log(facts.queue_id, facts.agent_name ?? facts.agent_id, (facts.wait_ms ?? 0) / 1000);
    case "device.registered": return console.log(seconds(facts.state ?? "unregistered", facts.previous_since ?? 0));
  }
}

function seconds(state: AgentState | CallState | DeviceState, since: number): string {
  return `${state} for ${(Date.now() / 1000 - since).toFixed()} s`;
}

function describe(error: TrunklineError): string {
  const closed = [GoingAwayError, MisuseError, ServerFaultError, RestartError, TokenExpiredError, AccessRevokedError, TooSlowError, ReplacedError, ClosedError];
  const others = [LoginRefusedError, PositionGoneError, RefusedError, ConnectionLostError, CertificateError, ProtocolError];
  const kind = [...closed, ...others].find((one) => error instanceof one);
  const fields = error.errors.map(({ field, code, message }) => `${field}: ${code}, ${message}`);
  return [kind?.name, error.permanent, error.code + error.status, error.retryAfter / 1000, ...fields].join(" ");
}
