/** The wall: the floor from five metres. What it shows is in its address, and remembered by the browser. */
import { total } from "./floor.js";
import { countStates, nameOf, stateNames, stateOf } from "./floor_page.js";
import { duration, time, userPart } from "./format.js";
import { percent } from "./formulas.js";
import { remember, remembered } from "./preferences.js";
import { clock, connection, floor, floorAt, go, known, now, route } from "./state.js";
import { Dialog, Form, html, useEffect, useLayoutEffect, quarter, useLoad, useMemo, usePlaces, useRef, useState, useValue } from "./ui.js";

/** @typedef {import("./floor.js").Queue} Queue */

/** The columns of a queue. @type {Record<string, {title: string, text: (q: Queue, at: number) => any, tone?: (q: Queue, at: number, limits: Limits) => string}>} */
const columns = {
  level: { title: "Service level", text: (q) => percent(q.level), tone: (q, _, { level }) => Number.isFinite(q.level) ? below(q.level * 100, level) : "" },
  waiting: { title: "Waiting", text: (q) => q.waiting, tone: (q, _, { waiting }) => above(q.waiting, waiting) },
  longest: { title: "Longest wait", text: (q, at) => q.since ? duration(at / 1000 - q.since) : "–",
    tone: (q, at, { longest }) => q.since ? above(at / 1000 - q.since, longest) : "good" },
  available: { title: "Available", text: (q) => q.agents?.available ?? 0, tone: (q) => q.waiting > 0 && !q.agents?.available ? "bad" : "" },
  talking: { title: "Talking", text: (q) => q.talking },
  offered: { title: "Calls", text: (q) => q.offered },
  abandoned: { title: "Abandoned", text: (q) => q.abandoned, tone: (q, _, { abandoned }) => q.offered ? above(q.abandoned / q.offered * 100, abandoned) : "" },
};

/** Two limits each: attention, and alarm. @typedef {Record<"level"|"waiting"|"longest"|"abandoned", [number, number]>} Limits */
/** @type {Record<string, {label: string, value: [number, number]}>} */
const limitFields = {
  level: { label: "Service level below, %", value: [80, 60] }, waiting: { label: "Callers waiting, from", value: [3, 6] },
  longest: { label: "Longest wait, s, from", value: [30, 90] }, abandoned: { label: "Abandoned, % of calls, from", value: [5, 10] },
};
const above = (n, [warn, bad]) => n >= bad ? "bad" : n >= warn ? "warn" : "good";
const below = (n, [warn, bad]) => n < bad ? "bad" : n < warn ? "warn" : "good";
/** Shapes beside the colours, for those who do not tell these apart. @type {Record<string, string>} */
const shapes = { good: "●", warn: "▲", bad: "■" };
/** Of a column with limits, so that a shape which comes or goes moves nothing. */
const hasShape = (name) => columns[name].tone !== undefined;
const toneNames = { good: "good", warn: "attention", bad: "alarm" };

/** The choices of an address. */
export function choicesOf(/** @type {URLSearchParams} */ query) {
  const list = (name) => (query.get(name) ?? "").split(",").filter(Boolean);
  const named = list("columns").filter((name) => Object.hasOwn(columns, name)), seconds = Number(query.get("rotate") ?? 10);
  const pair = (name) => {
    const [warn, bad] = list(`limit.${name}`).map(Number);
    return Number.isFinite(warn) && Number.isFinite(bad) ? [warn, bad] : limitFields[name].value;
  };
  return {
    queues: list("queues"), columns: named.length ? named : ["level", "waiting", "longest", "available", "abandoned"],
    agents: query.get("agents") !== "no", rotate: seconds >= 3 ? seconds : 10, theme: query.get("theme") ?? "",
    limits: /** @type {Limits} */ (Object.fromEntries(Object.keys(limitFields).map((name) => [name, pair(name)]))),
  };
}

const oldAfter = 5000; // ms since the last snapshot until data without a connection are called old

