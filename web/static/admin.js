/** Administration: one list and one dialog for every resource of resources.js. */
import { request } from "./http.js";
import { Removal, resources } from "./resources.js";
import { adjust, allPages, isAdmin, known, link, queryText, route, session } from "./state.js";
import { Act, Dialog, Facts, Form, html, messageOf, Table, useEffect, useLoad, useMemo, useState, useValue } from "./ui.js";

/**
 * What a list and its dialogs need to know of the account.
 * @typedef {{account: string, accounts: any[], queues: string[], agents: [string, string][], oidc: boolean, users: any[]}} Context
 */

const pageSize = 200, searchedPages = 25;

export function Admin() {
  const { part, query } = useValue(route), own = session.user?.account_id ?? "", account = query.get("account") || own;
  const resource = resources.find(({ id }) => id === part) ?? resources[0];
  const accounts = useLoad(() => isAdmin() ? allPages("/api/v2/accounts") : Promise.resolve([]), [resource.id === "accounts"]).data ?? [];
  const { data: context, error, reload } = useLoad(async () => {
    const [{ queues, agents }, oidc] = await Promise.all([known(account === own ? undefined : account).catch(() => ({ queues: [],
      agents: [] })), request("/auth/oidc").then(({ enabled }) => Boolean(enabled), () => false)]);
    const users = await allPages(`/api/v2/accounts/${encodeURIComponent(account)}/users`).catch(() => []);
    return { account, queues, agents, oidc, users };
  }, [account]);
  const title = accounts.find((a) => a.id === account)?.name ?? account;
  return html`<div class="view" id="admin"><section class="panel"><nav class="tabs" aria-label="Administration">
    ${resources.map(({ id, title: name }) => html`<a key=${id} href=${link(`admin/${id}`, { account: account === own ? "" : account })}
      aria-current=${id === resource.id ? "page" : undefined}>${name}</a>`)}
    </nav>
    ${accounts.length > 1 && html`<div class="form inline"><div class="field"><label for="admin-account">Account</label>
      <select id="admin-account" onChange=${(e) => adjust({ account: e.target.value === own ? "" : e.target.value, q: "" })}>
      ${accounts.map((a) => html`<option key=${a.id} value=${a.id} selected=${a.id === account}>${a.name} (${a.domain})</option>`)}</select></div></div>`}
        </section>
    ${error && html`<p class="output bad" role="alert">${error} <button type="button" onClick=${reload}>Try again</button></p>`}
    ${context?.account !== account && !error && html`<p class="panel empty" role="status">Loading …</p>`}
    ${context?.account === account && (resource.page ? html`<${resource.page} key=${`${resource.id} ${account}`} context=${{ ...context, accounts }}
      title=${title} />`
      : html`<${List} key=${`${resource.id} ${account}`} resource=${resource} context=${{ ...context, accounts }} title=${title} />`)}</div>`;
}

/** @param {{resource: import("./resources.js").Resource, context: Context, title: string}} properties */
function List({ resource, context, title }) {
  const { query } = useValue(route), text = query.get("q") ?? "", preset = resource.presets?.[query.get("new") ?? ""],
    [open, setOpen] = useState(/** @type {any} */ (preset ? { isNew: true, preset } : null)), [notice, setNotice] = useState(null);
  const filters = Object.fromEntries((resource.filters ?? []).map(({ name, value }) => [name, query.get(name) ?? value ?? ""]));
  const path = resource.path(context), header = resource.inAccount ? context.account : undefined;
  const [state, setState] = useState(/** @type {any} */ ({ rows: [], next: "", total: undefined, error: "", busy: true })), filterKey = JSON.stringify(filters);
  const read = async (start_key) => {
    return session.request(`${path}?${queryText({ ...resource.query?.(filters), page_size: pageSize, start_key })}`, { account: header });
  };
  const load = async (before = { rows: [], next: "" }) => {
    setState({ ...before, error: "", busy: true });
    try {
      const { data, next_start_key: next = "", total } = await read(before.next);
      setState({ rows: [...before.rows, ...data], next, total, error: "", busy: false });
    } catch (problem) {
      setState({ ...before, error: messageOf(problem), busy: false });
    }
  };
  useEffect(() => { load(); }, [filterKey]);
  const wanted = text.toLowerCase(), texts = useMemo(() => state.rows.map((row) => searchText(resource, row, context)), [state.rows]);
  const rows = wanted ? state.rows.filter((_, i) => texts[i].includes(wanted)) : state.rows;
  // A search goes on through the pages that are not loaded.
  useEffect(() => { if (wanted && state.next && !state.busy && rows.length < pageSize && state.rows.length < searchedPages * pageSize) load(state); }, [wanted, state]);
  const done = async (said) => {
    setNotice(said);
    await load();
  };
  const writable = isAdmin() && resource.fields, current = open && (open.isNew ? open : state.rows.find((row) => row[resource.key] === open[resource.key]) ?? open);
  return html`<section class="panel" aria-labelledby="list-title"><header><h1 id="list-title">${resource.title}</h1><span class="sub">
    ${title} · ${state.total ?? `${state.rows.length}${state.next ? " and more" : ""}`}</span>
      <label class="search"><span class="unseen">Search ${resource.title}</span>
        <input type="search" placeholder="Search" value=${text} onInput=${(e) => adjust({ q: e.target.value })} /></label>
      ${writable && resource.create !== false && html`<button type="button" class="primary" onClick=${() => setOpen({ isNew: true })}>New ${resource.one}
        </button>`}</header>
    ${resource.hint && html`<p class="hint">${resource.hint}</p>`}
    ${resource.filters && html`<div class="form inline">${resource.filters.map(({ name, label, options }) => html`<div class="field" key=${name}>
      <label for=${`filter-${name}`}>${label}</label><select id=${`filter-${name}`} onChange=${(e) => adjust({ [name]: e.target.value })}>
      ${(typeof options === "function" ? options(context) : options).map(([v, name2]) => html`<option value=${v} selected=${v === filters[name]}>${name2}
        </option>`)}</select></div>`)}</div>`}
    ${notice && html`<div class="once" role="status">${notice.text} ${notice.undo && html`<${Act}
      run=${async () => { await notice.undo(); done({ text: "Undone." }); }}>Undo</${Act}>`} <button type="button" class="plain"
      aria-label="Close the message" onClick=${() => setNotice(null)}>✕</button>
      </div>`}
    ${state.error && html`<p class="output bad" role="alert">${state.error} <button type="button" onClick=${() => load()}>Try again</button></p>`}
    ${isAdmin() && resource.listActions?.map(({ label, run }) => html`<${Act} key=${label} run=${async () => done({ text: await run(context) })}>${label}
      </${Act}>`)}
    <${Table} name=${resource.title} busy=${state.busy} empty=${wanted ? "Nothing matches." : `No ${resource.one} yet.`} rows=${rows}
      keyOf=${(row) => row[resource.key]} columns=${resource.columns.map((column, i) => i > 0 ? { ...column, cell: (row) => column.cell(row, context) }
      : { ...column, cell: (row) => html`<button type="button" class="plain" aria-haspopup="dialog" onClick=${() => setOpen(row)}>${column.cell(row, context)}
        </button>` })} />
    ${state.next && !wanted && html`<p class="actions"><${Act} run=${() => load(state)}>More</${Act}></p>`}
    ${current && html`<${Item} key=${open.isNew ? "new" : open[resource.key]} resource=${resource} row=${current} context=${context} done=${done}
      close=${() => { setOpen(null); if (preset) adjust({ new: "" }); }} />`}
      </section>`;
}

