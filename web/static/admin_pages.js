/** Pages of the administration that are not lists: the encryption of recordings, and the thresholds of queues. */
import { userPart } from "./format.js";
import { isAdmin, session } from "./state.js";
import { Act, Copy, Facts, Form, html, useLoad, useState } from "./ui.js";

const mask = "••••••••••••••••";
const encryptionPath = "/api/v2/config/call_recording_encryption", queuesPath = "/api/v2/config/queues", policyPath = "/api/v2/config/call_recording";

/** The key and the salt are in the page only while it is open. */
export function EncryptionPage({ context: { account }, title }) {
  const [config, show] = useState(null), [said, say] = useState("");
  const read = async () => show((await session.request(encryptionPath, { account })).config);
  const save = async (body) => {
    const { config: next, message } = await session.request(encryptionPath, { method: "PUT", account, body });
    show(next);
    say(message);
  };
  const older = Object.keys(config?.historical_keys ?? {}).sort((a, b) => Number(b) - Number(a));
  return html`<section class="panel" aria-labelledby="encryption-title"><header><h1 id="encryption-title">Encryption of recordings</h1><span class="sub">
    ${title}</span></header>
    ${!config && html`<p class="hint">Reading the keys is written to the audit log.</p><p class="actions">
      <${Act} class="primary" run=${read}>Read the configuration</${Act}></p>`}
    ${config && html`<${Facts} of=${[["Recordings", config.enabled === undefined ? "not encrypted (never configured)" : config.enabled ? "sealed" : "not encrypted"], ["Algorithm", config.algorithm],
      ["Key id", config.key_id],
      ["Key version", config.key_version],
      config.key && ["Key", html`<${Masked} name="key" value=${config.key} />`], config.salt && ["Salt", html`<${Masked} name="salt" value=${config.salt} />`],
      ...older.flatMap((version) => [[`Key ${version}`, html`<${Masked} name=${`key of version ${version}`}
        value=${config.historical_keys[version]} />`], config.historical_salts?.[version] && [`Salt ${version}`, html`<${Masked}
        name=${`salt of version ${version}`} value=${config.historical_salts[version]} />`]])]} />
      ${isAdmin() && html`<h2>Change</h2><${Form} key=${`${config.key_version} ${config.enabled}`} submit=${save}
        initial=${{ enabled: Boolean(config.enabled) }} fields=${[{ name: "enabled", label: "Seal new recordings", type: "bool" },
        { name: "algorithm", label: "Algorithm", type: "select", options: ["AES-256-GCM", "AES-256-CBC"], value: config.algorithm ?? "AES-256-GCM",
          when: (v) => v.enabled },
        { name: "key", label: "New key", hint: "At least 32 characters. Empty: the present one stays, or one is made. Earlier keys are kept.",
          when: (v) => v.enabled },
          { name: "salt", label: "New salt", when: (v) => v.enabled }]} />`}`}
    <p class="output" role="status">${said}</p></section>`;
}

