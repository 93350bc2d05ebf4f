/** Alerts: a banner on all live pages, their list, and the rules by which they begin. */
import { RequestError } from "./http.js";
import { stateNames } from "./floor_page.js";
import { date, duration, userPart } from "./format.js";
import { allPages, floor, isAdmin, known, link, now, ownEvents, session, user } from "./state.js";
import { Act, Dialog, Form, html, quarter, Table, useEffect, useLoad, useMemo, usePlaces, useState, useValue, Value } from "./ui.js";

const listPath = "/api/v2/alerts", rulesPath = "/api/v2/config/alerts", loadEvery = 60_000; // ms; events come at once
const shownDays = 7, maxEnded = 100;

/** The alerts that have not ended, and those that ended since the page was opened. @type {Value<any[]>} */
const active = new Value([]);

/** @type {Record<string, {title: string, unit: string}>} */
const metrics = {
  waiting: { title: "Callers waiting", unit: "callers" }, longest_wait_seconds: { title: "Longest wait", unit: "s" },
    service_level: { title: "Service level of the last hour", unit: "%" },
  abandoned: { title: "Abandoned in the last hour", unit: "calls" }, agents_available: { title: "Agents available", unit: "agents" },
    agent_state_seconds: { title: "An agent's time in a state", unit: "s" }, feed_connected: { title: "A platform's feed is connected", unit: "" },
};
const scale = (metric) => metric === "service_level" ? 100 : 1; // the server has shares

const isFeed = ({ metric }) => metric === "feed_connected"; // it is up or down, there is no other limit

/** What an alert is about. */
const aboutOf = (a) => a.feed ?? (a.agent_id ? floor.value.nameOf(a.account_id ?? session.user?.account_id ?? "", a.agent_id) || userPart(a.agent_id) : userPart(a.queue_id ?? ""));

/** More than 5 callers, for 20 s. @param {any} a an alert or the condition of a rule */
function conditionOf(a) {
  const { title, unit } = metrics[a.metric] ?? { title: a.metric, unit: "" }, n = (limit) => `${Math.round(limit * scale(a.metric) * 100) / 100}${unit ? ` ${unit}` : ""}`;
  if (a.metric === "feed_connected") return `A feed is down${a.for_seconds ? ` for ${a.for_seconds} s` : ""}`;
  const state = a.metric === "agent_state_seconds" ? a.agent_state ?? a.state : "";
  const limit = a.above !== undefined ? `above ${n(a.above)}` : `below ${n(a.below)}`;
  return [title, state && `(${stateNames[state] ?? state})`, limit, a.while_waiting && "while callers wait", a.for_seconds && `for ${a.for_seconds} s`]
    .filter(Boolean).join(" ");
}

async function load() {
  try {
    const present = await allPages(listPath);
    active.set([...present, ...active.value.filter((a) => a.ended_at).slice(-maxEnded)]);
  } catch (error) {
    if (!(error instanceof RequestError)) throw error; // the next one may be answered
  }
}

/** The active alerts: over the page, on the wall in a place of their own, so that nothing moves when one begins. */
export function AlertBanner({ wall }) {
  const alerts = useValue(active), me = useValue(user), at = useValue(now), [hidden, hide] = useState(() => new Set());
  useEffect(() => {
    if (!me || me.role === "auditor") return;
    load();
    const timer = setInterval(load, loadEvery), stop = ownEvents.watch(({ name, data }) => {
      if (name === "alert.started") active.set([...active.value.filter((a) => a.alert_id !== data.alert_id), data]);
      if (name === "alert.ended") active.set(active.value.map((a) => a.alert_id === data.alert_id ? { ...a, ...data } : a));
    });
    return () => {
      clearInterval(timer);
      stop();
    };
  }, [me?.id]);
  const shown = alerts.filter((a) => !a.ended_at && !hidden.has(a.alert_id)), most = innerWidth < 700 ? 1 : wall ? 2 : 3;
  return html`<div class="banners" role="status">${shown.length > 0 && html`<div class="banner"><span aria-hidden="true">■</span>
    ${shown.slice(0, most).map((a) => html`<span key=${a.alert_id}>${a.name}${aboutOf(a) ? `: ${aboutOf(a)}` : ""} <span class="clock" aria-hidden="true">
      ${duration(at / 1000 - Number(a.started_at))}</span></span>`)}
    ${shown.length > most && html`<span>and ${shown.length - most} more</span>`}<span class="end">
      <a href="#alerts">Alerts</a> <button type="button" class="plain" onClick=${() => hide(new Set(alerts.map((a) => a.alert_id)))}>Hide</button></span>
      </div>`}${wall && shown.length === 0 && html`<p class="calm">${alerts.every((a) => a.ended_at) ? "No alerts" : "The alerts are hidden"}</p>`}</div>`;
}

