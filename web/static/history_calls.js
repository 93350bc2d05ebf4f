/** The calls of a range: their records, and those whose callers were not answered. */
import { callLink } from "./actions.js";
import { Recording } from "./call_page.js";
import { date, duration, userPart } from "./format.js";
import { CSV, Pending, reportQuery } from "./history.js";
import { placeCall } from "./phone.js";
import { adjust, floor, queryText, session } from "./state.js";
import { Act, Dialog, html, Table, useLoad, useState } from "./ui.js";

const path = "/api/v2/reports/cdrs", abandonedPath = "/api/v2/reports/abandoned", pageSize = 100;

/** @param {{range: any, query: URLSearchParams}} properties */
export function Calls({ range, query }) {
  const account = query.get("account") || undefined, by = query.get("by") ?? "number", value = query.get("value") ?? "";
  const wanted = { ...reportQuery(range, query), ...(value && { [by]: value }) };
  const { rows, more, error, busy, reload } = usePages(path, wanted, account, query.toString()), [heard, hear] = useState(null);
  return html`<section class="panel" aria-labelledby="calls-title" aria-busy=${String(busy)}><header><h2 id="calls-title">Calls</h2>
      <form class="actions" role="search" aria-label="Find calls"
        onSubmit=${(e) => { e.preventDefault(); adjust({ by: e.target.by.value, value: e.target.value.value.trim() }); }}>
        <select name="by" aria-label="Find by">${[["number", "Number"], ["from", "From"], ["to", "To"], ["call_id", "Call id"],
          ["interaction_id", "Interaction id"]].map(([v, title]) => html`<option value=${v} selected=${v === by}>${title}</option>`)}</select>
        <input name="value" type="search" aria-label="Number or id, exactly" placeholder="Number or id, exactly" value=${value} spellcheck="false" />
          <button type="submit">Find</button></form>
      <span class="end"><${CSV} path=${path} name="calls.csv" query=${{ ...wanted, account }} /></span></header>
    ${error && html`<${Pending} error=${error} reload=${reload} />`}
    <${Table} name="Calls" busy=${busy} empty="No call records in this range." rows=${rows} keyOf=${(row) => row.id} columns=${[
      { title: "Start", cell: (row) => html`<a href=${callLink({ id: row.call_id, interaction: row.interaction_id, since: row.timestamp })}>
        ${date(row.timestamp)}</a>` },
      { title: "From", cell: (row) => row.from ?? "" }, { title: "To", cell: (row) => row.to ?? "" },
        { title: "Queue", cell: (row) => userPart(row.queue_id ?? "") },
      { title: "Agent", cell: (row) => row.agent_id ? floor.value.nameOf(row.account_id, row.agent_id) || userPart(row.agent_id) : "" },
      { title: "Length", number: true, cell: (row) => row.duration_seconds === undefined ? "" : duration(row.duration_seconds) },
        { title: "End", cell: (row) => row.hangup_cause ?? "" },
      { title: "Recording", cell: (row) => row.recording_id && html`<button type="button" aria-haspopup="dialog"
        aria-label=${`Listen to the call of ${row.from ?? "?"} with ${row.to ?? "?"}`} onClick=${() => hear(row)}>Listen</button>` },
    ]} />${more && html`<${Act} run=${more}>More</${Act}>`}
    ${heard && html`<${Dialog} title=${`${heard.from ?? "?"} → ${heard.to ?? "?"}, ${date(heard.timestamp)}`} wide onClose=${() => hear(null)}>
      <${Recording} id=${heard.recording_id} account=${account} now /></${Dialog}>`}</section>`;
}

/** The rows of a report, page after page. @param {string} of @param {any} query @param {string|undefined} account @param {string} key */
function usePages(of, query, account, key) {
  const [later, setLater] = useState(/** @type {any} */ ({ key, rows: [], next: undefined }));
  const read = (start_key) => session.request(`${of}?${queryText({ ...query, page_size: pageSize, start_key })}`, { account });
  const { data, error, busy, reload } = useLoad(async () => {
    setLater({ key, rows: [], next: undefined });
    return read("");
  }, [key]);
  const own = later.key === key ? later : { rows: [], next: undefined }, next = own.rows.length ? own.next : data?.next_start_key;
  const more = next && (async () => {
    const page = await read(next);
    setLater({ key, rows: [...own.rows, ...page.data], next: page.next_start_key });
  });
  return { rows: [...(data?.data ?? []), ...own.rows], more, error, busy, reload };
}

/** The callers who were not answered, to be called back. @param {{range: any, query: URLSearchParams}} properties */
export function Abandoned({ range, query }) {
  const account = query.get("account") || undefined, { agent_id: _, ...wanted } = reportQuery(range, query), mayCall = session.user?.presence_id;
  const { rows, more, error, busy, reload } = usePages(abandonedPath, wanted, account, query.toString());
  return html`<section class="panel" aria-labelledby="abandoned-title" aria-busy=${String(busy)}><header><h2 id="abandoned-title">Not answered</h2>
    <span class="sub">Callers who hung up while they waited</span>
      <span class="end"><${CSV} path=${abandonedPath} name="not-answered.csv" query=${{ ...wanted, account }} /></span></header>
    ${error && html`<${Pending} error=${error} reload=${reload} />`}
    <${Table} name="Not answered" busy=${busy} empty="Every caller in this range was answered." rows=${rows}
      keyOf=${(row) => `${row.call_id} ${row.entered_at}`} columns=${[
      { title: "Hung up", cell: (row) => html`<a href=${callLink({ id: row.call_id, interaction: row.interaction_id, since: row.entered_at })}>
        ${date(row.abandoned_at)}</a>` },
      { title: "Caller", cell: (row) => row.caller ?? "unknown" }, { title: "Queue", cell: (row) => userPart(row.queue_id) },
      { title: "Waited", number: true, cell: (row) => duration(row.wait_ms / 1000) },
        { title: html`<span class="unseen">Note</span>`, cell: (row) => row.short ? "a moment only" : "" },
    ]} actions=${(row) => mayCall && row.caller && html`<${Act} aria-label=${`Call ${row.caller} back`}
      run=${() => placeCall(row.caller)}>Call back</${Act}>`} />${more && html`<${Act} run=${more}>More</${Act}>`}
      </section>`;
}