export function Wall() {
  const { query } = useValue(route), { agents, queues } = useValue(floor), at = useValue(now), state = useValue(connection), [settings, setSettings] = useState(false);
  const text = query.toString();
  useEffect(() => {
    const before = remembered("wall");
    if (text) remember("wall", text);
    else if (before) history.replaceState(null, "", `#wall?${before}`), route.set({ ...route.value, query: new URLSearchParams(before) });
  }, [text]);
  const choices = choicesOf(query), { limits } = choices, only = new Set(choices.queues);
  useLayoutEffect(() => {
    document.documentElement.dataset.theme = choices.theme;
    return () => { delete document.documentElement.dataset.theme; };
  }, [choices.theme]);
  useEffect(() => {
    const leave = (e) => { if (e.key === "Escape" && !document.querySelector("dialog[open]")) go("floor"); };
    addEventListener("keydown", leave);
    return () => removeEventListener("keydown", leave);
  }, []);
  const { shown, people, counts } = useMemo(() => {
    const ours = only.size ? agents.filter((a) => a.queues.some((q) => only.has(q))) : agents;
    return { shown: queues.filter((q) => !only.size || only.has(q.id)).toSorted((a, b) => a.id < b.id ? -1 : 1), people: ours, counts: countStates(ours) };
  }, [agents, queues, text]), sum = { ...total(shown), agents: counts };
  const isOld = state.phase !== "live" && at - floorAt > oldAfter;
  const digits = { minWidth: `${String(people.length).length}ch` };
  const hero = (name, title, sub = "") => html`<${Figure} title=${title} tone=${columns[name].tone?.(/** @type {any} */ (sum), at, limits)}
    number=${columns[name].text(/** @type {any} */ (sum), at)} sub=${sub} main=${name === "level"} />`;
  return html`<div class="wall" id="wall"><h1 class="unseen">Wall</h1>
    <header><p class="wall-title">${only.size ? [...only].map(userPart).join(", ") : "All queues"}</p>
      <p class="wall-time" role="status">${isOld ? html`<strong class="old">■ Not connected. These data are of ${time(floorAt)}.</strong>` : ""}</p>
        <p class="clock">${time(clock.now()).slice(0, 5)}</p>
      <button type="button" onClick=${() => setSettings(true)}>Settings</button><a class="button" id="wall-leave" href="#floor">Leave</a></header>
    <section class="heroes" data-old=${isOld ? "" : undefined} aria-label="Now and today">
      ${hero("level", "Service level today")}${hero("waiting", "Waiting")}${hero("longest", "Longest wait")}${hero("abandoned", "Abandoned today", sum.offered ? `of ${sum.offered}` : "")}
      <div class="hero states"><h2>Agents</h2><ul>${Object.entries(stateNames).filter(([name]) => counts[name] || name !== "other")
        .map(([name, title]) => html`<li key=${name} data-tone=${name}><b style=${digits}>${counts[name] ?? 0}</b> ${title}</li>`)}
        </ul>
        </div>
    </section>
    <div class=${choices.agents ? "areas" : "areas one"} data-old=${isOld ? "" : undefined}>
      <${Area} name="Queues" items=${shown} seconds=${choices.rotate} kind="queues" arrangement=${`${text} ${quarter(at)}`} keyOf=${(q) => `${q.account} ${q.id}`} widest=${(q) => userPart(q.id)} empty="No queue has calls or agents."
        lines=${2} columns=${choices.columns.length}
        draw=${(q) => html`<li key=${`${q.account} ${q.id}`} class="wall-queue"><span class="name">${userPart(q.id)}</span><dl>${choices.columns.map((name) => {
          const { title, text: show, tone } = columns[name], how = tone?.(q, at, limits) ?? "";
          return html`<div key=${name} data-tone=${how || undefined}><dt>${title}</dt><dd>${hasShape(name) && html`<${Shape} tone=${how} />`}${show(q, at)}
            </dd></div>`;
        })}</dl></li>`} />
      ${choices.agents && html`<${Area} name="Agents" items=${people} seconds=${choices.rotate} kind="people" arrangement=${`${text} ${quarter(at)}`} keyOf=${(a) => a.key} widest=${nameOf} empty="No agent is logged in."
        lines=${2} columns=${0}
        draw=${(a) => html`<li key=${a.key} class="wall-agent" data-tone=${stateOf(a)}><span class="name">${nameOf(a)}</span>
          <span class="state">${stateNames[stateOf(a)]} <span class="clock end">${duration(at / 1000 - a.since)}</span></span></li>`} />`}
    </div>
    ${settings && html`<${Settings} choices=${choices} close=${() => setSettings(false)} />`}
  </div>`;
}

