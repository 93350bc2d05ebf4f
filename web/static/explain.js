/** For administrators: the source of an event, and its outcome at each client and webhook. */
import { date, displayText, shorten } from "./format.js";
import { session } from "./state.js";
import { Act, Facts, html, Table, useState } from "./ui.js";
import { mismatchText, noteText, reasonText } from "./explain_texts.js";

export function Explain({ id }) {
  const [e, show] = useState(null);
  return html`<p class="actions"><${Act} run=${async () => show(await session.request(`/api/v2/events/${encodeURIComponent(id)}/explain`))}>Explain</${Act}></p>
    ${e && html`<p class="output" role="status">${noteText(e)}</p>
    <${Facts} of=${[["Raw record", e.raw.available ? `cc.raw ${e.raw.position}, stored ${date(e.raw.at)}` : "deleted, or the log was cut"],
      ["Format", `${e.format.name}, from ${e.format.from}`], ["Account", `${e.account.id}, from ${e.account.from}`],
      ...e.facts.map((f) => [f.name, `${typeof f.value === "object" ? JSON.stringify(f.value) : f.value}, from ${f.from}`])]} />
    <${Table} name="Connections" empty="No visible connection." rows=${e.connections.filter((c) => c.outcome !== "not_visible")} columns=${[
      { title: "User", cell: (c) => c.username ?? c.user_id ?? c.key_id ?? shorten(c.id) }, { title: "Account", cell: (c) => c.account_id },
      { title: "Connected", cell: (c) => date(c.connected_at) }, { title: "Outcome", cell: (c) => displayText(c.outcome) },
        { title: "Why", cell: reasonText }]} />
    ${e.webhooks.length > 0 && html`<${Table} name="Webhooks" rows=${e.webhooks} columns=${[{ title: "URL", cell: (w) => w.url },
      { title: "Outcome", cell: (w) => displayText(w.outcome) },
      { title: "Why", cell: (w) => w.filtered_by ? mismatchText(w.filtered_by) : w.last_error ?? "" }]} />`}`}`;
}