export function Alerts() {
  const present = useValue(active), at = useValue(now), end = Math.floor(at / 1000);
  const { data, error, busy, reload } = useLoad(() => allPages(listPath, { state: "ended", startDate: end - shownDays * 86400, endDate: end }), [quarter(at)]);
  const started = (a) => Number(a.started_at), live = useMemo(() => present.toSorted((a, b) => Number(Boolean(a.ended_at)) - Number(Boolean(b.ended_at)) || started(b) - started(a)), [present]);
  const rows = usePlaces(live, (a) => a.alert_id, String(quarter(at))).map(({ item }) => item).filter(Boolean);
  const over = data?.filter((a) => !present.some((one) => one.alert_id === a.alert_id));
  const table = (name, list, empty) => html`<${Table} name=${name} busy=${busy} empty=${empty} rows=${list} keyOf=${(a) => a.alert_id}
        columns=${[{ title: "Alert", cell: (a) => a.name }, { title: "Of", cell: (a) => a.queue_id ? html`<a href=${link("floor", { queue: a.queue_id })}>
        ${aboutOf(a)}
        </a>` : aboutOf(a) },
        { title: "State", cell: (a) => html`<span class="chip" data-tone=${a.ended_at ? "" : "bad"}>${a.ended_at ? "Over" : "Active"}</span>` },
          { title: "Began", cell: (a) => date(started(a)) },
          { title: "Lasted", number: true, cell: (a) => duration((a.ended_at ? Number(a.ended_at) : at / 1000) - started(a)) },
        { title: "Condition", cell: conditionOf }]} />`;
  return html`<div class="view" id="alerts"><section class="panel live" aria-labelledby="alerts-title"><header><h1 id="alerts-title">Alerts</h1></header>
      ${table("Alerts", rows, "No alert since this page was opened.")}</section>
    <section class="panel" aria-labelledby="over-title"><header><h2 id="over-title">Over, of the last ${shownDays} days</h2></header>
      ${error && html`<p class="output bad" role="alert">${error} <button type="button" onClick=${reload}>Try again</button></p>`}
      ${table("Alerts that are over", over, error ? "" : "None.")}</section>${isAdmin() && html`<${Rules} />`}</div>`;
}

/** @type {Record<string, string>} of the form's fields by those of a rule */
const fieldOf = {
  "when.metric": "metric", "when.above": "limit", "when.below": "limit", "when.for_seconds": "for_seconds", "when.state": "state",
  "when.while_waiting": "while_waiting", "when.min_calls": "min_calls",
};

