/**
 * The connection to the events channel while the board is open: a snapshot, then every later
 * event once, across disconnects.
 *
 * It tries a WebSocket and, if that cannot be opened, a stream of server-sent events, whose
 * refusal has a readable status: browsers hide the HTTP response to a WebSocket handshake.
 * Browsers also hide pings, so an idle connection is tested with a request, and replaced after
 * some time; resuming loses nothing.
 */
import { closeCodeIn, jitter, endingOfClose, endingOfStatus, backoff } from "./reconnect.js";
import { retryAfterOf } from "./http.js";
import { eventTime } from "./channel_position.js";
import { StreamReader } from "./sse.js";

/**
 * @typedef {import("./reconnect.js").Ending} Ending
 *
 * @typedef {object} State
 * @property {"snapshot"|"connecting"|"catching up"|"live"|"waiting"|"login"|"stopped"} phase
 * @property {"WebSocket"|"event stream"|""} transport of the current connection
 * @property {string} reason the reason the last connection ended
 * @property {number} retryAt ms, while waiting
 * @property {number} lostAt ms, when the connection was lost; 0: connected
 * @property {number} disconnectedFor ms, length of the last disconnect
 * @property {number} replayed number of events replayed after it
 * @property {number} disconnects number of disconnects
 * @property {boolean} gap events were missed because they were no longer available
 * @property {string} lastID of the last event
 *
 * @typedef {object} Environment functions of the browser, replaced in tests
 * @property {typeof fetch} fetch
 * @property {(path: string) => WebSocket} socket
 * @property {() => number} random
 */

const paths = {
  snapshot: "/ws/v1/cc_events/snapshot", socket: "/ws/v1/cc_events",
  stream: "/ws/v1/cc_events/stream", health: "/ws/v1/cc_events/health",
};

export const limits = {
  openTimeout: 8000, // ms to open a connection
  probeAfter: 12_000, // ms without data before the connection is tested
  probeTimeout: 5000, // ms for the test
  replaceAfter: 120_000, // ms without data before the connection is replaced
  streamLifetime: 600_000, // ms before an event stream is replaced, to try a WebSocket again
  replayQuiet: 1500, // ms without an event: the replay is complete
};

/** @type {Environment} */
const browser = {
  fetch: (...args) => fetch(...args),
  socket: (path) => new WebSocket(new URL(path, location.href.replace(/^http/, "ws"))),
  random: Math.random,
};

export class ChannelConnection {
  /** @type {State} */
  state = { phase: "stopped", transport: "", reason: "", retryAt: 0, lostAt: 0, disconnectedFor: 0, replayed: 0, disconnects: 0, gap: false, lastID: "" };
  #token = "";
  #running = false;
  #position;
  #clock;
  #events;
  #environment;
  #lastDataAt = 0;
  #openedAt = 0; // by the server's clock
  #isProbing = false;
  #probedAt = 0;
  /** Ends the current connection. @type {(ending: Ending) => void} */ #endConnection = () => {};
  /** Ends the current wait. */ #endWait = () => {};
  /** @type {ReturnType<typeof setTimeout>|undefined} */ #replayTimer;

  /**
   * @param {import("./channel_position.js").ChannelPosition} position
   * @param {import("./clock.js").Clock} clock
   * @param {object} events
   * @param {(snapshot: any) => void} events.snapshot null: snapshots are off on this server
   * @param {(message: any, text: string) => void} events.message
   * @param {(state: State) => void} events.state
   * @param {Environment} [environment]
   */
  constructor(position, clock, events, environment = browser) {
    this.#position = position;
    this.#clock = clock;
    this.#events = events;
    this.#environment = environment;
  }

