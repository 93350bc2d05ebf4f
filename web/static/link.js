/**
 * The connection to the events channel while the board is open: a snapshot, then every later
 * event once, across disconnects.
 *
 * It tries a WebSocket and, if that cannot be opened, a stream of server-sent events, whose
 * refusal has a readable status: browsers hide the HTTP response to a WebSocket handshake.
 * Browsers also hide pings, so an idle connection is tested with a request, and replaced after
 * some time; resuming loses nothing.
 */
import { codeOf, jitter, ofClose, ofStatus, pause } from "./endings.js";
import { retryAfter } from "./http.js";
import { timeOf } from "./place.js";
import { StreamReader } from "./sse.js";

/**
 * @typedef {import("./endings.js").Ending} Ending
 *
 * @typedef {object} State
 * @property {"snapshot"|"connecting"|"catching up"|"live"|"waiting"|"login"|"stopped"} phase
 * @property {"WebSocket"|"event stream"|""} transport of the current connection
 * @property {string} why the reason the last connection ended
 * @property {number} retryAt ms, while waiting
 * @property {number} lostAt ms, when the connection was lost; 0: connected
 * @property {number} away ms, length of the last disconnect
 * @property {number} caughtUp number of events replayed after it
 * @property {number} breaks number of disconnects
 * @property {boolean} gap events were missed because they were no longer available
 * @property {string} lastID of the last event
 *
 * @typedef {object} World the browser's functions, replaced in tests
 * @property {typeof fetch} fetch
 * @property {(path: string) => WebSocket} socket
 * @property {() => number} random
 */

const paths = {
  snapshot: "/ws/v1/cc_events/snapshot", socket: "/ws/v1/cc_events",
  stream: "/ws/v1/cc_events/stream", health: "/ws/v1/cc_events/health",
};

export const limits = {
  open: 8000, // ms to open a connection
  silent: 12_000, // ms without data before the connection is tested
  probe: 5000, // ms for the test
  stale: 120_000, // ms without data before the connection is replaced
  stream: 600_000, // ms before an event stream is replaced, to try a WebSocket again
  quiet: 1500, // ms without an event: the replay is complete
};

/** @type {World} */
const browser = {
  fetch: (...question) => fetch(...question),
  socket: (path) => new WebSocket(new URL(path, location.href.replace(/^http/, "ws"))),
  random: Math.random,
};

export class Link {
  /** @type {State} */
  state = { phase: "stopped", transport: "", why: "", retryAt: 0, lostAt: 0, away: 0, caughtUp: 0, breaks: 0, gap: false, lastID: "" };
  #token = "";
  #running = false;
  #place;
  #clock;
  #events;
  #world;
  #heardAt = 0;
  #openedAt = 0; // by the server's clock
  #probing = false;
  #probedAt = 0;
  /** Ends the current connection. @type {(ending: Ending) => void} */ #cut = () => {};
  /** Ends the current wait. */ #wake = () => {};
  /** @type {ReturnType<typeof setTimeout>|undefined} */ #quiet;

  /**
   * @param {import("./place.js").Place} place
   * @param {import("./clock.js").Clock} clock
   * @param {object} events
   * @param {(snapshot: any) => void} events.snapshot null: snapshots are off on this server
   * @param {(message: any, text: string) => void} events.message
   * @param {(state: State) => void} events.state
   * @param {World} [world]
   */
  constructor(place, clock, events, world = browser) {
    this.#place = place;
    this.#clock = clock;
    this.#events = events;
    this.#world = world;
  }