function Rules() {
  const account = session.user?.account_id, { data, error, reload } = useLoad(() => session.request(rulesPath, { account }), []), ids = useLoad(() => known(), []).data ?? { queues: [],
    agents: [] };
  const [open, setOpen] = useState(-1), [undo, setUndo] = useState(null), rules = data?.alerts ?? [];
  const put = async (alerts) => { // null: inherited
    await session.request(rulesPath, alerts ? { method: "PUT", account, body: { alerts } } : { method: "DELETE", account });
    await reload();
  };
  const change = async (alerts, text = "Saved") => {
    const before = data.inherited_from ? null : rules;
    await put(alerts);
    setOpen(-1);
    setUndo({ text, before });
  };
  const save = async (values) => {
    const { comparison, limit, name, queues, agents, ...when } = values, bound = isFeed(when) ? { below: 1 } : { [comparison]: limit === undefined ? undefined : limit / scale(when.metric) };
    const rule = { name, when: { ...when, for_seconds: when.for_seconds ?? 0, ...bound }, queues, agents };
    try {
      await change(rules.toSpliced(open, open < rules.length ? 1 : 0, rule));
    } catch (problem) {
      if (!(problem instanceof RequestError)) throw problem;
      throw new RequestError(problem.status, problem.message, problem.fields.map(({ field, ...rest }) => {
        const path = field.replace(/^alerts\[\d+\]\.?/, "");
        return { ...rest, field: fieldOf[path] ?? path };
      }));
    }
  };
  const rule = rules[open], is = (/** @type {string[]} */ ...names) => (v) => names.includes(v.metric);
  const initial = rule ? { ...rule.when, name: rule.name, queues: rule.queues, agents: rule.agents, comparison: rule.when.above === undefined ? "below" : "above",
    limit: Math.round((rule.when.above ?? rule.when.below) * scale(rule.when.metric) * 100) / 100, above: undefined, below: undefined } : {};
  const ofQueues = ["waiting", "longest_wait_seconds", "service_level", "abandoned", "agents_available"];
  return html`<section class="panel" aria-labelledby="rules-title"><header><h2 id="rules-title">When an alert begins</h2>
    <a class="button end" href=${link("admin/webhooks", { new: "alerts" })}>Send alerts by a message</a>
    ${data && html`<button type="button" class="primary" onClick=${() => setOpen(rules.length)}>New alert</button>`}</header>
    ${data && !data.inherited_from && html`<p class="actions">
      <${Act} run=${() => change(null, "The rules are inherited")}>Use the rules from above again</${Act}></p>`}
    <p class="hint">A change is in force about 15 seconds later. Each queue, agent and feed has alerts of its own.</p>
    ${data?.inherited_from && html`<p class="hint">
      ${data.inherited_from === "default" ? "These come with Trunkline" : `These are of the account ${data.inherited_from}`}, until this account has its own.
      </p>`}
    ${error && html`<p class="output bad" role="alert">${error}</p>`}
    ${undo && html`<div class="once" role="status">${undo.text}. <${Act} run=${async () => { await put(undo.before); setUndo(null); }}>Undo</${Act}></div>`}
    ${data && html`<${Table} name="Rules of alerts" empty="No alert is set." rows=${rules} keyOf=${(r) => r.name} columns=${[
      { title: "Name", cell: (r) => html`<button type="button" class="plain" aria-haspopup="dialog" onClick=${() => setOpen(rules.indexOf(r))}>${r.name}
        </button>` }, { title: "Condition", cell: (r) => conditionOf(r.when) },
      { title: "Of", cell: (r) => [...r.queues ?? [], ...r.agents ?? []].map(userPart).join(", ") || "all" }]}
      actions=${(r) => html`<${Act} class="danger" aria-label=${`Delete ${r.name}`}
        run=${() => change(rules.filter((one) => one !== r), `${r.name} was deleted`)}>Delete</${Act}>`} />`}
    ${open >= 0 && html`<${Dialog} title=${rule ? rule.name : "New alert"} wide onClose=${() => setOpen(-1)}>
      <${Form} initial=${initial} submit=${save} fields=${[
      { name: "name", label: "Name", required: true, maxlength: 100, placeholder: "Many callers wait in sales", autofocus: true },
      { name: "metric", label: "What", type: "select", value: "waiting", options: Object.entries(metrics).map(([name, { title }]) => [name, title]) },
      { name: "state", label: "State of the agent", type: "select", value: "break", options: Object.entries(stateNames), when: is("agent_state_seconds") },
      { name: "comparison", label: "Is", type: "select", value: "above", options: ["above", "below"], when: (v) => !isFeed(v) },
      { name: "limit", label: "Limit", type: "number", required: true, min: 0, step: "any",
        hint: "Callers, calls, agents, seconds, or per cent of the service level.", when: (v) => !isFeed(v) },
      { name: "for_seconds", label: "For at least, s", type: "number", min: 0, max: 86400, value: 0 },
      { name: "while_waiting", label: "Only while callers wait", type: "bool", when: is("agents_available") },
        { name: "min_calls", label: "Only from this number of calls", type: "number", min: 0, when: is("service_level") },
      { name: "queues", label: "Queues", type: "list", options: ids.queues.map((id) => [id, userPart(id)]), when: is(...ofQueues, "agent_state_seconds") },
      { name: "agents", label: "Agents", type: "list", options: ids.agents, when: is("agent_state_seconds") }]} /></${Dialog}>`}</section>`;
}
