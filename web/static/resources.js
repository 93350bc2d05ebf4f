/** The resources of the administration, as data: what a list shows, a form asks and a deletion takes with it. */
import { EncryptionPage, PolicyPage, QueuePage } from "./admin_pages.js";
import { callLink } from "./actions.js";
import { Recording } from "./call_page.js";
import { date, displayText, duration, userPart } from "./format.js";
import { eventTypes } from "./event_types.js";
import { clock, isAdmin, session } from "./state.js";
import { Act, Copy, Dialog, Facts, Form, html, Secret, Table, useLoad, useState } from "./ui.js";

/**
 * @typedef {import("./admin.js").Context} Context
 *
 * @typedef {{context: Context, path: string, send: (method: string, path: string, body?: any) => Promise<any>, reload: () => Promise<void>}} Tools
 *
 * @typedef {object} Resource
 * @property {string} id in the address
 * @property {string} title
 * @property {string} one name of one of them
 * @property {string} [hint]
 * @property {any} [page] a page of its own, in place of the list
 * @property {(context: Context) => string} path
 * @property {string} key member that names one in the path
 * @property {boolean} [inAccount] X-Account-ID tells the account
 * @property {boolean} [create] false: none is created here
 * @property {(row: any) => string} nameOf
 * @property {{title: string, number?: boolean, cell: (row: any, context: Context) => any}[]} columns
 * @property {{name: string, label: string, value?: string, options: any}[]} [filters] of the server, in the address
 * @property {(filters: any) => Record<string, any>} [query] the parameters of filters
 * @property {(context: Context, row: any) => import("./ui.js").Field[]} [fields] row: null for a new one
 * @property {(values: any) => any} [toBody]
 * @property {(made: any, context: Context) => any} [created] what is shown once
 * @property {(row: any, context: Context) => any[]} [facts]
 * @property {{label: string, when?: (row: any, context: Context) => boolean, run: (row: any, tools: Tools) => Promise<any>}[]} [actions]
 * @property {{label: string, run: (context: Context) => Promise<string>}[]} [listActions]
 * @property {Record<string, any>} [presets] values of a new one that a link names
 * @property {any} [more] a component of the dialog
 * @property {{typed?: string|((row: any) => string), lost: (row: any, context: Context) => string[]|Promise<string[]>}} [remove]
 */

const encoded = encodeURIComponent, when = (seconds) => seconds ? date(seconds) : "";
/** @type {[string, string][]} */
const roles = [["admin", "Administrator: everything"], ["supervisor", "Supervisor: queues, and acts on them"], ["agent", "Agent: itself only"],
  ["auditor", "Auditor: audit log, no content"], ["user", "User: reads the whole account, places calls"]];
/** @type {[string, string][]} */
const scopes = [["ingest", "ingest: sends events and call records"], ["subscribe", "subscribe: listens to events"],
  ["read", "read: calls, figures, audit log"], ["recordings", "recordings: stores, reads and deletes"],
  ["calls", "calls: follows and cancels calls"], ["control", "control: acts on agents and calls"], ["admin", "admin: manages accounts, users and keys"]];
const names = ["agent.*", "agent.login", "agent.logout", "agent.break_start", "agent.break_end", "agent.state",
  "queue.*", "queue.call_entered", "queue.call_offered", "queue.call_answered", "queue.call_abandoned", "queue.call_ended",
  "call.*", "call.answered", "call.ended", "call.progress", "recording.stored", "alert.*", "alert.started", "alert.ended", "control.action"];

/** The number of objects at a path, as text. */
async function counted(/** @type {string} */ path, /** @type {string} */ one, account = "") {
  try {
    const { data, next_start_key } = await session.request(path, { account: account || undefined });
    return `${data.length}${next_start_key ? " or more" : ""} ${one}${data.length === 1 ? "" : "s"}`;
  } catch {
    return `its ${one}s`; // how many is not known
  }
}

/** Fields that bound a role. @returns {import("./ui.js").Field[]} */
function limits(/** @type {Context} */ { queues, agents }) {
  return [{ name: "queue_ids", label: "Queues", type: "list", options: queues.map((id) => [id, userPart(id)]),
    hint: "None chosen: all queues of the account.", when: (v) => v.role === "supervisor" },
    { name: "agent_ids", label: "Agents", type: "list", options: agents, hint: "None chosen: the agent with the extension.", when: (v) => v.role === "agent" }];
}
const limitsText = (row) => [...row.queue_ids ?? [], ...row.agent_ids ?? []].map(userPart).join(", ");

