/** The floor: the day so far, queues, agents and calls as they are, with the actions that the user's role has. */
import { act, agentKey, asked, callKey, callLink, RecordingActions } from "./actions.js";
import { nameOf, total } from "./floor.js";
import { duration, shorten, userPart } from "./format.js";
import { percent } from "./formulas.js";
import { adjust, floor, isAdmin, known, link, mayAct, mayListen, now, route } from "./state.js";
import { Act, Dialog, Form, html, memo, quarter, Table, useLayoutEffect, useLoad, useMemo, usePlaces, useRef, useState, useValue } from "./ui.js";

/** @typedef {import("./floor.js").Agent} Agent @typedef {import("./floor.js").Call} Call @typedef {import("./floor.js").Queue} Queue */

const maxTiles = 300, maxRows = 100;
/** @type {Record<string, string>} */
export const stateNames = { available: "Available", ringing: "Ringing", talking: "On a call", wrap_up: "After call", break: "On break", other: "Other" };
/** @type {Record<string, {name: string, rank: number}>} */
const callStates = { waiting: { name: "Waiting", rank: 0 }, ringing: { name: "Ringing", rank: 1 }, talking: { name: "Talking", rank: 2 },
  held: { name: "Held", rank: 2 } };
const collator = new Intl.Collator(undefined, { numeric: true });

/** The agent's state; "other" for one unknown to this board. */
export function stateOf(/** @type {Agent} */ { state }) { return Object.hasOwn(stateNames, state) ? state : "other"; }
export { nameOf } from "./floor.js";

/** The number of agents in each state. @returns {Record<string, number>} */
export function countStates(/** @type {Agent[]} */ agents) {
  /** @type {Record<string, number>} */
  const counts = {};
  for (const a of agents) counts[stateOf(a)] = (counts[stateOf(a)] ?? 0) + 1;
  return counts;
}

export function FloorPage() {
  const { agents, calls, queues } = useValue(floor), { query } = useValue(route), said = useValue(asked), [open, setOpen] = useState("");
  const queue = query.get("queue") ?? "", state = query.get("state") ?? "", text = query.get("agent") ?? "";
  const shown = useMemo(() => ({
    queues: queue ? queues.filter((q) => q.id === queue) : queues,
    calls: (queue ? calls.filter((c) => c.queue === queue) : calls).toSorted((a, b) => rank(a) - rank(b) || a.since - b.since),
    agents: queue ? agents.filter((a) => a.queues.includes(queue)) : agents,
  }), [agents, calls, queues, queue]);
  const { matching, counts, several } = useMemo(() => {
    const wanted = text.toLowerCase();
    return { matching: !state && !wanted ? shown.agents : shown.agents.filter((a) => (!state || stateOf(a) === state) && (!wanted || `${nameOf(a)} ${a.id}`.toLowerCase().includes(wanted))),
      counts: countStates(shown.agents), several: agents.some((a) => a.account !== agents[0].account) };
  }, [shown, state, text]);
  const tiles = useMemo(() => matching.slice(0, maxTiles), [matching]), places = usePlaces(tiles, agentKey, `${query} ${quarter(now.value)}`);
  const digits = { minWidth: `${String(shown.agents.length).length}ch` };
  const chosenAgent = open.startsWith("agent ") && agents.find((a) => agentKey(a) === open), chosenCall = open.startsWith("call ") && calls.find((c) => callKey(c) === open);
  return html`<div class="view" id="floor"><h1 class="unseen">Floor</h1>
    <${Day} queues=${shown.queues} counts=${counts} />
    <section class="panel queues" aria-labelledby="queues-title"><header><h2 id="queues-title">Queues</h2>
      ${queue && html`<button type="button" onClick=${() => adjust({ queue: "" })}>All queues</button>`}
        <a class="button end" href=${link("wall", queue ? { queues: queue } : {})}>Wall</a></header>
      <${Queues} queues=${shown.queues} chosen=${queue} /></section>
    <section class="panel calls" aria-labelledby="calls-title"><header><h2 id="calls-title">Calls</h2></header>
      <${Calls} calls=${shown.calls} queue=${queue} several=${several} open=${setOpen} /></section>
    <section class="panel agents" aria-labelledby="agents-title"><header><h2 id="agents-title">Agents</h2>
      <ul class="counts" aria-label="Agents by state">${Object.entries(stateNames).map(([name, title]) => html`<li key=${name} data-tone=${name}>
        <button type="button" aria-pressed=${String(state === name)} onClick=${() => adjust({ state: state === name ? "" : name })}><b style=${digits}>
        ${counts[name] ?? 0}</b> ${title}</button></li>`)}</ul>
      <label class="search"><span class="unseen">Find an agent</span>
        <input type="search" value=${text} placeholder="Find an agent" onInput=${(e) => adjust({ agent: e.target.value })} /></label>
      ${mayAct() && html`<button type="button" onClick=${() => setOpen("login")}>Log an agent in</button>`}</header>
      <ul id="agents" class="tiles">${places.map(({ key, item: a }) => a ? html`<${Tile} key=${key} id=${a.id} name=${nameOf(a)} state=${stateOf(a)}
        reason=${a.reason} since=${a.since} account=${several ? a.account : ""} said=${said.get(key)} open=${setOpen} target=${key} />`
        : html`<li key=${`gap ${key}`} class="gap" aria-hidden="true"></li>`)}</ul>
      ${matching.length === 0 && html`<p class="empty">${agents.length ? "No agent matches." : "No agent is logged in."}</p>`}
      ${matching.length > maxTiles && html`<p class="empty">and ${matching.length - maxTiles} more: choose a queue or a state, or search.</p>`}</section>
    ${chosenAgent && html`<${AgentDialog} agent=${chosenAgent} close=${() => setOpen("")} />`}
    ${chosenCall && html`<${Dialog} title=${`Call of ${chosenCall.caller || shorten(chosenCall.id)}`} onClose=${() => setOpen("")}>
      <${CallActions} call=${chosenCall} close=${() => setOpen("")} /></${Dialog}>`}
    ${open === "login" && html`<${LoginDialog} close=${() => setOpen("")} />`}
  </div>`;
}