/** Which calls are recorded, and how long recordings are kept. */
export function PolicyPage({ context: { account, queues }, title }) {
  const { data, error, reload } = useLoad(() => session.request(policyPath, { account }), [account]), [said, say] = useState("");
  const kept = data?.config.queue_retention ?? [], ids = [...new Set([...queues, ...kept.map((q) => q.queue_id)])].sort();
  const daysOf = Object.fromEntries(ids.map((id, i) => [i, kept.find((q) => q.queue_id === id)?.retention_days]));
  const save = async ({ queues: chosen = [], days = {}, ...policy }) => {
    const queue_retention = ids.flatMap((queue_id, i) => days[i] === undefined ? [] : [{ queue_id, retention_days: days[i] }]);
    await session.request(policyPath, { method: "PUT", account, body: { ...policy, queue_retention, ...(chosen.length && { queues: chosen }) } });
    await reload();
    say("Saved.");
  };
  return html`<section class="panel" aria-labelledby="policy-title"><header><h1 id="policy-title">What is recorded</h1><span class="sub">${title}</span></header>
    <p class="hint">Of the calls that Trunkline itself connects. ${data?.inherited_from ? `This is of the account ${data.inherited_from}, until this account has its own.` : ""}</p>
    ${error && html`<p class="output bad" role="alert">${error}</p>`}
    ${data && isAdmin() && html`<${Form} key=${JSON.stringify(data)} submit=${save} initial=${{ ...data.config, days: daysOf }} fields=${[
      { name: "mode", label: "Calls", type: "select", value: "off", options: [["off", "none"], ["on_demand", "on demand"], ["all", "all"]] },
      { name: "queues", label: "Queues", type: "list", options: queues.map((id) => [id, userPart(id)]), hint: "None chosen: all calls." },
      { name: "announce", label: "Caller and callee hear a tone before", type: "bool" },
      { name: "announcement", label: "In place of the tone, the recording", hint: "Its id: WAV, at most 30 s." },
      { name: "retention_days", label: "Kept for, days", type: "number", min: 0, max: 36500, hint: "0 or empty: for good." },
      ...ids.map((id, i) => ({ name: `days.${i}`, label: `${userPart(id)}: kept for, days`, type: "number", min: 0, max: 36500 }))]} />`}
    <p class="output" role="status">${said}</p></section>`;
}

/** A secret, masked until Show is pressed. */
function Masked({ name, value }) {
  const [shown, show] = useState(false);
  return html`<code class="secret">${shown ? value : mask}</code> <button type="button" aria-pressed=${String(shown)} onClick=${() => show(!shown)}>
    ${shown ? "Hide" : "Show"}<span class="unseen"> ${name}</span></button> <${Copy} text=${() => value}>Copy<span class="unseen"> ${name}</span></${Copy}>`;
}

/** The thresholds of queues: of all, and of those that have their own. */
export function QueuePage({ context: { account, queues }, title }) {
  const { data, error, reload } = useLoad(() => session.request(queuesPath, { account }), [account]), [before, setBefore] = useState(null);
  const ids = [...new Set([...queues, ...(data?.queues ?? []).map((q) => q.queue_id)])].sort();
  const put = async (body) => {
    await session.request(queuesPath, { method: "PUT", account, body });
    await reload();
  };
  const save = async (values) => {
    const last = data;
    await put({ default: values.default, queues: ids.flatMap((queue_id, i) => {
      const own = Object.fromEntries(Object.entries(values.rows?.[i] ?? {}).filter(([, v]) => v !== undefined));
      return Object.keys(own).length > 0 ? [{ queue_id, ...values.default, ...own }] : [];
    }) });
    setBefore(last);
  };
  const rows = Object.fromEntries(ids.map((id, i) => {
    const { service_level_seconds, short_abandon_seconds } = data?.queues.find((q) => q.queue_id === id) ?? {};
    return [i, { service_level_seconds, short_abandon_seconds }];
  }));
  const number = (name, label, placeholder = undefined) => ({ name, label, type: "number", min: 0, max: 86400, placeholder });
  return html`<section class="panel" aria-labelledby="queues-title"><header><h1 id="queues-title">Thresholds of queues</h1><span class="sub">${title}</span>
    </header>
    <p class="hint">An answer within the first counts for the service level; who hangs up within the second is left out of it. In force for intervals that begin 7 to 22 minutes later. An empty field: as for all queues.</p>
    ${error && html`<p class="output bad" role="alert">${error}</p>`}
    ${before && html`<div class="once" role="status">Saved. <${Act} run=${async () => { await put(before); setBefore(null); }}>Undo</${Act}></div>`}
    ${data && html`<${Form} key=${JSON.stringify(data)} id="queue-thresholds" submit=${save} initial=${{ default: data.default, rows }}
      fields=${[number("default.service_level_seconds", "All queues: in time within, s"), number("default.short_abandon_seconds", "All queues: short within, s"),
      ...ids.flatMap((id, i) => [
        number(`rows.${i}.service_level_seconds`, `${userPart(id)}: in time within, s`, data.default.service_level_seconds),
        number(`rows.${i}.short_abandon_seconds`, `${userPart(id)}: short within, s`, data.default.short_abandon_seconds),
      ])]} />`}
        </section>`;
}