  /** Connects with this token and reconnects until stop is called or an ending forbids it. */
  async run(/** @type {string} */ token) {
    this.#token = token;
    if (this.#running) return;
    this.#running = true;
    const watch = setInterval(() => this.#checkIdle(), 1000);
    try {
      for (let failures = 0; this.#running;) {
        const { opened, ending } = await this.#runConnection(failures);
        failures = opened ? 1 : failures + 1;
        if (opened) this.#setState({ gap: false });
        if (!this.#running || !await this.#applyEnding(ending, failures)) break;
      }
    } finally {
      this.#running = false;
      clearInterval(watch);
      clearTimeout(this.#replayTimer);
    }
  }

  stop() {
    this.#running = false;
    this.#endConnection({ action: "stop", reason: "" });
    this.#endWait();
    this.#setState({ phase: "stopped", transport: "", reason: "", lostAt: 0 });
  }

  /** Restarts with a snapshot, for a token with other filters. */
  restart(/** @type {string} */ token) {
    this.#token = token;
    this.#position.reset("");
    this.#endConnection({ action: "renew", reason: "" });
    this.#endWait();
    return this.run(token);
  }

  /** The network may have changed: ends the wait and tests the connection. */
  retryNow() {
    this.#endWait();
    this.#probe();
  }

  /** Takes a snapshot if there is no position, then runs one connection until it ends. */
  async #runConnection(/** @type {number} */ failures) {
    if (this.#position.since === "") {
      this.#setState({ phase: "snapshot" });
      const ending = await this.#snapshot();
      if (ending) return { opened: false, ending };
    }
    this.#setState({ phase: "connecting" });
    const socket = await this.#socket();
    // Without any response the network is the likely cause, not the WebSocket,
    // unless it happens repeatedly.
    if (socket.opened || !this.#running || socket.silent && failures < 2) return socket;
    return this.#stream();
  }

  /** Performs an ending's action. Returns false if the connection must not be reopened. */
  async #applyEnding(/** @type {Ending} */ ending, /** @type {number} */ failures) {
    if (ending.action === "renew") {
      this.#setState({ reason: "", transport: "", lostAt: 0 });
      return this.#running;
    }
    this.#setState({ reason: ending.reason, transport: "", lostAt: this.state.lostAt || ending.since || Date.now() });
    let wait = backoff(failures, this.#environment.random);
    switch (ending.action) {
      case "login": this.#setState({ phase: "login" }); return false;
      case "stop": this.#setState({ phase: "stopped" }); return false;
      case "restart":
        this.#position.reset("");
        this.#setState({ gap: true });
        break;
      case "reconnect": wait = jitter(this.#environment.random); break;
      case "retry": wait = Math.max(wait, ending.retryAfter ?? 0);
    }
    this.#setState({ phase: "waiting", retryAt: Date.now() + wait });
    await new Promise((/** @type {(v?: unknown) => void} */ resolve) => {
      this.#endWait = resolve;
      setTimeout(resolve, wait);
    });
    return this.#running;
  }

  /** @returns {Promise<?Ending>} null after a snapshot, or if snapshots are off */
  async #snapshot() {
    const sent = Date.now(), token = this.#token;
    try {
      const answer = await this.#environment.fetch(paths.snapshot, this.#request(AbortSignal.timeout(limits.openTimeout)));
      if (answer.status === 404) { // snapshots are off: the floor shows only new events
        this.#events.snapshot(null);
        return null;
      }
      if (!answer.ok) return endingOfStatus(answer.status, retryAfterOf(answer));
      const snapshot = await answer.json();
      if (token !== this.#token) return { action: "renew", reason: "" };
      this.#clock.observe(snapshot.timestamp, sent, Date.now());
      this.#position.reset(snapshot.cursor);
      this.#events.snapshot(snapshot);
      return null;
    } catch {
      return { action: "retry", reason: "The server does not answer" };
    }
  }

  /** Takes another snapshot while connected, and returns it; null if there is none. */
  async refresh() {
    const token = this.#token;
    try {
      const answer = await this.#environment.fetch(paths.snapshot, this.#request(AbortSignal.timeout(limits.openTimeout)));
      if (!answer.ok) return null; // the connection tells why
      const snapshot = await answer.json();
      if (token !== this.#token) return null;
      this.#events.snapshot(snapshot);
      return snapshot;
    } catch {
      return null;
    }
  }

  /** @returns {Promise<{opened: boolean, silent: boolean, ending: Ending}>} */
  #socket() {
    const query = new URLSearchParams({ token: this.#token, cursor: "true" });
    if (this.#position.since) query.set("since", this.#position.since);
    const socket = this.#environment.socket(`${paths.socket}?${query}`);
    let opened = false, silent = false, ended = false;
    return new Promise((resolve) => {
      const end = (/** @type {Ending} */ ending) => {
        if (ended) return;
        ended = true;
        clearTimeout(opening);
        this.#endConnection = () => {};
        socket.onopen = socket.onmessage = socket.onclose = socket.onerror = null;
        socket.close();
        resolve({ opened, silent, ending });
      };
      const opening = setTimeout(() => {
        silent = true;
        end({ action: "retry", reason: "The server does not answer" });
      }, limits.openTimeout);
      this.#endConnection = end;
      socket.onopen = () => {
        clearTimeout(opening);
        opened = true;
        this.#opened("WebSocket");
      };
      socket.onmessage = ({ data }) => this.#message(data);
      socket.onclose = ({ code }) => end(endingOfClose(code));
    });
  }

  /** @returns {Promise<{opened: boolean, ending: Ending}>} */
  async #stream() {
    const query = this.#position.since ? `?since=${encodeURIComponent(this.#position.since)}` : "";
    const abort = new AbortController();
    /** @type {?Ending} */ let cut = null;
    let opened = false, code = 0;
    this.#endConnection = (ending) => {
      cut = ending;
      abort.abort();
    };
    const opening = setTimeout(() => this.#endConnection({ action: "retry", reason: "The server does not answer" }), limits.openTimeout);
    try {
      const answer = await this.#environment.fetch(paths.stream + query, this.#request(abort.signal));
      if (!answer.ok || !answer.body) return { opened, ending: endingOfStatus(answer.status, retryAfterOf(answer)) };
      clearTimeout(opening);
      opened = true;
      this.#opened("event stream");
      const reader = answer.body.getReader(), decoder = new TextDecoder();
      const lines = new StreamReader((data, id) => this.#message(data, id), (comment) => {
        this.#lastDataAt = Date.now();
        code = closeCodeIn(comment) || code;
      });
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        lines.feed(decoder.decode(part.value, { stream: true }));
      }
      return { opened, ending: endingOfClose(code) };
    } catch {
      return { opened, ending: cut ?? { action: "retry", reason: "Connection lost" } };
    } finally {
      clearTimeout(opening);
      this.#endConnection = () => {};
    }
  }

  #request(/** @type {AbortSignal} */ signal) {
    return /** @type {RequestInit} */ ({
      headers: { Authorization: `Bearer ${this.#token}` }, cache: "no-store", credentials: "omit", signal,
    });
  }

  #opened(/** @type {State["transport"]} */ transport) {
    this.#position.connectionOpened();
    this.#lastDataAt = Date.now();
    this.#openedAt = this.#clock.now();
    const { lostAt, disconnects } = this.state;
    this.#setState({
      phase: lostAt ? "catching up" : "live", transport, lostAt: 0, replayed: 0, retryAt: 0,
      disconnectedFor: lostAt ? Date.now() - lostAt : 0, disconnects: disconnects + (lostAt ? 1 : 0),
    });
    this.#awaitEndOfReplay();
  }

  #message(/** @type {string} */ text, /** @type {string} */ cursor = "") {
    this.#lastDataAt = Date.now();
    const message = JSON.parse(text);
    if (typeof message.cursor === "string" && message.id === undefined) return this.#position.setCursor(message.cursor);
    const isNew = this.#position.accept(message.id);
    if (cursor) this.#position.setCursor(cursor);
    if (!isNew) return;
    this.state.lastID = message.id;
    if (this.state.phase === "catching up") {
      if (eventTime(message.id) < this.#openedAt) {
        this.#setState({ replayed: this.state.replayed + 1 });
        this.#awaitEndOfReplay();
      } else {
        this.#setState({ phase: "live" });
      }
    }
    this.#events.message(message, text);
  }

