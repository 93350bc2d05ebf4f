/** For engineers: the events as they come, their rate and delay, the channel's filters, and what became of an event. */
import { eventTypes } from "./event_types.js";
import { Explain } from "./explain.js";
import { callableNumbers, date, eventName, milliseconds, rate, summary, time, typeName } from "./format.js";
import { channel, connection, feed, isAdmin, link, now, rates, session, subscribe } from "./state.js";
import { Copy, Facts, Form, html, memo, useCallback, useNewest, useRef, useState, useValue } from "./ui.js";
import { Sparkline } from "./plot.js";

const maxJSON = 64 << 10;

export function Events() {
  return html`<div class="view" id="events"><h1 class="unseen">Events</h1><${Rates} /><${Filters} /><${List} /><${Transport} /></div>`;
}

function Rates() {
  const at = useValue(now), { rate: perSecond, median, p95 } = rates.recent(at);
  return html`<section class="cards-row" aria-label="Rate and latency">
    <div class="figure chart"><h2>Events</h2><p class="number">${rate(perSecond)} <small>per second</small></p>
      <${Sparkline} values=${rates.rates(at)} minTop=${2} /></div>
    <div class="figure chart"><h2>Latency</h2><p class="number">${milliseconds(median)} <small>
      ${Number.isFinite(p95) ? `95 % within ${milliseconds(p95)}` : ""}</small></p><${Sparkline} values=${rates.delays(at)} minTop=${50} /></div>
  </section>`;
}

/** The filters of the channel's token: they narrow all live pages. */
function Filters() {
  const [version, restart] = useState(0), fields = [["queue_ids", "Queues"], ["agent_ids", "Agents"], ["call_ids", "Calls"], ["names", "Names (queue.*)"]];
  const apply = async (filters) => {
    await subscribe(Object.fromEntries(Object.entries(filters).filter(([, list]) => list.length > 0)));
    restart(version + 1);
  };
  const active = Object.keys(session.filters).length;
  return html`<details class="panel" open=${active > 0}><summary>Filter of the channel: ${active ? `${active} of 4 in force, on all live pages` : "none"}
    </summary>
    <${Form} key=${version} id="wanted" label="Apply" initial=${session.filters} submit=${apply}
      fields=${fields.map(([name, label]) => ({ name, label, type: "list" }))}>
      ${active > 0 && html`<button type="button" onClick=${() => apply({})}>Show all</button>`}</${Form}></details>`;
}

function List() {
  useValue(feed.changed);
  const [filter, setFilter] = useState({}), [open, setOpen] = useState(() => new Set());
  const [paused, setPaused] = useState(null), list = useRef(null);
  useNewest(list);
  const shown = paused && paused.filter === filter ? paused.list : feed.matching(filter);
  const set = (name) => (e) => {
    const next = { ...filter, [name]: e.target.value };
    setFilter(next);
    if (paused) setPaused({ ...paused, filter: next, list: feed.matching(next) });
  };
  const toggle = useCallback((id) => setOpen((before) => {
    const next = new Set(before);
    if (!next.delete(id)) next.add(id);
    return next;
  }), []);
  // The arrow keys move between entries, because they are too many for the tab key.
  const move = (event) => {
    const entries = [...list.current.querySelectorAll(".entry")], here = entries.indexOf(document.activeElement);
    if (here < 0 && document.activeElement !== list.current) return; // inside an open entry
    const to = { ArrowDown: here + 1, ArrowUp: here - 1, Home: 0, End: entries.length - 1 }[event.key];
    if (to === undefined || !entries[to]) return;
    event.preventDefault();
    entries[to].focus();
  };
  return html`<section class="panel stream" aria-labelledby="feed-title">
    <header><h2 id="feed-title">Events</h2><span id="feed-count" class="sub">
      ${paused ? `Paused, ${feed.total - paused.at} new` : `${feed.total} since this page was opened`}</span>
      <button type="button" onClick=${() => { feed.clear(); setOpen(new Set()); setPaused(null); }}>Clear</button>
      <button id="feed-pause" type="button" aria-pressed=${String(Boolean(paused))}
        onClick=${() => setPaused(paused ? null : { at: feed.total, filter, list: shown })}>${paused ? "Resume" : "Pause"}</button>
        </header>
    <div class="form inline" role="search" aria-label="Filter events">
      <div class="field"><label for="feed-type">Type</label><select id="feed-type" onChange=${set("type")}><option value="">All types</option>
        ${eventTypes.map((type) => html`<option value=${type}>${typeName(type)}</option>`)}</select></div>
      <div class="field"><label for="feed-account">Account</label><select id="feed-account" onChange=${set("account")}><option value="">All accounts</option>
        ${[...feed.accounts].map((id) => html`<option value=${id}>${id}</option>`)}</select></div>
      <div class="field"><label for="feed-text">Text</label>
        <input id="feed-text" type="search" autocomplete="off" spellcheck="false" placeholder="id, agent, number …" onInput=${set("text")} /></div>
    </div>
    <div class="scroll" tabindex="0" ref=${list} onKeyDown=${move} role="region" aria-label="Events, newest first. Arrow keys move, Enter opens.">
      <ol id="feed" class="feed">${shown.map((event) => html`<${Entry} key=${event.message.id} event=${event} open=${open.has(event.message.id)}
        toggle=${toggle} />`)}
        </ol>
      ${shown.length === 0 && html`<p class="empty">${feed.isEmpty ? "Events appear here as they happen." : "No event matches."}</p>`}
    </div>
  </section>`;
}

/** @type {any} */
const Entry = memo(({ event, open, toggle }) => {
  const m = event.message;
  return html`<li data-id=${m.id}><button type="button" class="entry" tabindex="-1" aria-expanded=${String(open)} aria-controls=${`d-${m.id}`}
    onClick=${() => toggle(m.id)}>
    <span class="clock">${time(m.timestamp * 1000)}</span><span class="kind">${eventName(m)}</span><span class="about">${summary(m)}</span></button>
    ${open && html`<${Details} event=${event} />`}</li>`;
});

function Details({ event: { message: m, text } }) {
  const json = JSON.stringify(m, null, 2), facts = m.metadata?.facts ?? {};
  return html`<div class="details" id=${`d-${m.id}`}>
    <${Facts} of=${[["Type", m.type], ["Account", m.account_id], ["Happened", date(m.timestamp)], ["Name", facts.name ?? "from before events had facts"],
      ["Source", m.metadata?.source], ["Format", m.metadata?.original_format]]} />
    <p class="actions"><${Copy} text=${() => m.id}>Copy id</${Copy}><${Copy} text=${() => text}>Copy JSON</${Copy}>
      ${facts.call_id && html`<a class="button" href=${link(`history/call/${encodeURIComponent(facts.interaction_id ?? facts.call_id)}`, { at: m.timestamp })}>The call</a>`}
      ${callableNumbers(m).map((number) => html`<a class="button" href=${link("phone", { number })}>Call ${number}</a>`)}</p>
    ${isAdmin() && html`<${Explain} id=${m.id} />`}
    <pre tabindex="0" aria-label="The event as JSON">${json.length > maxJSON ? `${json.slice(0, maxJSON)}\n…` : json}</pre></div>`;
}

function Transport() {
  const state = useValue(connection);
  useValue(feed.changed);
  return html`<footer class="foot"><${Facts} of=${[["Transport", html`<span id="transport">${state.transport || "–"}</span>`],
    ["Disconnects", state.disconnects], ["Last event", html`<code>${channel.state.lastID || "–"}</code>`]]} /></footer>`;
}