function rank(/** @type {Call} */ c) { return callStates[c.state]?.rank ?? 3; }

function Day({ queues, counts }) {
  const day = total(queues), at = useValue(now);
  const figure = (title, number, sub) => html`<div class="figure"><h2>${title}</h2><p class="number">${number}</p><p class="sub">${sub || "\u00a0"}</p></div>`;
  return html`<section class="cards-row" aria-label="Now and today">
    ${figure("Service level today", percent(day.level), day.counted ? `${day.within} of ${day.counted} in time` : "no calls yet")}
    ${figure("Waiting", day.waiting, day.waiting === 1 ? "caller" : "callers")}
    ${figure("Longest wait", day.since ? duration(at / 1000 - day.since) : "–", "of those who wait now")}
    ${figure("Talking", day.talking, "calls with an agent")}
    ${figure("Available", counts.available ?? 0, "agents")}
    ${figure("Abandoned today", day.abandoned, day.offered ? `${percent(day.abandoned / day.offered)} of ${day.offered} calls` : "")}
  </section>`;
}

function Queues({ queues, chosen }) {
  const at = useValue(now);
  return html`<${Table} name="Queues" empty="No queue has calls or agents." rows=${queues.toSorted((a, b) => collator.compare(a.id, b.id))}
    keyOf=${(q) => `${q.account} ${q.id}`} columns=${[
    { title: "Queue", cell: (q) => html`<button type="button" class="plain" title=${q.id} aria-pressed=${String(chosen === q.id)}
      onClick=${() => adjust({ queue: chosen === q.id ? "" : q.id })}>${userPart(q.id)}
      </button>` },
    { title: "Waiting", number: true, cell: (q) => q.waiting }, { title: "Longest", number: true, cell: (q) => q.since ? duration(at / 1000 - q.since) : "–" },
    { title: "Talking", number: true, cell: (q) => q.talking }, { title: "Available", number: true, cell: (q) => q.agents.available ?? 0 },
    { title: "Service level", number: true, cell: (q) => percent(q.level) }, { title: "Offered", number: true, cell: (q) => q.offered },
      { title: "Abandoned", number: true, cell: (q) => q.abandoned },
  ]} />`;
}

