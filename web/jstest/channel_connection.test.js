// The connection against a fake server: its requests, the answers, and the resulting state of the
// board.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Clock } from "../static/clock.js";
import { limits, ChannelConnection } from "../static/channel_connection.js";
import { ChannelPosition } from "../static/channel_position.js";

const id = (n) => `cc_evt_${1_795_193_658_000 + n}000001`;

/** A fake environment with the outcome of each connection attempt and a log of the requests. */
function fakeServer(script) {
  const requests = [], received = [], states = [], snapshots = [];
  const next = (kind) => script[kind]?.shift();
  const position = new ChannelPosition();
  const link = new ChannelConnection(position, new Clock(), {
    snapshot: (s) => snapshots.push(s), message: (m) => received.push(m.id), state: (s) => states.push(s.phase),
  }, {
    random: () => 0,
    socket(path) {
      requests.push(path);
      const socket = { close() { socket.closed = true; } };
      setTimeout(() => (next("sockets") ?? ((s) => s.onclose({ code: 1006 })))(socket), 1);
      return socket;
    },
    async fetch(path, { signal } = {}) {
      requests.push(path);
      if (path.endsWith("/health")) return (next("health") ?? (() => new Response("{}")))(signal);
      if (path.endsWith("/snapshot")) return (next("snapshots") ?? (() => Response.json({ cursor: "c0", timestamp: Math.floor(Date.now() / 1000), agents: [], calls: [] })))();
      const answer = next("streams");
      if (!answer) throw new TypeError("no network");
      return answer(signal);
    },
  });
  return { link, position, requests, received, states, snapshots };
}

const event = (socket, n) => socket.onmessage({ data: JSON.stringify({ id: id(n), type: "AGENT_LOGIN", timestamp: 1, data: {} }) });
const cursor = (socket, c) => socket.onmessage({ data: JSON.stringify({ cursor: c }) });
const session = (...acts) => (socket) => { // opens, then performs the acts in order
  socket.onopen();
  for (const act of acts) act(socket);
};
const closes = (code) => (socket) => socket.onclose({ code });

test("snapshot, then resume from the cursor, each event once", async () => {
  const w = fakeServer({ sockets: [
    session((s) => event(s, 1), (s) => cursor(s, "c1"), (s) => event(s, 2), closes(1012)),
    session((s) => event(s, 2), (s) => event(s, 3), (s) => cursor(s, "c3"), closes(1006)),
    session((s) => event(s, 4), () => w.link.stop()),
  ] });
  await w.link.run("token");
  assert.deepEqual(w.received, [1, 2, 3, 4].map(id));
  const since = w.requests.filter((path) => path.includes("token=")).map((path) => new URLSearchParams(path.split("?")[1]).get("since"));
  assert.deepEqual(since, ["c0", "c1", "c3"]);
  assert.ok(w.requests.every((path) => !path.includes("token=") || path.startsWith("/ws/v1/cc_events?")), "no token in another address");
});

test("a WebSocket that cannot be opened: the stream, with ids as cursors", async () => {
  const chunks = [`id: ${id(1)}.a\ndata: {"id":"${id(1)}","type":"x","data":{}}\n\n: 1012 bye\n\n`];
  const w = fakeServer({
    streams: [() => new Response(new Blob(chunks))],
    sockets: [closes(1006), session((s) => event(s, 2), () => w.link.stop())],
  });
  await w.link.run("token");
  assert.deepEqual(w.received, [1, 2].map(id));
  assert.match(w.requests.at(-1), new RegExp(`since=${id(1)}\\.a$`));
});

test("410 takes a snapshot again and says that there is a gap", async () => {
  let gap = false;
  const w = fakeServer({
    streams: [() => new Response("", { status: 410 })],
    sockets: [closes(1006), session(() => { gap = w.link.state.gap; w.link.stop(); })],
  });
  await w.link.run("token");
  assert.equal(w.snapshots.length, 2);
  assert.equal(gap, true);
});

for (const [name, script, phase] of [
  ["an expired token", { sockets: [session(closes(4001))] }, "login"],
  ["a refused token", { sockets: [closes(1006)], streams: [() => new Response("", { status: 401 })] }, "login"],
  ["access that was revoked", { sockets: [session(closes(4003))] }, "stopped"],
  ["a newer connection", { sockets: [session(closes(4009))] }, "stopped"],
  ["a token of another kind", { snapshots: [() => new Response("", { status: 403 })] }, "stopped"],
]) {
  test(`${name} ends it: ${phase}`, async () => {
    const w = fakeServer(script);
    await w.link.run("token");
    assert.equal(w.link.state.phase, phase);
  });
}

test("after a new login it goes on where it was", async () => {
  const w = fakeServer({ sockets: [session((s) => cursor(s, "c7"), closes(4001)), session(() => w.link.stop())] });
  await w.link.run("old");
  await w.link.run("new");
  assert.match(w.requests.at(-1), /token=new&cursor=true&since=c7$/);
  assert.equal(w.snapshots.length, 1);
});

