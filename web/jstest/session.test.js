import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { Clock } from "../static/clock.js";
import { Session } from "../static/session.js";

/** @type {{path: string, init: any}[]} */ let asked = [];
/** @type {((path: string, init: any) => Response|undefined)[]} */ let rules = [];
const user = { id: "u", account_id: "demo", username: "alice", presence_id: "1001", role: "user" };
const pair = (n, lasts = 3600) => ({ user, access_token: `a${n}`, refresh_token: `r${n}`, expires_in: lasts });

function storage() {
  const kept = new Map();
  return { kept, getItem: (k) => kept.get(k) ?? null, setItem: (k, v) => kept.set(k, v), removeItem: (k) => kept.delete(k) };
}

beforeEach(() => {
  asked = [];
  rules = [];
  globalThis.fetch = async (path, init) => {
    asked.push({ path, init });
    for (const rule of rules) {
      const answer = rule(path, init);
      if (answer) return answer;
    }
    if (path === "/ucp/v2/login") return Response.json(pair(1));
    if (path === "/ws/v1/cc_events/login") return Response.json({ access_token: "channel", expires_in: 86400 });
    if (path === "/ucp/v2/login/refresh") return Response.json(pair(2));
    return Response.json({ token: init.headers.Authorization });
  };
});

test("both logins, and what is kept: no password, no refresh token", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const place = storage(), session = new Session(new Clock(), place);
  await session.login("alice", "the password", "demo.local");
  assert.deepEqual(asked.map(({ path }) => path), ["/ucp/v2/login", "/ws/v1/cc_events/login"]);
  assert.deepEqual(Object.keys(JSON.parse(asked[1].init.body)), ["event_types"]); // exchanged without the password
  assert.equal(asked[1].init.headers.Authorization, "Bearer a1");
  assert.ok(JSON.parse(asked[1].init.body).event_types.includes("AGENT_CUSTOM_EVENT"));
  const text = [...place.kept.values()].join();
  assert.ok(text.includes("a1") && text.includes("channel"));
  assert.ok(!text.includes("the password") && !text.includes("r1"), text);
  const again = new Session(new Clock(), place);
  assert.equal(again.user.username, "alice");
  assert.equal(again.channel, "channel");
});

test("a token that is refused is refreshed once, by however many ask", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const session = new Session(new Clock(), storage());
  await session.login("alice", "p", "demo.local");
  rules.push((path, init) => path === "/x" && init.headers.Authorization === "Bearer a1"
    ? Response.json({ message: "expired" }, { status: 401 }) : undefined);
  const answers = await Promise.all([session.request("/x"), session.request("/x"), session.request("/x")]);
  assert.deepEqual(answers.map(({ token }) => token), ["Bearer a2", "Bearer a2", "Bearer a2"]);
  assert.equal(asked.filter(({ path }) => path.endsWith("/refresh")).length, 1);
});

test("a reloaded page whose token has expired asks for a login", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const place = storage();
  await new Session(new Clock(), place).login("alice", "p", "demo.local");
  const tokens = JSON.parse(place.kept.values().next().value);
  place.setItem("trunkline.session", JSON.stringify({ ...tokens, portalUntil: 1 }));
  await assert.rejects(new Session(new Clock(), place).request("/x"), /Log in again/);
});

test("logging out forgets at once, also when the server is away", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const place = storage(), session = new Session(new Clock(), place);
  await session.login("alice", "p", "demo.local");
  rules.push((path) => { if (path.endsWith("/logout")) throw new TypeError("no network"); });
  await session.logout();
  assert.equal(session.user, null);
  assert.equal(place.kept.size, 0);
  assert.equal(asked.at(-1).init.headers.Authorization, "Bearer a1");
});

test("a login at the provider is taken with the cookie, and is a session like any other", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const place = storage(), session = new Session(new Clock(), place);
  rules.push((path) => path === "/auth/oidc/session" ? Response.json(pair(1)) : undefined);
  await session.loginAtProvider();
  assert.deepEqual(asked.map(({ path, init }) => [path, init.credentials]), [["/auth/oidc/session", "same-origin"], ["/ws/v1/cc_events/login", "omit"]]);
  assert.deepEqual([session.user.username, session.channel], ["alice", "channel"]);
  rules.unshift((path) => path === "/auth/oidc/session" ? Response.json({ message: "There is no login to finish" }, { status: 401 }) : undefined);
  await assert.rejects(session.loginAtProvider(), /no login to finish/);
  assert.equal(session.user.username, "alice");
});

test("a refusal has the server's words", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const session = new Session(new Clock(), storage());
  rules.push((path) => path === "/ucp/v2/login" ? Response.json({ message: "Wrong", errors: [{ field: "domain", code: "required", message: "is required" }] }, { status: 401 }) : undefined);
  await assert.rejects(session.login("a", "b", ""), /Wrong: domain is required/);
  assert.equal(session.user, null);
});

test("filters make another channel token, and stay over a new login of the same user", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const place = storage(), session = new Session(new Clock(), place);
  await session.login("alice", "p", "demo.local");
  rules.push((path, init) => path === "/ws/v1/cc_events/login" && init.headers.Authorization === "Bearer a1" && init.body.includes("queue_ids")
    ? Response.json({ access_token: "narrow" }) : undefined);
  await session.subscribe({ queue_ids: ["support"] });
  assert.equal(session.channel, "narrow");
  const again = new Session(new Clock(), place);
  assert.deepEqual([again.channel, again.filters], ["narrow", { queue_ids: ["support"] }]);
  await again.login("alice", "p", "demo.local");
  assert.deepEqual(JSON.parse(asked.at(-1).init.body).queue_ids, ["support"]);
  rules.push((path) => path === "/ucp/v2/login" ? Response.json({ ...pair(3), user: { ...user, id: "other" } }) : undefined);
  await again.login("bob", "p", "demo.local");
  assert.deepEqual(again.filters, {});
});

test("filters that are refused leave the token", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const session = new Session(new Clock(), storage());
  await session.login("alice", "p", "demo.local");
  rules.push((path) => path === "/ws/v1/cc_events/login" ? Response.json({ message: "Unknown name" }, { status: 400 }) : undefined);
  await assert.rejects(session.subscribe({ names: ["nothing"] }), /Unknown name/);
  assert.deepEqual([session.channel, session.filters], ["channel", {}]);
});

test("an auditor has no events, and no login to the channel", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  rules.push((path) => path === "/ucp/v2/login" ? Response.json({ ...pair(1), user: { ...user, role: "auditor" } }) : undefined);
  const session = new Session(new Clock(), storage());
  await session.login("alice", "the password", "");
  assert.deepEqual([asked.length, session.channel, session.user?.role], [1, "", "auditor"]);
  assert.ok(!("domain" in JSON.parse(asked[0].init.body)), "a domain that is not told is left out");
});