/**
 * Asks before a deletion: tells and counts what will go, and has typed typed; "": a button is enough.
 * @param {{name: string, typed: string, path: string, account?: string, lost: () => any, done: (said: any) => Promise<any>, close: () => void}} properties
 */
export function Removal({ name, typed, path, account, lost, done, close }) {
  const { data: known, error } = useLoad(() => Promise.resolve(lost()), []);
  const remove = async ({ typed: text = "" }) => {
    if (text.trim() !== typed) throw new Error(`Type ${typed} to delete it`);
    await session.request(path, { method: "DELETE", account });
    close();
    await done({ text: `${name} was deleted.` });
  };
  return html`<${Dialog} title=${`Delete ${name}?`} onClose=${close}>${error && html`<p class="output bad" role="alert">${error}</p>`}
    <p>This cannot be undone. What will go:</p><ul class="lost">${(known ?? ["Counting …"]).map((text) => html`<li>${text}</li>`)}</ul>
    ${known && html`<${Form} label=${`Delete ${name}`} submit=${remove} fields=${typed ? [{ name: "typed",
      label: `Type “${typed}”`, required: true, autofocus: true }] : []}>
      <button type="button" onClick=${close} autofocus=${!typed}>Keep it</button></${Form}>`}</${Dialog}>`;
}

/** A user's phones. */
function Phones({ path }) {
  const { data, error, reload } = useLoad(async () => (await session.request(`${path}/devices`)).data, [path]), [made, show] = useState(null),
    [leaving, remove] = useState(/** @type {any} */ (null)), nameOf = (d) => d.name || d.id;
  const add = async ({ name = "" }) => {
    show(await session.request(`${path}/devices`, { method: "POST", body: { name } }));
    reload();
  };
  return html`<h3>Phones</h3>${error && html`<p class="output bad" role="alert">${error}</p>`}
    <${Table} name="Phones" empty="No phone." rows=${data ?? []} columns=${[{ title: "Name", cell: nameOf },
      { title: "Created", cell: (d) => when(d.created_at) }]}
      actions=${(d) => html`<button type="button" class="danger" aria-label=${`Delete phone ${nameOf(d)}`} onClick=${() => remove(d)}>Delete …</button>`} />
    ${leaving && html`<${Removal} name=${nameOf(leaving)} typed=${nameOf(leaving)} path=${`${path}/devices/${encoded(leaving.id)}`} done=${reload}
      close=${() => remove(null)} lost=${() => ["The phone's password: it is not registered any more, nor rings"]} />`}
    ${made && html`<${Secret} title="Password of the phone" text=${made.password} />`}
    <${Form} key=${made?.id} label="Add a phone" submit=${add} fields=${[{ name: "name", label: "Name of the phone", placeholder: "desk",
      maxlength: 128 }]} />`;
}

/** The rule of an account for logins of administrators. */
function LoginRule({ row }) {
  const path = "/api/v2/config/login", { data, error } = useLoad(() => session.request(path, { account: row.id }), [row.id]), [said, say] = useState("");
  const save = async (rule) => {
    await session.request(path, { method: "PUT", account: row.id, body: rule });
    say("Saved.");
  };
  return html`<h3>Logins</h3>${error && html`<p class="output bad" role="alert">${error}
    </p>`}${data && html`<${Form} initial=${data} submit=${save} fields=${[{ name: "admin_otp", label: "One-time passwords of administrators", type: "select",
      options: ["optional", "required"] }]} />`}<p class="output" role="status">${said}
    </p>`;
}

/** A recording's player, for roles that may listen, and its legal hold. */
function RecordingMore(properties) {
  const { row, context: { account } } = properties;
  return html`${session.user?.role !== "auditor" && html`<${Recording} id=${row.recording_id} account=${account} />`}<${Hold} ...${properties} />`;
}