function Figure({ title, number, sub, tone = "", main }) {
  const size = !main && String(number).length > 4 ? "number long" : "number";
  return html`<div class=${main ? "hero main" : "hero"} data-tone=${tone || undefined}><h2>${title}</h2><p><${Shape} tone=${tone} /><b class=${size}>${number}
    </b><span class="sub">${sub}</span></p></div>`;
}

/** Before the number, so that a number which grows moves nothing. */
function Shape({ tone }) {
  return shapes[tone] ? html`<span class="shape" role="img" aria-label=${toneNames[/** @type {"good"} */ (tone)]}>${shapes[tone]}</span>` : html`<span class="shape"></span>`;
}

const sizes = [1 / 14, 1 / 18, 1 / 22, 1 / 27, 1 / 33, 1 / 40, 1 / 49]; // of the wall's height: of names, largest first
const measuring = document.createElement("canvas").getContext("2d");

/**
 * Items as large as they fit on one page, else in the smallest size on several pages that follow
 * each other.
 */
function Area({ name, items, seconds, kind, widest, empty, draw, columns: numbers, lines, arrangement, keyOf }) {
  const host = useRef(null), kept = useRef({ key: "", font: Infinity }), [size, setSize] = useState({ width: 0, height: 0, wall: 0 }), [page, turn] = useState(0);
  useLayoutEffect(() => {
    const follow = new ResizeObserver(() => setSize({ width: host.current.clientWidth, height: host.current.clientHeight, wall: innerHeight }));
    follow.observe(host.current);
    return () => follow.disconnect();
  }, []);
  const { width, height, wall } = size, layout = useMemo(() => { // names grow with a new arrangement only
    const key = `${arrangement} ${width} ${height} ${wall}`, most = kept.current.key === key ? kept.current.font : Infinity;
    const fitted = fit(items.map(widest), { width, height, wall, numbers, lines, most });
    kept.current = { key, font: fitted.font };
    return fitted;
  }, [items, size, numbers, arrangement]);
  const pages = Math.max(1, Math.ceil(items.length / layout.capacity)), present = page % pages;
  const shown = useMemo(() => items.slice(present * layout.capacity, (present + 1) * layout.capacity), [items, present, layout]);
  const places = usePlaces(shown, keyOf, `${arrangement} ${present}`);
  useEffect(() => {
    if (pages === 1) return;
    const timer = setInterval(() => turn((n) => n + 1), seconds * 1000);
    return () => clearInterval(timer);
  }, [pages, seconds]);
  return html`<section class="area" aria-label=${name}><div class="area-body" ref=${host}>
    ${width > 0 && html`<ul class=${`wall-${kind}`} style=${{ fontSize: `${layout.font}px`, gridTemplateColumns: `repeat(${layout.columns}, minmax(0, 1fr))` }}>
      ${places.map(({ key, item }) => item ? draw(item) : html`<li key=${`gap ${key}`} class="gap" aria-hidden="true"></li>`)}</ul>`}
    ${items.length === 0 && html`<p class="empty">${empty}</p>`}</div>
    <p class="pages">${pages > 1 && html`<button type="button" onClick=${() => turn(page + 1)} ><span class="unseen">${name}, next page: </span>
      ${present + 1} / ${pages}</button>`}</p></section>`;
}

const gap = 0.4, padding = 1.2; // of the size of a name