/** How long a state lasts; written each second without a rendering, since a floor has hundreds. */
function Clock({ since }) {
  const text = useRef(null), lasted = (at) => duration(at / 1000 - since);
  useLayoutEffect(() => now.watch((at) => { text.current.firstChild.data = lasted(at); }), [since]);
  return html`<span ref=${text}>${lasted(now.value)}</span>`;
}

/** @type {any} */
const Tile = memo(({ id, name, state, reason, since, account, said, open, target }) => {
  const body = html`<span class="lamp" aria-hidden="true"></span><span class="name" title=${id}>${name}</span><span class="clock"><${Clock} since=${since} />
    </span>
    <span class="state">${[stateNames[state], reason].filter(Boolean).join(" · ")}</span>${account && html`<span class="account">${account}
      </span>`}${said && html`<span class=${said.bad ? "asked bad" : "asked"} role="status">${said.text}</span>`}`;
  return html`<li data-tone=${state}>${mayAct() ? html`<button type="button" class="tile" aria-haspopup="dialog" onClick=${() => open(target)}>${body}
    </button>` : html`<div class="tile">${body}</div>`}</li>`;
});

/** @type {any} */
const Row = memo(({ id, state, caller, queue, agent, agentName, since, account, href, said, open, target }) => html`<tr data-tone=${state}>
  <td><span class="chip">${callStates[state]?.name ?? state}</span></td><td>${caller || "–"}</td><td class="queue" title=${queue}>${userPart(queue) || "–"}
    </td><td class="agent" title=${agent}>${agentName || "–"}</td>
  <td class="number clock"><${Clock} since=${since} /></td><td class="id" title=${id}><a href=${href}>${account && `${account} `}${shorten(id)}</a></td>
  <td class="row-actions">${mayAct() && html`<button type="button" aria-haspopup="dialog" aria-label=${`Actions on the call of ${caller || shorten(id)}`}
    onClick=${() => open(target)}>Actions</button>`}
    ${said && html`<span class=${said.bad ? "asked bad" : "asked"} role="status">${said.text}</span>`}</td></tr>`);

function Calls({ calls, queue, several, open }) {
  const said = useValue(asked), most = useMemo(() => calls.slice(0, maxRows), [calls]), places = usePlaces(most, callKey, `${queue} ${quarter(now.value)}`);
  return html`<div class="scroll" tabindex="0" role="region" aria-labelledby="calls-title"><table>
    <thead><tr><th scope="col">State</th><th scope="col">Caller</th><th scope="col">Queue</th><th scope="col">Agent</th>
      <th scope="col" class="number">Time</th><th scope="col" class="id">Call</th><th scope="col"><span class="unseen">Actions</span></th></tr></thead>
    <tbody id="calls">${places.map(({ key, item: c }) => !c ? html`<tr key=${`gap ${key}`} aria-hidden="true"><td colspan="7"></td></tr>` : html`<${Row} key=${key} id=${c.id} state=${c.state} caller=${c.caller} queue=${c.queue}
      agent=${c.agent} agentName=${floor.value.nameOf(c.account, c.agent) || userPart(c.agent)}
      since=${c.since} account=${several ? c.account : ""} href=${callLink(c)} said=${said.get(key)} open=${open} target=${key} />`)}</tbody>
        </table>
    ${calls.length === 0 && html`<p class="empty">No active calls.</p>`}${calls.length > maxRows && html`<p class="empty">and ${calls.length - maxRows} more</p>`}
      </div>`;
}

const breakReasons = ["Lunch", "Short break", "Meeting", "Training"];

