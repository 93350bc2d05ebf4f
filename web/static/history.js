/** History: figures of queues and agents over a range, beside the week before, and the calls behind them. Each view has its address. */
import { Abandoned, Calls } from "./history_calls.js";
import { CallPage } from "./call_page.js";
import { duration, milliseconds, userPart } from "./format.js";
import { averageWait, handlingTime, occupancy, otherCalls, otherTime, percent, serviceLevel, sum, sumByInterval } from "./formulas.js";
import { localText, rangeNames, rangeOf, weekBefore } from "./history_range.js";
import { Bars } from "./plot.js";
import { adjust, allPages, clock, floor, isAdmin, known, link, queryText, route, session } from "./state.js";
import { Act, html, Shares, Table, useEffect, useLoad, useMemo, useValue } from "./ui.js";

/** @typedef {import("./formulas.js").Row} Row @typedef {ReturnType<typeof rangeOf>} Range */

const reloadEvery = 15_000; // ms

/** @type {Record<string, string>} */
const parts = { queues: "Queues", agents: "Agents", calls: "Calls", abandoned: "Not answered" };

export function History() {
  const { part, query } = useValue(route);
  if (part.startsWith("call/")) return html`<${CallPage} key=${part + query} id=${part.slice(5)} query=${query} />`;
  const shown = Object.hasOwn(parts, part) ? part : "queues", range = useMemo(() => rangeOf(query, clock.now()), [query.toString()]), kept = Object.fromEntries(query);
  const page = { queues: Queues, agents: Agents, calls: Calls, abandoned: Abandoned }[shown];
  return html`<div class="view" id="history"><h1 class="unseen">History</h1><section class="panel">
      <nav class="tabs" aria-label="History"><${Tabs} shown=${shown} kept=${kept} /></nav><${Choice} range=${range} query=${query} part=${shown} /></section>
    <${page} range=${range} query=${query} /></div>`;
}

function Tabs({ shown, kept }) {
  return Object.entries(parts).map(([name, title]) => html`<a key=${name}
    href=${link(`history/${name}`, { ...kept, agent: ["queues", "abandoned"].includes(name) ? "" : kept.agent })}
    aria-current=${name === shown ? "page" : undefined}>${title}
    </a>`);
}

/** @param {{range: Range, query: URLSearchParams, part: string}} properties */
function Choice({ range, query, part }) {
  const account = query.get("account") ?? "", { data } = useLoad(() => known(account || undefined), [account]);
  const accounts = useLoad(async () => isAdmin() ? allPages("/api/v2/accounts") : [], []).data ?? [];
  const select = (label, name, value, options, change = (v) => adjust({ [name]: v })) =>
    html`<div class="field"><label for=${`choice-${name}`}>${label}</label><select id=${`choice-${name}`} onChange=${(e) => change(e.target.value)}>
      ${(options.some(([v]) => v === value) ? options : [...options, [value, value]]).map(([v, title]) => html`<option value=${v} selected=${v === value}>
        ${title}</option>`)}</select></div>`;
  const choose = (name) => adjust(name === "custom" ? { range: "", from: localText(range.start), to: localText(range.end - 1) } : { range: name, from: "",
    to: "" });
  const date = (label, name, seconds) => html`<div class="field"><label for=${`choice-${name}`}>${label}</label>
    <input id=${`choice-${name}`} type="date" value=${localText(seconds)} onChange=${(e) => adjust({ from: localText(range.start),
      to: localText(range.end - 1), range: "", [name]: e.target.value })} />
      </div>`;
  return html`<div class="form inline" role="search" aria-label="Range">
    ${select("Range", "range", range.name, Object.entries(rangeNames), choose)}${date("From", "from", range.start)}${date("Until", "to", range.end - 1)}
    ${part === "queues" && select("Intervals", "interval", query.get("interval") ?? "", [["", "automatic"], ["900", "15 minutes"], ["3600", "1 hour"],
      ["86400", "1 day"]])}
    ${part !== "agents" && select("Queue", "queue", query.get("queue") ?? "", [["", "All queues"], ...(data?.queues ?? []).map((id) => [id, userPart(id)])])}
    ${["agents", "calls"].includes(part) && select("Agent", "agent", query.get("agent") ?? "", [["", "All agents"], ...(data?.agents ?? [])])}
    ${accounts.length > 1 && select("Account", "account", account, [["", session.user?.account_id], ...accounts.filter((a) => a.id !== session.user?.account_id).map((a) => [a.id, a.name])])}
    ${query.get("from")?.length === 16 && html`<p class="hint">
      ${new Date(range.start * 1000).toLocaleString()} – ${new Date(range.end * 1000).toLocaleString()}</p>`}</div>`;
}

