/** What all pages share: the session, the server's time, the floor, the events, the address. */
import { ChannelConnection } from "./channel_connection.js";
import { ChannelPosition, eventTime } from "./channel_position.js";
import { Clock } from "./clock.js";
import { EventRates } from "./event_rates.js";
import { factsOf } from "./facts.js";
import { Feed } from "./feed.js";
import { changesFloor, Floor, FloorRefresh } from "./floor.js";
import { userPart } from "./format.js";
import { Session } from "./session.js";
import { Value } from "./ui.js";

export const clock = new Clock(), session = new Session(clock), rates = new EventRates(), feed = new Feed();
/** The server's time each second, ms. */
export const now = new Value(clock.now());
export const floor = new Value(new Floor());
/** Messages that pages handle by themselves: progress of calls, actions, alerts. */
export const ownEvents = new Value(/** @type {any} */ (null));
export const user = new Value(session.user);
/** Why a login is asked for; null: it is not. */
export const loginReason = new Value(/** @type {?string} */ (null));
/** When the floor was last known to be right, ms of the server's time. */
export let floorAt = 0;

export const channel = new ChannelConnection(new ChannelPosition(), clock, {
  snapshot: showFloor,
  message(message, text) {
    const at = clock.now();
    rates.count(at, channel.state.phase === "live" ? at - eventTime(message.id) : NaN);
    feed.add(message, text);
    const facts = factsOf(message);
    if (facts && /^(call\.progress|control\.|alert\.)/.test(facts.name)) ownEvents.set({ ...facts, data: message.data });
    if (changesFloor(facts)) refresh.event(message.id);
  },
  state(state) {
    connection.set(state);
    if (state.phase === "login") loginReason.set(state.reason);
  },
});
export const connection = new Value(channel.state);
const refresh = new FloorRefresh(() => channel.refresh());

/** Reading, placing and drawing a large snapshot are tasks of their own, so that none holds a frame up for long. */
async function showFloor(/** @type {any} */ snapshot) {
  const task = () => new Promise((resolve) => setTimeout(resolve));
  await task();
  const next = new Floor(floor.value);
  next.show(snapshot);
  floorAt = clock.now();
  await task();
  floor.set(next);
}

const refreshEvery = 15_000; // ms: figures of a day end at midnight without an event

/** Starts what runs while the page is open. */
export function start() {
  let refreshed = Date.now();
  setInterval(() => {
    now.set(clock.now());
    if (channel.state.phase !== "live" || document.hidden || Date.now() - refreshed < refreshEvery) return;
    refreshed = Date.now();
    channel.refresh();
  }, 1000);
  for (const name of ["online", "offline"]) addEventListener(name, () => channel.retryNow());
  document.addEventListener("visibilitychange", () => { if (!document.hidden) channel.retryNow(); });
  addEventListener("hashchange", () => route.set(parsed()));
  session.expired = (reason) => loginReason.set(reason);
}

/** Changes the filters of the channel; all displayed data restart with them. */
export async function subscribe(/** @type {import("./session.js").Filters} */ filters) {
  await session.subscribe(filters);
  floor.set(new Floor());
  feed.clear();
  channel.restart(session.channel);
}

/** Ends the session; the page is loaded again, without any data. */
export async function logout() {
  channel.stop();
  await session.logout();
  location.reload();
}

/** The address: #view/part?name=value. @returns {{view: string, part: string, query: URLSearchParams}} */
function parsed() {
  const [path, query = ""] = location.hash.slice(1).split("?");
  const [view, ...part] = path.split("/");
  return { view: view || "floor", part: part.map(decodeURIComponent).join("/"), query: new URLSearchParams(query) };
}
export const route = new Value(parsed());

/** The text of a query; empty values are left out. */
export function queryText(/** @type {Record<string, any>} */ query) {
  const given = Object.entries(query).filter(([, v]) => v !== "" && v !== undefined && v !== null);
  return new URLSearchParams(given.map(([k, v]) => [k, String(v)])).toString();
}

/** The address of a view; empty values are left out. */
export function link(/** @type {string} */ path, /** @type {Record<string, any>} */ query = {}) {
  const text = queryText(query);
  return `#${path}${text && `?${text}`}`;
}
export function go(/** @type {string} */ path, /** @type {Record<string, any>} */ query = {}) { location.hash = link(path, query); }

/** Changes parts of the present address, without a step in the history. */
export function adjust(/** @type {Record<string, any>} */ changes) {
  const { view, part, query } = route.value;
  history.replaceState(null, "", link([view, part].filter(Boolean).join("/"), { ...Object.fromEntries(query), ...changes }));
  route.set(parsed());
}

export const isAdmin = () => session.user?.role === "admin";
/** Whether the user acts on agents and calls (docs/roles.md). */
export const mayAct = () => ["admin", "supervisor", "agent"].includes(session.user?.role ?? "");
export const mayListen = () => ["admin", "supervisor"].includes(session.user?.role ?? "");

/** All rows of a report or list, page by page. */
export async function allPages(/** @type {string} */ path, /** @type {Record<string, any>} */ query = {},
  /** @type {string|undefined} */ account = undefined, maxPages = 40) {
  const rows = [];
  let start_key = "";
  for (let page = 0; page < maxPages; page++) {
    const text = queryText({ page_size: 1000, ...query, start_key });
    const { data, next_start_key = "" } = await session.request(`${path}?${text}`, { account });
    rows.push(...data);
    start_key = next_start_key;
    if (!start_key) return rows;
  }
  throw new Error("There are too many rows for this page: choose a shorter range or longer intervals");
}

/** The queues and agents that the server knows: those of the floor and of the figures of a week. */
export async function known(/** @type {string|undefined} */ account = undefined) {
  if (session.user?.role === "auditor") return { queues: [], agents: [] }; // it reads no figures
  const end = Math.floor(clock.now() / 1000), range = { startDate: end - 7 * 86400, endDate: end };
  const [queueRows, agentRows] = await Promise.all(["queue", "agent"].map((by) => allPages(`/api/v2/reports/${by}s`, { ...range, by }, account)));
  const inAccount = (/** @type {any} */ one) => !account || one.account === account;
  const queues = new Set([...queueRows.map((row) => row.queue_id), ...floor.value.queues.filter(inAccount).map(({ id }) => id)]);
  const agents = new Map(agentRows.map((row) => [row.agent_id, floor.value.nameOf(row.account_id, row.agent_id) || userPart(row.agent_id)]));
  for (const { id, name, account: of } of floor.value.agents) if (inAccount({ account: of })) agents.set(id, name || userPart(id));
  return { queues: [...queues].sort(), agents: [...agents].sort(([, a], [, b]) => a.localeCompare(b)) };
}
