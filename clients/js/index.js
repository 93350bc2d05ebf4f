/**
 * Client of Trunkline's events channel, for browsers and Node 18 or later. See
 * README.md for its use and index.d.ts for its types.
 */
import { ConnectionLostError, PositionGoneError, ProtocolError, TrunklineError, networkError, refusal } from "./errors.js";
import { Backoff, EventStreamParser, RecentIDs, sleep, timeLimit } from "./stream.js";

export * from "./errors.js";

const paths = {
  login: "/api/v2/cc_events_channel/login",
  stream: "/api/v2/cc_events_channel/stream",
  snapshot: "/api/v2/cc_events_channel/snapshot",
};
const filterNames = ["account_ids", "event_types", "queue_ids", "agent_ids", "call_ids", "names"];
const answerTime = 15_000; // ms

/** A server and the credentials for it. */
export class Client {
  #base;
  #credentials;
  #fetch;

  constructor({ url, username, password, domain, portalToken, apiKey, fetch = globalThis.fetch }) {
    const parsed = new URL(url);
    if (!/^https?:$/.test(parsed.protocol) || parsed.username) throw new TypeError("url must be https://host:port, without a user");
    const given = [username !== undefined, portalToken !== undefined, apiKey !== undefined].filter(Boolean).length;
    if (given !== 1) throw new TypeError("give username, password and domain, or portalToken, or apiKey");
    if (username !== undefined && !(username && password && domain)) throw new TypeError("username, password and domain belong together");
    this.#base = parsed.href.replace(/\/+$/, "");
    this.#credentials = { username, password, domain, portalToken, apiKey };
    this.#fetch = (...request) => fetch(...request);
  }

  /** Logs in with the filters. Returns {token, expiresIn}, expiresIn in ms. */
  async login(filters = {}, signal) {
    for (const name of Object.keys(filters)) {
      if (!filterNames.includes(name)) throw new TypeError(`there is no filter ${name}`);
    }
    const { username, password, domain, portalToken, apiKey } = this.#credentials;
    const headers = { "Content-Type": "application/json" };
    const body = { ...filters };
    if (apiKey) headers["X-API-Key"] = apiKey;
    else if (portalToken) headers.Authorization = `Bearer ${typeof portalToken === "function" ? await portalToken() : portalToken}`;
    else Object.assign(body, { username, password, domain });
    const answer = await this.#json("login", paths.login, { method: "POST", headers, body: JSON.stringify(body) }, signal);
    if (!answer?.access_token) throw new ProtocolError("the login's answer has no access_token", { permanent: true });
    return { token: answer.access_token, expiresIn: (answer.expires_in ?? 86400) * 1000 };
  }

  /** Requests the agents, calls and queues, and the cursor at which they are exact. */
  snapshot(token, signal) {
    return this.#json("snapshot", paths.snapshot, { headers: { Authorization: `Bearer ${token}` } }, signal);
  }

  /**
   * Iterates over {snapshot} and {event, cursor} items for ever. See index.d.ts.
   */
  subscribe(options = {}) {
    return new Subscription(this, options).items();
  }

  async #json(step, path, request, signal) {
    return timeLimit(answerTime, signal, async (limit) => {
      const response = await this.#request(path, { ...request, signal: limit });
      if (!response.ok) throw await refusal(step, response);
      try {
        return await response.json();
      } catch (error) {
        throw limit.aborted ? error : networkError(error);
      }
    });
  }

  async #request(path, request) {
    try {
      return await this.#fetch(this.#base + path, { ...request, cache: "no-store", credentials: "omit" });
    } catch (error) {
      throw request.signal.aborted ? error : networkError(error);
    }
  }

  /** Opens the stream after a position, within ms. Returns a reader of text. */
  async stream(token, since, signal, ms) {
    const query = since ? `?since=${encodeURIComponent(since)}` : "";
    const abort = new AbortController();
    const end = () => abort.abort();
    signal?.addEventListener("abort", end);
    const close = () => {
      signal?.removeEventListener("abort", end);
      end();
    };
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      end();
    }, ms);
    try {
      const response = await this.#request(paths.stream + query, { headers: { Authorization: `Bearer ${token}` }, signal: abort.signal });
      if (!response.ok) throw await refusal("stream", response);
      return { reader: response.body.getReader(), close };
    } catch (error) {
      close();
      throw late ? new ConnectionLostError(`no answer within ${ms} ms`, { cause: error }) : error;
    } finally {
      clearTimeout(timer);
    }
  }
}

/** One subscription: the position, the token, and the ids of delivered events. */
class Subscription {
  #client;
  #options;
  #backoff;
  #seen = new RecentIDs();
  #token = "";
  #expiresAt = 0;
  #renewAt = 0;
  #position = "";
  #saved = "";