/** The legal hold of a recording: nothing deletes it meanwhile. */
function Hold({ row, path, context: { account }, reload }) {
  const change = async (options) => {
    await session.request(`${path}/hold`, { ...options, account });
    await reload();
  };
  if (!isAdmin()) return null;
  return html`<h3>Legal hold</h3>${row.hold ? html`<p>Since ${date(row.hold.since)}: ${row.hold.reason}</p>
      <p class="actions"><${Act} run=${() => change({ method: "DELETE" })}>End the hold</${Act}></p>`
    : html`<${Form} label="Hold" submit=${(body) => change({ method: "PUT", body })} fields=${[{ name: "reason", required: true, maxlength: 500,
      label: "Reason; nothing deletes the recording until the hold ends" }]} />`}`;
}

/** What a dead letter has in it; reading it is in the audit log. */
function LetterContent({ path, context: { account } }) {
  const { data, error } = useLoad(() => session.request(path, { account }), [path]);
  return html`${error && html`<p class="output bad" role="alert">${error}</p>`}
    ${data && html`<${Facts} of=${[["Key", data.key], ...Object.entries(data.headers).map(([name, value]) => [name, value])]} />
    <pre tabindex="0" aria-label="The record">${data.value_base64 ?? (typeof data.value === "string" ? data.value
      : JSON.stringify(data.value, null, 2))}</pre>`}`;
}

/** What a check of a feed has found. */
function checkFacts({ connected, subscription = [], state, event, problems = [] }) {
  return html`${problems.map(({ message, advice }) => html`<p class="output bad" role="alert">${message}</p>${advice && html`<p>${advice}</p>`}`)}
    <${Facts} of=${[["Connected", connected ? "yes" : "no"], ["Subscription", subscription.join(", ")],
      state && ["State", `${state.agents} agents, ${state.calls} calls, ${state.devices} phones`],
      ...(state?.notes ?? []).map((note) => ["Note", note]),
      connected && problems.length === 0 && ["First event", event ? `${event.format}, ${event.account_id ? `account ${event.account_id}`
        : `no account for ${(event.names ?? []).join(", ")}`}` : "none came: make a call, or change an agent's status"]]} />
    ${event?.value && html`<pre tabindex="0" aria-label="The event">${JSON.stringify(event.value, null, 2)}</pre>`}`;
}

/** 120 random bits in letters and digits. */
function randomPassword() { return Array.from(crypto.getRandomValues(new Uint8Array(24)), (byte) => "abcdefghijkmnpqrstuvwxyz23456789"[byte % 32]).join(""); }

/** start, 49 media, hangup */
export function eventCounts(/** @type {string[]} */ events) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const name of events) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].map(([name, n]) => n > 1 ? `${n} ${name}` : name).join(", ");
}

/** @type {Record<string, number>} */
const rates = { pcm16: 24000, g711_ulaw: 8000, opus: 48000 };
const actorName = (actor, { users }) => {
  const user = users.find(({ id }) => actor.endsWith(id));
  return user ? `${user.username}` : actor;
};

/** Whether the provider speaks a protocol of its vendor. */
const isVendor = ({ protocol }) => protocol !== undefined && protocol !== "trunkline";