function searchText(/** @type {import("./resources.js").Resource} */ resource, /** @type {any} */ row, /** @type {Context} */ context) {
  return [JSON.stringify(row), ...resource.columns.map(({ cell }) => cell(row, context)).filter((value) => typeof value === "string")].join(" ").toLowerCase();
}

/** The dialog of one object: what is known of it, its form, what can be done with it, and its deletion. */
function Item({ resource, row, context, done, close }) {
  const [removing, setRemoving] = useState(false), [made, setMade] = useState(null), [result, show] = useState(null);
  const path = resource.path(context), one = `${path}/${encodeURIComponent(row[resource.key])}`, account = resource.inAccount ? context.account : undefined;
  const send = (method, to, body = undefined) => session.request(to, { method, body, account });
  const save = async (values) => {
    const body = resource.toBody ? resource.toBody(values) : values;
    if (row.isNew) {
      const created = await send("POST", path, body), secret = resource.created?.(created, context);
      await done(secret ? null : { text: `${resource.nameOf(created)} was created.` });
      return secret ? setMade({ row: created, secret }) : close();
    }
    await send("PUT", one, body);
    close();
    await done({ text: `${resource.nameOf(row)} was changed.`, undo: () => send("PUT", one, row) });
  };
  const title = row.isNew ? made ? resource.nameOf(made.row) : `New ${resource.one}` : resource.nameOf(row);
  const fields = resource.fields?.(context, row.isNew ? null : row) ?? [];
  if (removing) {
    const name = resource.nameOf(row), { typed = name, lost } = resource.remove;
    return html`<${Removal} ...${{ name, path: one, account, done, close }} typed=${typeof typed === "function" ? typed(row) : typed}
      lost=${() => lost(row, context)} />`;
  }
  return html`<${Dialog} title=${title} wide onClose=${close}>
    ${made ? html`<div>${made.secret}<p class="actions"><button type="button" class="primary" onClick=${close}>Done</button></p></div>`
      : html`${!row.isNew && html`<${Facts} of=${resource.facts?.(row, context) ?? []} />`}
        ${isAdmin() && fields.length > 0 && html`<${Form} fields=${fields} initial=${row.isNew ? row.preset ?? {} : row} submit=${save}
          label=${row.isNew ? `Create ${resource.one}` : "Save"} />`}
        ${isAdmin() && !row.isNew && (resource.actions ?? []).some(({ when }) => !when || when(row, context)) && html`<div class="actions">
          ${resource.actions.filter(({ when }) => !when || when(row, context)).map(({ label, run }) => html`<${Act} key=${label} run=${async () => {
          show(null);
          show(await run(row, { context, path: one, send, reload: () => done(null) }));
        }}>${label}</${Act}>`)}</div>`}
        ${result && html`<div role="status">${result}</div>`}
        ${!row.isNew && resource.more && html`<${resource.more} row=${row} context=${context} path=${one} reload=${() => done(null)} />`}
        ${isAdmin() && !row.isNew && resource.remove && html`<p class="actions">
          <button type="button" class="danger" onClick=${() => setRemoving(true)}>Delete …</button></p>`}`}
  </${Dialog}>`;
}