  /** Connects with this token and reconnects until stop is called or an ending forbids it. */
  async run(/** @type {string} */ token) {
    this.#token = token;
    if (this.#running) return;
    this.#running = true;
    const watch = setInterval(() => this.#watch(), 1000);
    try {
      for (let failures = 0; this.#running;) {
        const { opened, ending } = await this.#once(failures);
        failures = opened ? 1 : failures + 1;
        if (opened) this.#set({ gap: false });
        if (!this.#running || !await this.#follow(ending, failures)) break;
      }
    } finally {
      this.#running = false;
      clearInterval(watch);
      clearTimeout(this.#quiet);
    }
  }

  stop() {
    this.#running = false;
    this.#cut({ then: "stay", why: "" });
    this.#wake();
    this.#set({ phase: "stopped", transport: "", why: "", lostAt: 0 });
  }

  /** Restarts with a snapshot, for a token with other filters. */
  restart(/** @type {string} */ token) {
    this.#token = token;
    this.#place.start("");
    this.#cut({ then: "anew", why: "" });
    this.#wake();
    return this.run(token);
  }

  /** The network may have changed: ends the wait and tests the connection. */
  nudge() {
    this.#wake();
    this.#probe();
  }

  /** Takes a snapshot if there is no position, then runs one connection until it ends. */
  async #once(/** @type {number} */ failures) {
    if (this.#place.since === "") {
      this.#set({ phase: "snapshot" });
      const ending = await this.#snapshot();
      if (ending) return { opened: false, ending };
    }
    this.#set({ phase: "connecting" });
    const socket = await this.#socket();
    // Without any response the network is the likely cause, not the WebSocket,
    // unless it happens repeatedly.
    if (socket.opened || !this.#running || socket.silent && failures < 2) return socket;
    return this.#stream();
  }

  /** Performs an ending's action. Returns false if the connection must not be reopened. */
  async #follow(/** @type {Ending} */ ending, /** @type {number} */ failures) {
    if (ending.then === "anew") {
      this.#set({ why: "", transport: "", lostAt: 0 });
      return this.#running;
    }
    this.#set({ why: ending.why, transport: "", lostAt: this.state.lostAt || ending.since || Date.now() });
    let wait = pause(failures, this.#world.random);
    switch (ending.then) {
      case "login": this.#set({ phase: "login" }); return false;
      case "stay": this.#set({ phase: "stopped" }); return false;
      case "restart":
        this.#place.start("");
        this.#set({ gap: true });
        break;
      case "soon": wait = jitter(this.#world.random); break;
      case "again": wait = Math.max(wait, ending.after ?? 0);
    }
    this.#set({ phase: "waiting", retryAt: Date.now() + wait });
    await new Promise((/** @type {(v?: unknown) => void} */ resolve) => {
      this.#wake = resolve;
      setTimeout(resolve, wait);
    });
    return this.#running;
  }

  /** @returns {Promise<?Ending>} null after a snapshot, or if snapshots are off */
  async #snapshot() {
    const sent = Date.now(), token = this.#token;
    try {
      const answer = await this.#world.fetch(paths.snapshot, this.#request(AbortSignal.timeout(limits.open)));
      if (answer.status === 404) { // snapshots are off: the floor shows only new events
        this.#events.snapshot(null);
        return null;
      }
      if (!answer.ok) return ofStatus(answer.status, retryAfter(answer));
      const snapshot = await answer.json();
      if (token !== this.#token) return { then: "anew", why: "" };
      this.#clock.observe(snapshot.timestamp, sent, Date.now());
      this.#place.start(snapshot.cursor);
      this.#events.snapshot(snapshot);
      return null;
    } catch {
      return { then: "again", why: "The server does not answer" };
    }
  }

  /** @returns {Promise<{opened: boolean, silent: boolean, ending: Ending}>} */
  #socket() {
    const query = new URLSearchParams({ token: this.#token, cursor: "true" });
    if (this.#place.since) query.set("since", this.#place.since);
    const socket = this.#world.socket(`${paths.socket}?${query}`);
    let opened = false, silent = false, ended = false;
    return new Promise((resolve) => {
      const end = (/** @type {Ending} */ ending) => {
        if (ended) return;
        ended = true;
        clearTimeout(opening);
        this.#cut = () => {};
        socket.onopen = socket.onmessage = socket.onclose = socket.onerror = null;
        socket.close();
        resolve({ opened, silent, ending });
      };
      const opening = setTimeout(() => {
        silent = true;
        end({ then: "again", why: "The server does not answer" });
      }, limits.open);
      this.#cut = end;
      socket.onopen = () => {
        clearTimeout(opening);
        opened = true;
        this.#opened("WebSocket");
      };
      socket.onmessage = ({ data }) => this.#message(data);
      socket.onclose = ({ code }) => end(ofClose(code));
    });
  }

  /** @returns {Promise<{opened: boolean, ending: Ending}>} */
  async #stream() {
    const query = this.#place.since ? `?since=${encodeURIComponent(this.#place.since)}` : "";
    const abort = new AbortController();
    /** @type {?Ending} */ let cut = null;
    let opened = false, code = 0;
    this.#cut = (ending) => {
      cut = ending;
      abort.abort();
    };
    const opening = setTimeout(() => this.#cut({ then: "again", why: "The server does not answer" }), limits.open);
    try {
      const answer = await this.#world.fetch(paths.stream + query, this.#request(abort.signal));
      if (!answer.ok || !answer.body) return { opened, ending: ofStatus(answer.status, retryAfter(answer)) };
      clearTimeout(opening);
      opened = true;
      this.#opened("event stream");
      const reader = answer.body.getReader(), decoder = new TextDecoder();
      const lines = new StreamReader((data, id) => this.#message(data, id), (comment) => {
        this.#heardAt = Date.now();
        code = codeOf(comment) || code;
      });
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        lines.feed(decoder.decode(part.value, { stream: true }));
      }
      return { opened, ending: ofClose(code) };
    } catch {
      return { opened, ending: cut ?? { then: "again", why: "Connection lost" } };
    } finally {
      clearTimeout(opening);
      this.#cut = () => {};
    }
  }

  #request(/** @type {AbortSignal} */ signal) {
    return /** @type {RequestInit} */ ({
      headers: { Authorization: `Bearer ${this.#token}` }, cache: "no-store", credentials: "omit", signal,
    });
  }

  #opened(/** @type {State["transport"]} */ transport) {
    this.#place.opened();
    this.#heardAt = Date.now();
    this.#openedAt = this.#clock.now();
    const { lostAt, breaks } = this.state;
    this.#set({
      phase: lostAt ? "catching up" : "live", transport, lostAt: 0, caughtUp: 0, retryAt: 0,
      away: lostAt ? Date.now() - lostAt : 0, breaks: breaks + (lostAt ? 1 : 0),
    });
    this.#whenQuiet();
  }