  constructor(client, { since = "", snapshot = false, filters = {}, store, signal, onStatus = () => {}, retryMin = 250, retryMax = 30_000, silence = 60_000 }) {
    this.#client = client;
    this.#options = { since, snapshot, filters, store, signal, onStatus, silence };
    this.#backoff = new Backoff(retryMin, retryMax);
  }

  async *items() {
    const { store, since, snapshot, signal, onStatus } = this.#options;
    this.#saved = (await store?.load()) ?? "";
    this.#position = this.#saved || since;
    try {
      while (!signal?.aborted) {
        let failure;
        try {
          await this.#authenticate();
          if (snapshot && !this.#position) {
            const state = await this.#client.snapshot(this.#token, signal);
            if (signal?.aborted) return;
            yield { snapshot: state };
            this.#position = state.cursor;
            await this.#save();
          }
          yield* this.#connection();
        } catch (error) {
          failure = error;
        }
        if (signal?.aborted) return;
        if (failure === renewal) continue;
        const wait = this.#plan(failure);
        onStatus({ state: "waiting", error: failure, retryIn: wait });
        await sleep(wait, signal);
      }
    } finally {
      await this.#save();
    }
  }

  /** Returns the wait before the next attempt in ms. Throws a permanent error. */
  #plan(error) {
    if (!(error instanceof TrunklineError)) throw error;
    const restart = error instanceof PositionGoneError && this.#options.snapshot;
    if (restart) this.#position = "";
    else if (error.permanent) throw error;
    if (error.code === 4001 || error.status === 401) this.#token = "";
    const wait = this.#backoff.next();
    const soon = error.code === 1012 || error.code === 4001;
    return soon ? Math.random() * wait : error.retryAfter + wait;
  }

  /** Logs in if there is no token, and renews one that expires soon. */
  async #authenticate() {
    if (this.#token && Date.now() < this.#renewAt) return;
    try {
      const { token, expiresIn } = await this.#client.login(this.#options.filters, this.#options.signal);
      this.#token = token;
      this.#expiresAt = Date.now() + expiresIn;
      this.#renewAt = Date.now() + expiresIn * (0.8 + Math.random() * 0.1);
    } catch (error) {
      const left = this.#expiresAt - Date.now();
      if (!this.#token || left <= 0 || error.permanent) throw error;
      this.#renewAt = Date.now() + left / 2; // the old token is still valid
    }
  }

  /** Yields the events of one connection. Always throws, except after an abort of the signal. */
  async *#connection() {
    const { signal, silence, onStatus } = this.#options;
    const { reader, close } = await this.#client.stream(this.#token, this.#position, signal, Math.min(answerTime, silence));
    const parser = new EventStreamParser();
    const decoder = new TextDecoder();
    try {
      onStatus({ state: "connected" });
      for (;;) {
        const { done, value } = await this.#read(reader, silence, close);
        const { events, closed } = done ? { events: [], closed: new ConnectionLostError("the stream ended") } : parser.feed(decoder.decode(value, { stream: true }));
        for (const { data, id } of events) {
          if (signal?.aborted) return;
          const event = parse(data);
          if (this.#seen.add(event.id)) yield { event, cursor: id || event.id };
          this.#position = id || event.id; // the program has requested the next item, so it has processed this one
          this.#backoff.reset();
        }
        if (events.length) await this.#save();
        if (closed) throw closed;
      }
    } finally {
      close();
      reader.cancel().catch(() => {}); // already aborted
    }
  }

  /** Reads until there is text, the stream is silent, or the token must be renewed. */
  async #read(reader, silence, close) {
    const untilRenewal = Math.max(0, this.#renewAt - Date.now());
    let late = null;
    const timer = setTimeout(() => {
      late = untilRenewal < silence ? renewal : new ConnectionLostError(`nothing received for ${silence} ms`);
      close();
    }, Math.min(untilRenewal, silence, 2 ** 31 - 1));
    try {
      return await reader.read();
    } catch (error) {
      throw late ?? networkError(error);
    } finally {
      clearTimeout(timer);
    }
  }

  async #save() {
    const { store } = this.#options;
    if (!store || this.#position === this.#saved || !this.#position) return;
    await store.save(this.#position);
    this.#saved = this.#position;
  }
}

const renewal = Symbol("renewal of the token");

function parse(text) {
  let event;
  try {
    event = JSON.parse(text);
  } catch (error) {
    throw new ProtocolError("an event is not JSON", { permanent: true, cause: error });
  }
  if (typeof event?.id !== "string") throw new ProtocolError("an event has no id", { permanent: true });
  return event;
}

/** Keeps the position in the browser's localStorage. */
export class LocalStorageStore {
  constructor(key = "trunkline-position") { this.key = key; }
  load() { return localStorage.getItem(this.key); }
  save(position) { localStorage.setItem(this.key, position); }
}

/** Keeps the position in memory: across subscriptions, not across restarts. */
export class MemoryStore {
  position = null;
  load() { return this.position; }
  save(position) { this.position = position; }
}