/** @param {{agent: Agent, close: () => void}} properties */
function AgentDialog({ agent, close }) {
  const { calls, queues, agents } = useValue(floor), said = useValue(asked).get(agentKey(agent)), state = stateOf(agent);
  const call = calls.find((c) => c.account === agent.account && (c.id === agent.call || c.agent === agent.id));
  const run = (body) => act("agents", agent, body);
  const others = queues.filter((q) => q.account === agent.account && !agent.queues.includes(q.id)).map((q) => q.id);
  const reasons = [...new Set([...agents.map((a) => a.state === "break" && a.reason).filter(Boolean), ...breakReasons])];
  return html`<${Dialog} title=${nameOf(agent)} onClose=${close}>
    <p data-tone=${state}><span class="chip">${[stateNames[state], agent.reason].filter(Boolean).join(" · ")}</span> ${agent.queues.map(userPart).join(", ")}
      </p>
    ${said && html`<p class=${said.bad ? "output bad" : "output"} role="status">${said.text}</p>`}
    <div class="actions">${state === "break" ? html`<${Act} class="primary" run=${() => run({ action: "ready" })}>Ready</${Act}>` : ""}
      <${Act} run=${() => run({ action: "logout" })}>Log out</${Act}></div>
    ${state !== "break" && html`<${Form} label="Send on break" submit=${run} initial=${{ action: "break" }} fields=${[{ name: "reason",
      label: "Reason of the break", options: reasons, maxlength: 256, hint: "Asterisk alone takes one." }]} />`}
    ${others.length > 0 && html`<${Form} label="Join" submit=${run} initial=${{ action: "join" }} fields=${[{ name: "queue_id", label: "Join a queue",
      type: "select", options: others.map((id) => [id, userPart(id)]), value: others[0] }]} />`}
    ${agent.queues.length > 0 && html`<${Form} key=${agent.queues.join()} label="Leave" submit=${run} initial=${{ action: "leave" }}
      fields=${[{ name: "queue_id", label: "Leave a queue", type: "select", options: agent.queues.map((id) => [id, userPart(id)]),
      value: agent.queues[0] }]} />`}
    ${call && html`<h3>Its call${call.caller ? ` with ${call.caller}` : ""}</h3><${CallActions} call=${call} />`}
  </${Dialog}>`;
}

/** @param {{call: Call}} properties */
function CallActions({ call }) {
  const { agents } = useValue(floor), said = useValue(asked).get(callKey(call)), run = (body) => act("calls", call, body);
  const button = (action, label, kind = "") => html`<${Act} class=${kind} run=${() => run({ action })}>${label}</${Act}>`;
  return html`${said && html`<p class=${said.bad ? "output bad" : "output"} role="status">${said.text}</p>`}
    ${mayListen() && html`<div class="actions" role="group" aria-label="Your phone rings, then you">
      ${button("listen", "Listen")}${button("whisper", "Whisper")}${button("barge", "Barge in")}</div>
      <p class="hint">Your phone rings first. Whisper: only the agent hears you. Barge in: both do.</p>`}
    <div class="actions">${call.state === "held" ? button("resume", "Resume") : button("hold", "Hold")}${button("hangup", "Hang up", "danger")}</div>
    <${Form} label="Transfer" submit=${run} initial=${{ action: "transfer" }} fields=${[{ name: "destination", label: "Transfer to",
      required: true, maxlength: 64, options: agents.filter((a) => a.account === call.account).map((a) => [extensionOf(a.id), nameOf(a)]) }]} />
    ${isAdmin() && html`<details><summary>Recording, if Trunkline connects the call</summary><${RecordingActions} id=${call.id} account=${call.account} />
      </details>`}
    <p class="actions"><a class="button" href=${callLink(call)}>Its legs and events</a></p>`;
}

/** The extension of an agent's id: 1001 of PJSIP/1001 and of 1001@pbx.example.com. */
export function extensionOf(/** @type {string} */ id) { return userPart(id).replace(/^.*\//, ""); }

/** Logs an agent in who is not on the floor. */
function LoginDialog({ close }) {
  const { agents, queues } = floor.value, { data, error } = useLoad(() => known(), []);
  const away = (data?.agents ?? []).filter(([id]) => !agents.some((a) => a.id === id));
  const login = async ({ agent: id, ...body }) => {
    await act("agents", { id }, { action: "login", ...body });
    close();
  };
  return html`<${Dialog} title="Log an agent in" onClose=${close}>${error && html`<p class="output bad" role="alert">${error}</p>`}
    ${data && html`<${Form} label="Log in" submit=${login} fields=${[{ name: "agent", label: "Agent",
      required: true, options: away, hint: away.length ? "" : "Every agent of the last week is logged in." },
      { name: "queue_id", label: "Queue", type: "select", options: [["", "its own"], ...queues.map((q) => [q.id, userPart(q.id)])],
        hint: "Asterisk needs one." }]} />`}
        </${Dialog}>`;
}