/** A button that saves the CSV of a report. */
export function CSV({ path, query, name }) {
  const save = async () => {
    const { account, ...rest } = query;
    const response = await session.request(`${path}?${queryText({ ...rest, format: "csv" })}`, { account, raw: true, timeout: 120_000 });
    const url = URL.createObjectURL(await response.blob()), anchor = document.createElement("a");
    Object.assign(anchor, { href: url, download: name });
    anchor.click();
    URL.revokeObjectURL(url);
  };
  return html`<${Act} run=${save}>CSV</${Act}>`;
}

/** The query of a report for a range. @param {Range} range @param {URLSearchParams} query */
export function reportQuery(range, query) {
  return { startDate: Math.floor(range.start), endDate: Math.ceil(range.end) - 1, queue_id: query.get("queue") ?? "", agent_id: query.get("agent") ?? "" };
}

const time = new Intl.DateTimeFormat(undefined, { hour: "2-digit",
  minute: "2-digit", hour12: false }), day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const minutes = (ms) => Number.isFinite(ms) ? duration(ms / 1000) : "–";

/** @param {{range: Range, query: URLSearchParams}} properties */
function Queues({ range, query }) {
  const account = query.get("account") || undefined, { agent_id: _, ...wanted } = reportQuery(range, query), key = query.toString();
  const read = (r, by) => allPages("/api/v2/reports/queues", { ...wanted, startDate: Math.floor(r.start), endDate: Math.ceil(r.end) - 1,
    interval: range.interval, by }, account);
  const { data, error, busy, reload } = useLoad(async () => {
    const [intervals, present, earlier] = await Promise.all([read(range, "interval"), read(range, "queue"), read(weekBefore(range), "queue")]);
    return { range, intervals, present, earlier };
  }, [key]);
  const figures = useMemo(() => data && summary(data), [data]);
  useEffect(() => { // a range that is not over changes
    const timer = setInterval(() => { if (range.end * 1000 > clock.now() && !document.hidden) reload(); }, reloadEvery);
    return () => clearInterval(timer);
  }, [reload]);
  if (!figures) return html`<${Pending} error=${error} reload=${reload} />`;
  const { all, before, queues, bars } = figures, kept = Object.fromEntries(query);
  const card = (title, number, then, href = "") => html`<div class="figure"><h2>${title}</h2><p class="number">${href ? html`<a href=${href}>${number}
    </a>` : number}</p><p class="sub">week before: ${then}</p></div>`;
  return html`${error && html`<${Pending} error=${error} reload=${reload} />`}
    <section class="cards-row" aria-label="In the range" aria-busy=${String(busy)}>
      ${card("Service level", percent(serviceLevel(all)), html`<b>${percent(serviceLevel(before))}</b> ${difference(serviceLevel(all), serviceLevel(before))}`)}
      ${card("Offered", all.offered, before.offered, link("history/calls", kept))}
      ${card("Answered", all.answered, before.answered)}
      ${card("Not answered", all.abandoned, before.abandoned, link("history/abandoned", kept))}
      ${card("Average wait", milliseconds(averageWait(all)), milliseconds(averageWait(before)))}${card("Longest wait", minutes(all.wait_ms_max || NaN), minutes(before.wait_ms_max || NaN))}
    </section>
    <section class="panel" aria-labelledby="plot-title"><header><h2 id="plot-title">Calls by interval</h2><span class="end">
      <${CSV} path="/api/v2/reports/queues" name="queues.csv" query=${{ ...wanted, account, interval: range.interval }} /></span></header>
      <${Bars} title="Calls by interval" summary=${`${all.offered} offered, ${all.answered} answered, ${all.abandoned} abandoned`}
        bars=${bars.map(({ row, href, name, label }) => ({ label, href, values: [row.answered, row.abandoned, otherCalls(row)],
        text: `${name}: ${row.offered} offered, ${row.answered} answered, ${row.abandoned} abandoned, service level ${percent(serviceLevel(row))}` }))}
        parts=${[{ name: "Answered", tone: "answered" }, { name: "Abandoned", tone: "abandoned" }, { name: "Waiting or left otherwise", tone: "others" }]} />
      <details><summary>Numbers</summary><${Table} name="Calls by interval" rows=${bars} columns=${[{ title: "Interval", cell: (b) => html`<a href=${b.href}>
        ${b.name}</a>` },
        ...["offered", "answered", "abandoned"].map((name) => ({ title: name[0].toUpperCase() + name.slice(1), number: true, cell: (b) => b.row[name] })),
        { title: "Service level", number: true, cell: (b) => percent(serviceLevel(b.row)) }]} /></details></section>
    <section class="panel" aria-labelledby="by-queue"><header><h2 id="by-queue">Queues</h2></header>
      <${Table} name="Queues" empty="No call entered a queue in this range." rows=${queues} keyOf=${(q) => q.id} columns=${[
      { title: "Queue", cell: (q) => html`<a href=${link("history/queues", { ...kept, queue: q.id })} title=${q.id}>${userPart(q.id)}</a>` },
      { title: "Service level", number: true, cell: (q) => percent(serviceLevel(q.now)) },
        { title: "Week before", number: true, cell: (q) => html`${percent(serviceLevel(q.before))} ${difference(serviceLevel(q.now), serviceLevel(q.before))}` },
      { title: "Offered", number: true, cell: (q) => html`<a href=${link("history/calls", { ...kept, queue: q.id })}>${q.now.offered}</a>` },
        { title: "Answered", number: true, cell: (q) => q.now.answered },
      { title: "Not answered", number: true, cell: (q) => html`<a href=${link("history/abandoned", { ...kept, queue: q.id })}>${q.now.abandoned}</a>` },
        { title: "Average wait", number: true, cell: (q) => milliseconds(averageWait(q.now)) },
      { title: "Handling time", number: true, cell: (q) => minutes(handlingTime(q.now)) },
        { title: "Longest wait", number: true, cell: (q) => minutes(q.now.wait_ms_max) },
    ]} /></section>`;
}