test("where there are no snapshots it goes live at once", async () => {
  const w = fakeServer({ snapshots: [() => new Response("", { status: 404 })], sockets: [session((s) => event(s, 1), () => w.link.stop())] });
  await w.link.run("token");
  assert.deepEqual(w.snapshots, [null]);
  assert.deepEqual(w.received, [id(1)]);
});

test("Retry-After is waited for", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout", "setInterval", "Date"], now: 1_000_000 });
  const w = fakeServer({ snapshots: [() => new Response("", { status: 503, headers: { "Retry-After": "9" } })] });
  const done = w.link.run("token");
  for (let i = 0; i < 20; i++) await new Promise(setImmediate);
  assert.equal(w.link.state.phase, "waiting");
  assert.equal(w.link.state.retryAt, 1_009_000);
  w.link.stop();
  await done;
});

test("a silent line is tested, and cut when nothing answers; a silent one that works is replaced in time", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout", "setInterval", "Date"], now: 1_000_000 });
  const settle = async () => { for (let i = 0; i < 20; i++) await new Promise(setImmediate); };
  const w = fakeServer({ sockets: [session(), session()], health: [() => { throw new TypeError("no network"); }] });
  const done = w.link.run("token");
  await settle();
  const pass = async (ms) => {
    for (let at = 0; at < ms; at += 500) {
      t.mock.timers.tick(500);
      await settle();
    }
  };
  await pass(1000);
  assert.equal(w.link.state.phase, "live");
  await pass(limits.probeAfter + 3000);
  assert.equal(w.link.state.disconnects, 1, "cut and connected again");
  await pass(limits.replaceAfter + 3000);
  assert.ok(w.requests.filter((path) => path.includes("token=")).length >= 3, "replaced");
  w.link.stop();
  await done;
});

test("how many events were caught up", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout", "setInterval", "Date"], now: 1_795_193_700_000 });
  const settle = async () => { for (let i = 0; i < 20; i++) await new Promise(setImmediate); };
  let socket;
  const w = fakeServer({ sockets: [session(closes(1006)), (s) => { socket = s; s.onopen(); }] });
  const done = w.link.run("token");
  for (let i = 0; i < 20 && !socket; i++) {
    t.mock.timers.tick(300);
    await settle();
  }
  assert.equal(w.link.state.phase, "catching up");
  event(socket, 1);
  event(socket, 2);
  assert.equal(w.link.state.replayed, 2);
  event(socket, 100_000);
  assert.equal(w.link.state.phase, "live");
  assert.equal(w.link.state.replayed, 2);
  w.link.stop();
  await done;
});

test("messages after the end of a connection are ignored", async () => {
  let old;
  const w = fakeServer({ sockets: [session((s) => { old = s; }, closes(1006)), session(() => {
    assert.equal(old.onmessage, null);
    assert.ok(old.closed);
    w.link.stop();
  })] });
  await w.link.run("token");
  assert.deepEqual(w.received, []);
});

test("where nothing answers at all a stream is not tried at once; when that goes on it is", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout", "setInterval", "Date"], now: 1_000_000 });
  const nothing = () => {};
  const w = fakeServer({ sockets: [nothing, nothing, nothing], streams: [() => { w.link.stop(); return new Response("", { status: 503 }); }] });
  const done = w.link.run("token");
  let ended = false;
  done.then(() => { ended = true; });
  for (let i = 0; i < 200 && !ended; i++) {
    t.mock.timers.tick(500);
    for (let k = 0; k < 10; k++) await new Promise(setImmediate);
  }
  const kinds = w.requests.map((path) => path.includes("token=") ? "socket" : path.split(/[/?]/)[4]);
  assert.deepEqual(kinds, ["snapshot", "socket", "socket", "socket", "stream"]);
});

test("another token begins anew with a snapshot, at once and without a gap", async () => {
  let gap;
  const w = fakeServer({ sockets: [
    session((s) => event(s, 1), (s) => cursor(s, "c1"), () => w.link.restart("narrow")),
    session((s) => event(s, 1), () => { gap = w.link.state.gap; w.link.stop(); }),
  ] });
  await w.link.run("token");
  assert.deepEqual(w.received, [1, 1].map(id), "what is shown begins anew");
  assert.match(w.requests.at(-1), /token=narrow&cursor=true&since=c0$/);
  assert.deepEqual([w.snapshots.length, w.link.state.disconnects, gap], [2, 0, false]);
});

test("a snapshot that was requests for with the token before is not used", async () => {
  const w = fakeServer({
    snapshots: [() => { w.link.restart("narrow"); return Response.json({ cursor: "old", timestamp: 1, agents: [], calls: [] }); }],
    sockets: [session(() => w.link.stop())],
  });
  await w.link.run("token");
  assert.match(w.requests.at(-1), /token=narrow&cursor=true&since=c0$/);
  assert.equal(w.snapshots.length, 1);
});
