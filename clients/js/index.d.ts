/** Types of the events channel. Servers only ever add fields and names. */

export type EventType =
  | "svc_cc_queue_on_call_event" | "svc_cc_queue_on_agent_state_event"
  | "AGENT_LOGIN" | "AGENT_LOGOUT" | "AGENT_STATUS_CHANGE" | "AGENT_QUEUE_JOIN" | "AGENT_QUEUE_LEAVE"
  | "AGENT_CALL_START" | "AGENT_CALL_END" | "AGENT_BREAK_START" | "AGENT_BREAK_END" | "AGENT_TRANSFER"
  | "AGENT_CONFERENCE" | "AGENT_DEVICE_REGISTER" | "AGENT_DEVICE_UNREGISTER" | "AGENT_PERFORMANCE" | "AGENT_CUSTOM_EVENT";

export type FactName =
  | "agent.login" | "agent.logout" | "agent.break_start" | "agent.break_end" | "agent.state"
  | "agent.queue_join" | "agent.queue_leave" | "agent.no_answer"
  | "queue.call_entered" | "queue.call_offered" | "queue.call_answered" | "queue.call_abandoned" | "queue.call_ended"
  | "call.created" | "call.ringing" | "call.answered" | "call.bridged" | "call.held" | "call.resumed"
  | "call.transferred" | "call.dtmf" | "call.ended" | "conference.joined" | "conference.left"
  | "device.registered" | "device.unregistered" | "call.progress" | "recording.stored" | "ai.session" | "control.action" | "call.transcript"
  | "alert.started" | "alert.ended" | "feed.connected" | "feed.disconnected" | "other";

export type AgentState = "offline" | "available" | "ringing" | "talking" | "wrap_up" | "break" | "other";
export type CallState = "waiting" | "ringing" | "talking" | "held" | "ended";
export type DeviceState = "registered" | "unregistered";

/** Describes an event in one vocabulary for all platforms (docs/facts.md). */
export interface Facts {
  name: FactName;
  agent_id?: string;
  agent_name?: string;
  queue_id?: string;
  call_id?: string;
  interaction_id?: string;
  origination_call_id?: string;
  caller?: string;
  callee?: string;
  state?: AgentState | CallState | DeviceState;
  reason?: string;
  previous_state?: AgentState | CallState | DeviceState;
  /** Unix seconds. */
  previous_since?: number;
  wait_ms?: number;
  talk_ms?: number;
  timestamp_ms?: number;
  /** Of the agent, after an event about a call. */
  agent_state?: AgentState;
  /** Of a device: the registration that the event is about. */
  contact?: string;
  /** Of a call that enters a queue: its place there, from 1. */
  position?: number;
  /** What the platform said of the agent, piece by piece. */
  agent?: AgentSaid;
}

export interface AgentSaid {
  presence?: "available" | "break" | "offline" | "other";
  activity?: "none" | "not_ready" | "ringing" | "talking" | "wrap_up";
  reason?: string;
  device?: "idle" | "ringing" | "in_use" | "busy" | "wrap_up" | "unreachable" | "unknown";
  in_call?: boolean;
  paused?: boolean;
  /** Unix seconds. */
  paused_since?: number;
  wrap_up_until_ms?: number;
  /** By which the platform speaks of the agent too. */
  other_id?: string;
}

export interface Event {
  /** Unique, and the same on every delivery, replay and failover. */
  id: string;
  type: EventType;
  account_id: string;
  /** Unix seconds. */
  timestamp: number;
  /** The source's event, complete and unchanged; of a call event with the members of CallEventData behind its own. */
  data: Record<string, unknown>;
  metadata: {
    source: string;
    original_format: string;
    processed_at: number;
    queue_id?: string;
    /** Absent from events of older servers without facts. */
    facts?: Facts;
  };
}

/** The members of data that every svc_cc_queue_on_call_event has (docs/channel.md): `event.data as unknown as CallEventData`. */
export interface CallEventData {
  "Account-ID": string;
  "Queue-ID": string;
  Type: string;
  CDR: {
    channel: {
      "Conference-Channel-Vars": { "Energy-Level"?: number; "Member-Ghost"?: boolean; "Member-Type"?: string; "Member-ID"?: number };
      "Custom-Channel-Vars": { "Account-ID": string; "Bridge-ID": string };
    };
    "Call-ID": string;
    "Conference-ID": string;
    /** What happened: a FactName, unless the source has a CDR itself. */
    Event: string;
  };
  customer_info: { customer_callerid_name: string; customer_callerid_number: string; customer_uuid: string };
  /** Oldest first; the last one is this event. */
  history: CallStep[];
}

export interface CallStep {
  type: string;
  /** The agent's extension; of type "queue" the queue. */
  ext: string;
  event: string;
  email: string;
  first_name: string;
  last_name: string;
}