/** The largest size of names in which all fit, else the smallest, with what a page then holds. */
export function fit(/** @type {string[]} */ names, /** @type {{width: number, height: number, wall: number, numbers: number, lines: number, most?: number}} */ { width, height, wall, numbers, lines, most = Infinity }) {
  let found = { font: 0, columns: 1, capacity: 1 };
  const widest = names.reduce((wide, name) => Math.max(wide, widthOf(name)), 0);
  for (const font of sizes.map((share) => Math.ceil(wall * share)).filter((one) => one <= most)) {
    const longest = widest * font;
    const least = Math.min(Math.max(longest + padding * font, numbers ? Math.max(8, Math.min(numbers, 3) * 5.2) * font : 9 * font), width);
    const columns = Math.max(1, Math.floor((width + gap * font) / (least + gap * font))), inside = (width - (columns - 1) * gap * font) / columns - padding * font;
    const nameLines = Math.max(1, Math.ceil(longest / Math.max(inside, 1))), numberLines = numbers ? Math.ceil(numbers / Math.max(1, Math.floor(inside / (5.2 * font)))) : 0;
    const tall = (numbers ? 1.3 * nameLines + 2.15 * numberLines + 0.9 : 1.3 * nameLines + 1.2 * (lines - 1) + 0.9) * font;
    const rows = Math.max(1, Math.floor((height + gap * font) / (tall + gap * font)));
    found = { font, columns, capacity: columns * rows };
    if (found.capacity >= names.length && rows * tall <= height) break;
  }
  return found;
}

/** The width of each text that was measured, as a share of the font's size. @type {Map<string, number>} */
const widths = new Map();

function widthOf(/** @type {string} */ text) {
  let width = widths.get(text);
  if (width === undefined && measuring) {
    if (widths.size === 0) measuring.font = `650 100px ${getComputedStyle(document.documentElement).fontFamily}`;
    widths.set(text, width = measuring.measureText(text).width / 100 * 1.03);
  }
  return width ?? text.length * 0.6;
}

function Settings({ choices, close }) {
  const { data } = useLoad(() => known(), []), queues = data?.queues ?? floor.value.queues.map(({ id }) => id);
  const save = (v) => {
    close();
    go("wall", { queues: (v.queues ?? []).join(","), columns: (v.columns ?? []).join(","), agents: v.agents ? "" : "no", rotate: v.rotate, theme: v.theme,
      ...Object.fromEntries(Object.keys(limitFields).map((name) => [`limit.${name}`, `${v.limits[name].warn ?? 0},${v.limits[name].bad ?? 0}`])) });
  };
  const limits = Object.fromEntries(Object.entries(choices.limits).map(([name, [warn, bad]]) => [name, { warn, bad }]));
  return html`<${Dialog} title="What the wall shows" wide onClose=${close}>
    <p class="hint">It is in the address, which may be sent or bookmarked, and this browser remembers it.</p>
    <${Form} key=${data ? "known" : ""} label="Show" submit=${save} initial=${{ ...choices, limits }} fields=${[
      { name: "queues", label: "Queues", type: "checks", options: [...new Set([...queues, ...choices.queues])].map((id) => [id, userPart(id)]),
        hint: "None chosen: all." },
      { name: "columns", label: "Of each queue", type: "checks", options: Object.entries(columns).map(([name, { title }]) => [name, title]) },
      { name: "agents", label: "Show agents", type: "bool" },
      { name: "rotate", label: "Seconds until the next page", type: "number", min: 3, max: 600 },
      { name: "theme", label: "Colours", type: "select", options: [["", "as the system"], ["light", "light"], ["dark", "dark"]] },
      ...Object.entries(limitFields).flatMap(([name, { label }]) => [["warn", "attention"], ["bad", "alarm"]].map(([part, title]) =>
        ({ name: `limits.${name}.${part}`, label: `${label}: ${title}`, type: "number", min: 0 }))),
    ]} /></${Dialog}>`;
}