export function Pending({ error, reload }) {
  if (!error) return html`<p class="panel empty" role="status">Loading …</p>`;
  return html`<div class="panel actions" role="alert"><p class="output bad">${error}</p><button type="button" onClick=${reload}>Try again</button></div>`;
}

/** The change of a share in points, in words and with an arrow. */
function difference(/** @type {number} */ now, /** @type {number} */ before) {
  const points = Math.round(now * 100) - Math.round(before * 100);
  if (!Number.isFinite(points)) return "";
  return html`<span data-tone=${points < 0 ? "bad" : "good"} class="change">
    ${points > 0 ? `▲ ${points} points up` : points < 0 ? `▼ ${-points} points down` : "= the same"}</span>`;
}

/** What a range shows. @param {{range: Range, intervals: Row[], present: Row[], earlier: Row[]}} loaded sums by interval, by queue, and of the week before */
export function summary({ range, intervals, present, earlier }) {
  const past = new Map(earlier.map((row) => [row.queue_id, row])), none = sum([]);
  const queues = present.map((row) => ({ id: row.queue_id, now: row, before: past.get(row.queue_id) ?? none }))
    .sort((a, b) => b.now.offered - a.now.offered || (a.id < b.id ? -1 : 1));
  const byStart = range.interval < 86400 ? sumByInterval(intervals, range.start, range.interval, Math.min(clock.now(), range.end * 1000 - 1)) : intervals.toReversed();
  const bars = byStart.map((row) => {
    const start = row.interval_start, end = start + row.interval_seconds, daily = range.interval === 86400, several = range.end - range.start > 90_000;
    const clockName = `${time.format(start * 1000)}–${time.format(end * 1000)}`, name = daily ? day.format(start * 1000) : several ? `${day.format(start * 1000)}, ${clockName}` : clockName;
    const { query } = route.value, kept = { ...Object.fromEntries(query), range: "", interval: "", from: localText(start, true), to: localText(end, true) };
    return { row, name, label: daily ? name : start % 3600 === 0 ? time.format(start * 1000) : "",
      href: link(daily ? "history/queues" : "history/calls", kept) };
  });
  return { all: sum(present), before: sum(earlier), queues, bars };
}