export interface Agent {
  account_id: string;
  agent_id: string;
  agent_name?: string;
  state: Exclude<AgentState, "offline">;
  status: "available" | "break";
  /** Unix seconds. */
  since: number;
  queues?: string[];
  call_id?: string;
  /** The state after the call; absent: available. */
  after_call?: "offline" | "break" | "other";
  reason?: string;
  /** The queues in which it is paused or in wrap-up. */
  memberships?: Membership[];
}

export interface Membership {
  queue_id: string;
  /** In which the agent counts in the queue. */
  state: AgentState;
  reason?: string;
  /** Unix seconds. */
  paused_since?: number;
  /** Unix seconds. */
  wrap_up_until?: number;
}

export interface Call {
  account_id: string;
  call_id: string;
  queue_id: string;
  agent_id: string;
  interaction_id?: string;
  state: Exclude<CallState, "ended">;
  /** Unix seconds. */
  since: number;
  caller?: string;
  position?: number;
}

export interface Queue {
  account_id: string;
  queue_id: string;
  waiting: number;
  /** Unix seconds. */
  longest_wait_since?: number;
  talking: number;
  agents: Partial<Record<AgentState, number>>;
  /** Figures of today in the account's time zone; absent: none. */
  offered?: number;
  answered?: number;
  abandoned?: number;
  service_level?: number;
  service_level_strict?: number;
}

export interface Snapshot {
  event_id: string;
  cursor: string;
  timestamp: number;
  state_since?: number;
  agents: Agent[];
  calls: Call[];
  queues: Queue[];
}

/** An event must match all given lists. A list that is absent or empty does not restrict. */
export interface Filters {
  account_ids?: string[];
  event_types?: EventType[];
  queue_ids?: string[];
  agent_ids?: string[];
  call_ids?: string[];
  /** Exact, or a class such as "call.*". */
  names?: (FactName | `${string}.*`)[];
}

/** Keeps the position across restarts of the program. */
export interface Store {
  load(): string | null | undefined | Promise<string | null | undefined>;
  save(position: string): void | Promise<void>;
}

export type Item =
  | { snapshot: Snapshot; event?: undefined; cursor?: undefined }
  | { event: Event; cursor: string; snapshot?: undefined };

export type Status =
  | { state: "connected"; error?: undefined; retryIn?: undefined }
  | { state: "waiting"; error: TrunklineError; retryIn: number };

export interface SubscribeOptions {
  /** Event id, cursor or "earliest". A position in the store takes precedence. Without both: from now on. */
  since?: string;
  /**
   * Take a snapshot if there is no position to resume from, and the events after it. If the
   * position is no longer in the log (410), yield another snapshot in place of
   * PositionGoneError.
   */
  snapshot?: boolean;
  filters?: Filters;
  /** Receives the position when the program requests the next item after an event. */
  store?: Store;
  /** Ends the iteration. */
  signal?: AbortSignal;
  /** Called when the connection changes. */
  onStatus?: (status: Status) => void;
  /** ms; 250 */
  retryMin?: number;
  /** ms; 30 000 */
  retryMax?: number;
  /** ms without data before the connection is replaced; 60 000 */
  silence?: number;
}

export type Credentials =
  | { username: string; password: string; domain: string }
  /** A portal's access token, or a function that returns the current one. */
  | { portalToken: string | (() => string | Promise<string>) }
  /** An API key with the scope subscribe, for servers that have scopes. */
  | { apiKey: string };

export class Client {
  constructor(options: Credentials & { url: string; fetch?: typeof fetch });
  /**
   * Iterates over the snapshot, if requested, and every later event once. Reconnects until the
   * loop ends, the signal aborts, or an error is permanent, which it throws.
   */
  subscribe(options?: SubscribeOptions): AsyncGenerator<Item, void, void>;
}

export class LocalStorageStore implements Store {
  constructor(key?: string);
  load(): string | null;
  save(position: string): void;
}

export class MemoryStore implements Store {
  load(): string | null;
  save(position: string): void;
}

export class TrunklineError extends Error {
  /** A retry would fail in the same way. */
  readonly permanent: boolean;
  /** Close code of the channel; 0: none. */
  readonly code: number;
  /** HTTP status; 0: none. */
  readonly status: number;
  /** ms, from Retry-After; 0: none. */
  readonly retryAfter: number;
  readonly errors: { field: string; code: string; message: string }[];
}
export class LoginRefusedError extends TrunklineError {}
export class RefusedError extends TrunklineError {}
/** 410 */
export class PositionGoneError extends RefusedError {}
export class ConnectionLostError extends TrunklineError {}
export class CertificateError extends TrunklineError {}
export class ProtocolError extends TrunklineError {}
export class ClosedError extends TrunklineError {}
/** 1001 */
export class GoingAwayError extends ClosedError {}
/** 1008 */
export class MisuseError extends ClosedError {}
/** 1011 */
export class ServerFaultError extends ClosedError {}
/** 1012 */
export class RestartError extends ClosedError {}
/** 4001 */
export class TokenExpiredError extends ClosedError {}
/** 4003 */
export class AccessRevokedError extends ClosedError {}
/** 4008 */
export class TooSlowError extends ClosedError {}
/** 4009 */
export class ReplacedError extends ClosedError {}