  #message(/** @type {string} */ text, /** @type {string} */ cursor = "") {
    this.#heardAt = Date.now();
    const message = JSON.parse(text);
    if (typeof message.cursor === "string" && message.id === undefined) return this.#place.reached(message.cursor);
    const fresh = this.#place.admit(message.id);
    if (cursor) this.#place.reached(cursor);
    if (!fresh) return;
    this.state.lastID = message.id;
    if (this.state.phase === "catching up") {
      if (timeOf(message.id) < this.#openedAt) {
        this.#set({ caughtUp: this.state.caughtUp + 1 });
        this.#whenQuiet();
      } else {
        this.#set({ phase: "live" });
      }
    }
    this.#events.message(message, text);
  }

  #whenQuiet() {
    clearTimeout(this.#quiet);
    this.#quiet = setTimeout(() => {
      if (this.state.phase === "catching up") this.#set({ phase: "live" });
    }, limits.quiet);
  }

  #watch() {
    if (!this.state.transport) return;
    const silent = Date.now() - this.#heardAt, old = this.#clock.now() - this.#openedAt > limits.stream;
    if (silent > limits.stale) this.#cut({ then: "soon", why: "The connection was idle" });
    else if (old && this.state.transport === "event stream") this.#cut({ then: "soon", why: "Trying a WebSocket again" });
    else if (silent > limits.silent && Date.now() - this.#probedAt > limits.silent) this.#probe();
  }

  async #probe() {
    if (this.#probing || !this.state.transport) return;
    this.#probing = true;
    this.#probedAt = Date.now();
    const cut = this.#cut, heardAt = this.#heardAt; // values of the tested connection
    try {
      await this.#world.fetch(paths.health, { cache: "no-store", credentials: "omit", signal: AbortSignal.timeout(limits.probe) });
    } catch {
      cut({ then: "again", why: "No network", since: heardAt });
    } finally {
      this.#probing = false;
    }
  }

  #set(/** @type {Partial<State>} */ change) {
    this.state = { ...this.state, ...change };
    this.#events.state(this.state);
  }
}
