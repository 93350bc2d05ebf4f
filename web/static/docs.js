/** The pages under /docs, which show /openapi.json and /asyncapi.json. */
import { Document } from "./schema.js";
import { asyncAPI } from "./docs_events.js";
import { openAPI } from "./docs_http.js";
import { byID, el } from "./dom.js";

const events = location.pathname === "/docs/events";

async function read(/** @type {string} */ path) {
  const response = await fetch(path, { credentials: "omit" });
  if (!response.ok) throw new Error(`${path} answered with ${response.status}`);
  return response.json();
}

/** Loads the schema files that a description refers to, directly or indirectly. */
async function schemas(/** @type {any} */ root) {
  /** @type {Map<string, any>} */
  const files = new Map();
  const names = (/** @type {unknown} */ value) => [...JSON.stringify(value).matchAll(/"\$ref":"(?:schemas\/)?([\w.-]+\.json)/g)].map(([, name]) => name);
  for (let pending = names(root); pending.length;) {
    const unread = [...new Set(pending)].filter((name) => !files.has(name));
    const found = await Promise.all(unread.map((name) => read(`/schemas/${name}`)));
    unread.forEach((name, i) => files.set(name, withAbsoluteRefs(found[i], name)));
    pending = found.flatMap(names).filter((name) => !files.has(name));
  }
  return files;
}

/** The schema file with absolute instead of internal references, so that they resolve from anywhere. */
function withAbsoluteRefs(/** @type {any} */ schema, /** @type {string} */ name) {
  return JSON.parse(JSON.stringify(schema).replaceAll('"$ref":"#', `"$ref":"${name}#`));
}

async function render() {
  byID(events ? "to-events" : "to-api").setAttribute("aria-current", "page");
  const root = await read(events ? "/asyncapi.json" : "/openapi.json");
  const doc = new Document(root, events ? await schemas(root) : undefined);
  document.title = `Trunkline · ${events ? "events and topics" : "HTTP API"}`;
  const groups = events ? asyncAPI(doc) : openAPI(doc);
  byID("toc").append(...groups.map(({ title, id, entries }) => el("section", {}, el("h2", {}, el("a", { href: `#${id}` }, title)),
    el("ul", {}, ...entries.map((entry) => el("li", {}, el("a", { href: `#${entry.id}` }, entry.label)))))));
  byID("content").replaceChildren(...groups.map(({ view }) => view));
  if (location.hash) document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
}

render().catch((error) => {
  byID("content").replaceChildren(el("p", { class: "output bad", role: "alert" }, `The description could not be read: ${error.message}`));
});