/** @param {{range: Range, query: URLSearchParams}} properties */
function Agents({ range, query }) {
  const account = query.get("account") || undefined, { queue_id: _, ...wanted } = reportQuery(range, query), reported = { ...wanted, interval: 86400 };
  const { data, error, busy, reload } = useLoad(() => allPages("/api/v2/reports/agents", { ...reported, by: "agent" }, account), [query.toString()]);
  if (!data) return html`<${Pending} error=${error} reload=${reload} />`;
  const order = (row) => Number.isFinite(occupancy(row)) ? occupancy(row) : -1;
  const rows = data.toSorted((a, b) => order(b) - order(a) || (a.agent_id < b.agent_id ? -1 : 1)), kept = Object.fromEntries(query);
  const ms = (title, name) => ({ title, number: true, cell: (row) => minutes(row[name]) });
  const name = (row) => floor.value.nameOf(row.account_id, row.agent_id) || userPart(row.agent_id);
  return html`<section class="panel" aria-labelledby="by-agent" aria-busy=${String(busy)}><header><h2 id="by-agent">Agents</h2>
      <ul class="legend"><li data-part="talking">Talking</li><li data-part="wrap_up">Wrap up</li><li data-part="available">Available</li>
        <li data-part="break">Break</li><li data-part="others">Ringing, other</li></ul>
      <span class="end"><${CSV} path="/api/v2/reports/agents" name="agents.csv" query=${{ ...reported, account }} /></span></header>
    <${Table} name="Agents" empty="No agent was logged in in this range." rows=${rows} keyOf=${(row) => row.agent_id} columns=${[
      { title: "Agent", cell: (row) => html`<a href=${link("history/calls", { ...kept, agent: row.agent_id })} title=${row.agent_id}>${name(row)}</a>` },
        { title: "Occupancy", number: true, cell: (row) => percent(occupancy(row)) },
      { title: "Times", cell: (row) => html`<${Shares} label=${`Times of ${name(row)}`} parts=${[["talking", row.talking_ms], ["wrap_up", row.wrap_up_ms],
        ["available", row.available_ms], ["break", row.break_ms], ["others", otherTime(row)]].map(([tone, part]) => ({ tone, part }))} />` },
      ms("Talking", "talking_ms"), ms("Wrap up", "wrap_up_ms"), ms("Available", "available_ms"), ms("Break", "break_ms"), ms("Logged in", "logged_in_ms"),
      { title: "Answered", number: true, cell: (row) => html`<a href=${link("history/calls", { ...kept, agent: row.agent_id })}>${row.answered}</a>` },
        { title: "No answer", number: true, cell: (row) => row.no_answer },
    ]} /></section>`;
}