/** @type {Resource[]} */
export const resources = [
  {
    id: "users", title: "Users", one: "user", key: "id",
      path: ({ account }) => `/api/v2/accounts/${encoded(account)}/users`, nameOf: ({ username }) => username,
    hint: "Passwords are made by the server and shown once.",
    columns: [{ title: "Username", cell: (u) => u.username }, { title: "Extension", cell: (u) => u.presence_id },
      { title: "Role", cell: (u) => displayText(u.role) }, { title: "Queues, agents", cell: limitsText },
      { title: "Created", cell: (u) => when(u.created_at) }],
    fields: (context, row) => [
      ...row ? [] : [/** @type {import("./ui.js").Field} */ ({ name: "username", label: "Username", required: true, maxlength: 128, autofocus: true })],
      { name: "presence_id", label: "Extension", maxlength: 64, hint: "Its phone rings first for click to call. Another extension ends the passwords of its phones." },
      { name: "role", label: "Role", type: "select", options: roles, value: "user" }, ...limits(context),
      ...!row && context.oidc ? [/** @type {import("./ui.js").Field} */ ({ name: "oidc_subject", label: "Subject at the single sign-on",
        hint: "None: the user has a password." })] : [],
    ],
    created: (made) => made.password && html`<${Secret} title=${`Password of ${made.username}`} text=${made.password} />`,
    actions: [
      { label: "New password", when: (u) => !u.oidc_subject, run: async (u, { path, send }) => {
        const password = randomPassword(), { role, presence_id, queue_ids, agent_ids } = u;
        await send("PUT", path, { role, presence_id, queue_ids, agent_ids, password });
        return html`<${Secret} title=${`Password of ${u.username}`} text=${password} />`;
      } },
      { label: "Set up one-time passwords", when: (u) => !u.oidc_subject, run: async (u, { path, send }) => {
        const { uri, recovery_codes } = await send("POST", `${path}/otp`);
        return html`<${Secret} title=${`One-time passwords of ${u.username}`} text=${uri} />
          <${Secret} title=${`Recovery codes of ${u.username}`} text=${recovery_codes.join(" ")} />`;
      } },
      { label: "Remove one-time passwords", when: (u) => !u.oidc_subject, run: async (u, { path, send }) => {
        await send("DELETE", `${path}/otp`);
        return `${u.username} has no one-time passwords.`;
      } },
    ],
    more: Phones,
    remove: { lost: async (u, { account }) => [`The user ${u.username}, whose tokens end at once`,
      await counted(`/api/v2/accounts/${encoded(account)}/users/${encoded(u.id)}/devices`, "phone")] },
  },
  {
    id: "keys", title: "API keys", one: "key", key: "id", path: () => "/api/v2/apikeys",
      inAccount: true, nameOf: (k) => k.name || k.id, hint: "A key is shown once.",
    columns: [{ title: "Name", cell: (k) => k.name || k.id }, { title: "Scopes", cell: (k) => k.scopes.join(", ") },
      { title: "Sees", cell: (k) => [displayText(k.role ?? "admin"), limitsText(k)].filter(Boolean).join(": ") },
      { title: "Expires", cell: (k) => k.expires_at ? date(k.expires_at) : "never" }, { title: "Created", cell: (k) => when(k.created_at) }],
    fields: (context, row) => [
      { name: "name", label: "Name", maxlength: 128, placeholder: "CRM", autofocus: !row },
      { name: "scopes", label: "What it may do", type: "checks", options: scopes, value: ["read"] },
      { name: "role", label: "What it may see", type: "select", value: "admin", options: [["admin", "The whole account"], ["supervisor", "Some queues"],
        ["agent", "Some agents: their calls and figures only"], ["auditor", "No content"], ["user", "The whole account, as a user"]] }, ...limits(context),
      ...row ? [] : [/** @type {import("./ui.js").Field} */ ({ name: "days", label: "Expires", type: "select", value: 0, options: [[0, "never"],
        [30, "in 30 days"], [90, "in 90 days"], [365, "in a year"]] })],
    ],
    toBody: ({ days = 0, ...key }) => days ? { ...key, expires_at: Math.floor(clock.now() / 1000) + days * 86400 } : key,
    created: (made) => html`<${Secret} title=${`Key ${made.name || made.id}`} text=${made.key} />`,
    remove: { lost: (k) => [`The key ${k.name || k.id}: its requests are refused at once`, "Open connections that use it"] },
  },
  {
    id: "accounts", title: "Accounts", one: "account", key: "id", path: () => "/api/v2/accounts", nameOf: ({ name }) => name,
    columns: [{ title: "Name", cell: (a) => a.name }, { title: "Domain", cell: (a) => a.domain },
      { title: "Below", cell: (a, { accounts }) => accounts.find(({ id }) => id === a.parent_id)?.name ?? "" },
      { title: "Time zone", cell: (a) => a.time_zone ?? "UTC" }, { title: "Created", cell: (a) => when(a.created_at) }],
    fields: ({ accounts, account }, row) => [
      { name: "name", label: "Name", required: true, maxlength: 128, autofocus: !row },
        { name: "domain", label: "Domain", required: true, maxlength: 253, hint: "Its users log in with it. After a change phones need new passwords." },
      ...row && !row.parent_id ? [] : [/** @type {import("./ui.js").Field} */ ({ name: "parent_id", label: "Below the account", type: "select",
        value: account, options: accounts.filter(({ id }) => id !== row?.id).map(({ id, name }) => [id, name]) })],
      { name: "time_zone", label: "Time zone of its reports", type: "select", value: "UTC", options: ["UTC", ...Intl.supportedValuesOf("timeZone")] },
    ],
    facts: (a) => [["Id", html`<code>${a.id}</code>`]], more: LoginRule,
    remove: { lost: (a) => Promise.all([`The account ${a.name}; its id is never given again`,
      counted(`/api/v2/accounts/${encoded(a.id)}/users?page_size=1000`, "user"), counted("/api/v2/apikeys?page_size=1000", "API key", a.id),
      counted("/api/v2/webhooks?page_size=1000", "webhook", a.id), counted("/api/v2/config/ai_providers", "AI provider", a.id),
      counted("/api/v2/recordings?page_size=1000", "recording", a.id), "its call records and figures, after the time for purging"]) },
  },
  {
    id: "webhooks", title: "Webhooks", one: "webhook", key: "id", path: () => "/api/v2/webhooks",
      inAccount: true, nameOf: ({ url }) => url, hint: "Events are sent to your server as they come, signed, until it accepts them.",
    columns: [{ title: "Address", cell: (w) => w.url },
      { title: "Events", cell: ({ filters: f }) => [f.names, f.event_types, f.queue_ids?.map(userPart), f.agent_ids?.map(userPart)]
        .flatMap((list) => list ?? []).join(", ") || "all" },
      { title: "State", cell: (w) => html`<span class="chip" data-tone=${{ active: "good", failing: "warn",
        paused: "bad" }[/** @type {"active"} */ (w.status)]}>${displayText(w.status)}</span>` }, { title: "Last error", cell: (w) => w.last_error ?? "" },
        { title: "Next attempt", cell: (w) => when(w.next_try_at) }],
    fields: ({ queues, agents }) => [
      { name: "url", label: "Address", type: "url", required: true, maxlength: 2048, placeholder: "https://crm.example.com/trunkline", autofocus: true },
      { name: "filters.names", label: "What happened", type: "list", options: names, hint: "None chosen: everything. alert.* are the alerts." },
        { name: "filters.queue_ids", label: "Queues", type: "list", options: queues.map((id) => [id, userPart(id)]) },
      { name: "filters.agent_ids", label: "Agents", type: "list", options: agents },
        { name: "filters.event_types", label: "Types", type: "list", options: eventTypes },
      { name: "format", label: "Format", type: "select", value: "trunkline", options: [["trunkline", "Trunkline's message"],
        ["cloudevents", "CloudEvents 1.0"]] },
      { name: "secret", label: "Secret", placeholder: "made by the server", hint: "whsec_ and 24 to 64 bytes in base64; signs the requests." },
    ],
    presets: { alerts: { filters: { names: ["alert.*"] } } },
    created: (made) => made.secret && html`<${Secret} title="Secret of the webhook" text=${made.secret} />`,
    facts: (w) => [["State", displayText(w.status)], ["Failures in a row", w.failures || ""], ["Last error", w.last_error], ["Failed", when(w.failed_at)],
      ["Next attempt", when(w.next_try_at)], ["Paused", when(w.paused_at)], ["Id", html`<code>${w.id}</code>`]],
    actions: [{ label: "Send a test", run: async (w, { path, send }) => {
      const { ok, duration_ms, error } = await send("POST", `${path}/test`);
      return html`<p class=${ok ? "output" : "output bad"}>${ok ? `Delivered in ${duration_ms} ms.` : `Failed: ${error}`}</p>`;
    } }, { label: "Continue now", when: (w) => w.status !== "active", run: async (w, { path, send, reload }) => {
      const { status } = await send("POST", `${path}/retry`, {});
      await reload();
      return `The webhook continues: ${status}.`;
    } }],
    remove: { typed: ({ url }) => new URL(url).host, lost: (w) => [`The webhook to ${w.url}`, "Events that it has not delivered"] },
  },
  {
    id: "providers", title: "AI providers", one: "provider", key: "id", path: () => "/api/v2/config/ai_providers",
      inAccount: true, nameOf: ({ name }) => name, hint: "A test opens a session with a tone in place of the caller's audio.",
    columns: [{ title: "Name", cell: (p) => p.name }, { title: "Address", cell: (p) => p.websocket?.url },
      { title: "Audio", cell: (p) => `${p.media?.audioFormat}, ${p.media?.sampleRate} Hz` }, { title: "Dial", cell: (p) => html`<code>ai-${p.id}</code>` }],
    fields: ({ queues }) => [
      { name: "name", label: "Name", required: true, maxlength: 128, autofocus: true },
        { name: "websocket.url", label: "Address", type: "url", required: true, placeholder: "wss://ai.example.com/voice" },
      { name: "mode", label: "It", type: "select", value: "answer", options: [["answer", "answers calls"],
        ["listen", "hears calls of others"]] },
      { name: "queues", label: "Every call of these queues", type: "list", options: queues.map((id) => [id, userPart(id)]), when: (p) => p.mode === "listen" },
      { name: "websocket.headers", label: "Headers", type: "map" },
        { name: "media.audioFormat", label: "Audio", type: "select", value: "pcm16", options: [["pcm16", "pcm16, 24000 Hz"],
        ["g711_ulaw", "g711_ulaw, 8000 Hz"], ["opus", "opus, 48000 Hz"]] },
      { name: "protocol", label: "Protocol", type: "select", value: "trunkline", options: [["trunkline", "Trunkline"], ["twilio", "Twilio Media Streams"],
        ["openai_realtime", "OpenAI Realtime"], ["deepgram_agent", "Deepgram Agent"]] },
      { name: "secret", label: "The vendor's token", type: "password", autocomplete: "off", maxlength: 1024, when: isVendor }, { name: "session",
        label: "Session, as the vendor has it (JSON)", type: "json", when: isVendor },
      { name: "extensions", label: "It understands Trunkline's extras (clear, mark, transfer …)", type: "bool", when: (p) => !isVendor(p) },
        { name: "fallback", label: "Where it cannot be reached, the call", type: "select", value: "hangup", options: [["hangup", "ends"],
        ["return", "returns to the platform"]] },
    ],
    toBody: (p) => ({ ...p, media: { ...p.media, sampleRate: rates[p.media.audioFormat] } }),
    facts: (p) => [["Dial", html`<code>ai-${p.id}</code>`], ["Id", html`<code>${p.id}</code> <${Copy} text=${() => p.id} />`]],
    actions: [{ label: "Test", run: async (p, { path, context }) => {
      const { ok, connect_ms, events, error } = await session.request(`${path}/test`, { method: "POST", account: context.account, timeout: 60_000 });
      return html`<p class=${ok ? "output" : "output bad"}>
        ${ok ? `Works: connected in ${Math.round(connect_ms)} ms; ${eventCounts(events)}` : `Failed: ${error ?? "no reason given"}`}</p>`;
    } }],
    remove: { lost: (p) => [`The provider ${p.name} with its headers`, `Calls to ai-${p.id} are refused`] },
  },
  {
    id: "recordings", title: "Recordings", one: "recording", key: "recording_id", path: () => "/api/v2/recordings",
      inAccount: true, create: false, nameOf: (r) => r.recording_id,
    columns: [{ title: "Recording", cell: (r) => r.recording_id }, { title: "Began", cell: (r) => when(r.started_at ?? r.created_at) },
      { title: "Queue", cell: (r) => userPart(r.queue_id ?? "") }, { title: "Agent",
        cell: (r, { agents }) => r.agent_id ? agents.find(([id]) => id === r.agent_id)?.[1] ?? userPart(r.agent_id) : "" },
      { title: "Length", number: true, cell: (r) => r.duration_ms === undefined ? "" : duration(r.duration_ms / 1000) }, { title: "Size",
        number: true, cell: (r) => `${Math.ceil(r.size / 1024)} KB` },
      { title: "Sealed", cell: (r) => r.encrypted ? `key ${r.key_version}` : "no" }],
    facts: (r) => [r.call_id && ["", html`<a href=${callLink({ id: r.call_id, interaction: r.interaction_id, since: r.started_at ?? r.created_at })}>The call</a>`],
      ...Object.entries(r).map(([name, value]) => [displayText(name), name.endsWith("_at") ? date(value) : typeof value === "object" ? JSON.stringify(value) : String(value)])],
    more: RecordingMore,
    remove: { lost: (r) => [`The audio of ${r.recording_id}, ${Math.ceil(r.size / 1024)} KB`] },
  },
  {
    id: "feeds", title: "Feeds", one: "feed", key: "name", path: () => "/api/v2/feeds",
      inAccount: true, create: false, nameOf: ({ name }) => name, hint: "Connections to the platforms, on each node, as the service's settings have them.",
    columns: [{ title: "Feed", cell: (f) => f.name }, { title: "Platform", cell: (f) => f.kind }, { title: "Node", cell: (f) => f.node },
      { title: "State", cell: (f) => html`<span class="chip" data-tone=${/** @type {any} */ ({ connected: "good", standby: "",
        connecting: "warn" })[f.state] ?? "bad"}>${displayText(f.state)}
      </span>` },
      { title: "Last event", cell: (f) => when(f.last_event_at) }, { title: "Unsent, s", number: true, cell: (f) => f.oldest_unsent_seconds },
        { title: "Error", cell: (f) => f.error ?? "" }],
    facts: (f) => Object.entries(f).map(([name, value]) => [displayText(name), name.endsWith("_at") ? when(value) : String(value)]),
    actions: [{ label: "Check", run: async (_, { path, send }) => checkFacts(await send("POST", `${path}/check`)) }],
  },
  {
    id: "deadletters", title: "Dead letters", one: "dead letter", key: "position", path: () => "/api/v2/dead_letters",
      inAccount: true, create: false, nameOf: (l) => `${l.kind} at ${l.position}`,
    hint: "Records that could not be made events or call records. Remove the cause, an account that is missing for example, and send them again.",
    columns: [{ title: "Time", cell: (l) => date(Date.parse(l.time) / 1000) }, { title: "Kind", cell: (l) => l.kind },
      { title: "Reason", cell: (l) => l.reason }, { title: "From", cell: (l) => l.topic }, { title: "Bytes", number: true, cell: (l) => l.size }],
    more: LetterContent,
    actions: [{ label: "Send again", run: async (l, { path, send, reload }) => {
      await send("POST", `${path}/retry`);
      await reload();
      return "It was sent again. If it still cannot be used, it comes back as a new dead letter.";
    } }],
    listActions: [{ label: "Send all again", run: async ({ account }) => {
      const { sent } = await session.request("/api/v2/dead_letters/retry", { method: "POST", account, body: {} });
      return `${sent} sent again.`;
    } }],
    remove: { typed: "", lost: (l) => [`The record of ${date(Date.parse(l.time) / 1000)}: nothing is made of it`] },
  },
  { id: "policy", title: "Recording", one: "", key: "", path: () => "", nameOf: () => "", columns: [], page: PolicyPage },
  { id: "encryption", title: "Encryption", one: "", key: "", path: () => "", nameOf: () => "", columns: [], page: EncryptionPage },
  { id: "queues", title: "Queues", one: "", key: "", path: () => "", nameOf: () => "", columns: [], page: QueuePage },
  {
    id: "audit", title: "Audit log", one: "entry", key: "id", path: () => "/api/v2/audit",
      inAccount: true, create: false, nameOf: (e) => `${e.action} ${date(e.at)}`,
    filters: [{ name: "days", label: "Range", value: "1", options: [["1", "24 hours"], ["7", "7 days"], ["30", "30 days"], ["400", "400 days"]] },
      { name: "actor", label: "Who", options: ({ users }) => [["", "everybody"], ...users.map(({ id, username }) => [`user:${id}`, username])] }],
    query: ({ days, actor }) => ({ startDate: Math.floor(clock.now() / 1000) - Number(days) * 86400, endDate: Math.floor(clock.now() / 1000), actor }),
    columns: [{ title: "Time", cell: (e) => date(e.at) }, { title: "Who", cell: (e, context) => actorName(e.actor, context) },
      { title: "Did", cell: (e) => e.action }, { title: "To", cell: (e, context) => actorName(e.target, context) },
      { title: "Outcome", cell: (e) => e.outcome }, { title: "Address", cell: (e) => e.address }],
    facts: (e) => Object.entries(e).map(([name, value]) => [displayText(name), name === "at" ? date(value) : String(value)]),
  },
];