  #awaitEndOfReplay() {
    clearTimeout(this.#replayTimer);
    this.#replayTimer = setTimeout(() => {
      if (this.state.phase === "catching up") this.#setState({ phase: "live" });
    }, limits.replayQuiet);
  }

  #checkIdle() {
    if (!this.state.transport) return;
    const silent = Date.now() - this.#lastDataAt, isOld = this.#clock.now() - this.#openedAt > limits.streamLifetime;
    if (silent > limits.replaceAfter) this.#endConnection({ action: "reconnect", reason: "The connection was idle" });
    else if (isOld && this.state.transport === "event stream") this.#endConnection({ action: "reconnect", reason: "Trying a WebSocket again" });
    else if (silent > limits.probeAfter && Date.now() - this.#probedAt > limits.probeAfter) this.#probe();
  }

  async #probe() {
    if (this.#isProbing || !this.state.transport) return;
    this.#isProbing = true;
    this.#probedAt = Date.now();
    const cut = this.#endConnection, heardAt = this.#lastDataAt; // values of the tested connection
    try {
      await this.#environment.fetch(paths.health, { cache: "no-store", credentials: "omit", signal: AbortSignal.timeout(limits.probeTimeout) });
    } catch {
      cut({ action: "retry", reason: "No network", since: heardAt });
    } finally {
      this.#isProbing = false;
    }
  }

  #setState(/** @type {Partial<State>} */ change) {
    this.state = { ...this.state, ...change };
    this.#events.state(this.state);
  }
}
