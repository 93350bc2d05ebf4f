/** Shows an OpenAPI description: operations by tag. */
import { el } from "./dom.js";
import { blocks, inline } from "./markdown.js";
import { schemaView } from "./schema.js";

/**
 * @typedef {import("./schema.js").Document} Document
 * @typedef {{title: string, id: string, entries: {id: string, label: string}[], view: HTMLElement}} Group
 */

const methods = ["get", "put", "post", "delete", "patch"];

/** @returns {Group[]} */
export function openAPI(/** @type {Document} */ doc) {
  const { info, tags, paths } = doc.root;
  const operations = Object.entries(paths).flatMap(([path, ref]) => {
    const item = doc.resolve(ref);
    return methods.filter((method) => item[method]).map((method) => ({ path, method, item, operation: item[method] }));
  });
  const intro = group("About", "about", [], [el("h1", {}, `${info.title} HTTP API`), ...blocks(info.description ?? ""),
    el("p", {}, "Download: ", el("a", { href: "/openapi.yaml" }, "openapi.yaml"), ", ", el("a", { href: "/openapi.json" }, "openapi.json"), ".")]);
  return [intro, ...tags.map((/** @type {any} */ tag) => {
    const own = operations.filter(({ operation }) => operation.tags?.includes(tag.name));
    const summaries = own.map(({ operation }) => operation.summary);
    const label = (/** @type {any} */ { operation, path }) => // the channel's endpoints exist under two paths
      summaries.filter((one) => one === operation.summary).length > 1 ? `${operation.summary}: ${path}` : operation.summary ?? path;
    const entries = own.map((one) => ({ id: operationID(one), label: label(one), view: operationView(doc, one) }));
    return group(tag.name, slug(tag.name), entries, [el("h2", {}, tag.name), ...blocks(tag.description ?? ""), ...entries.map(({ view }) => view)]);
  }), securityGroup(doc)];
}

function operationID(/** @type {any} */ { path, method }) { return slug(`${method} ${path}`); }

export function slug(/** @type {string} */ text) { return text.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-").replaceAll(/^-|-$/g, ""); }

/** @returns {Group} */
export function group(/** @type {string} */ title, /** @type {string} */ id, /** @type {Group["entries"]} */ entries, /** @type {any[]} */ children) {
  return { title, id, entries, view: el("section", { id, class: "group" }, ...children) };
}

function operationView(/** @type {Document} */ doc, /** @type {any} */ one) {
  const { path, method, item, operation } = one;
  const parameters = [...item.parameters ?? [], ...operation.parameters ?? []].map((p) => doc.resolve(p));
  const body = doc.resolve(operation.requestBody);
  return el("article", { id: operationID(one), class: "panel operation" },
    el("h3", {}, operation.summary ?? path),
    el("p", { class: "line" }, el("span", { class: "method", "data-method": method }, method.toUpperCase()), " ", el("code", {}, path)),
    ...blocks(operation.description ?? ""), security(operation.security ?? doc.root.security),
    parameters.length > 0 && parameterTable(doc, parameters),
    body && el("h4", {}, "Body"), ...contentViews(doc, body?.content),
    el("h4", {}, "Responses"), ...Object.entries(operation.responses ?? {}).map(([status, ref]) => responseView(doc, status, ref)));
}

function security(/** @type {any[]|undefined} */ ways) {
  if (!ways?.length) return el("p", { class: "hint" }, "No authentication.");
  const names = ways.map((way) => Object.keys(way)[0]); // undefined: no authentication
  return el("p", { class: "hint" }, "Authentication: ", ...names.flatMap((name, i) => [i ? " or " : "", name ? el("a", { href: `#${slug(`auth ${name}`)}` }, name) : "none"]), ".");
}

function parameterTable(/** @type {Document} */ doc, /** @type {any[]} */ parameters) {
  return el("div", { class: "scroll" }, el("table", {}, el("caption", { class: "unseen" }, "Parameters"),
    el("thead", {}, el("tr", {}, ...["Parameter", "In", "Type", "Description"].map((name) => el("th", { scope: "col" }, name)))),
    el("tbody", {}, ...parameters.map((p) => el("tr", {}, el("td", {}, el("code", {}, p.name)), el("td", {}, p.in, p.required && el("span", { class: "required" }, "required")),
      el("td", {}, schemaView(doc, p.schema ?? {})), el("td", {}, ...inline((p.description ?? "").replaceAll(/\s+/g, " "))))))));
}

/** @returns {HTMLElement[]} */
function contentViews(/** @type {Document} */ doc, /** @type {Record<string, any>} */ content = {}) {
  return Object.entries(content).map(([type, media]) => el("div", { class: "content" }, el("p", { class: "media" }, type),
    media.schema && schemaView(doc, media.schema), ...examples(media).map(exampleView)));
}

/** @returns {[string, unknown][]} */
function examples(/** @type {any} */ media) {
  if (media.example !== undefined) return [["Example", media.example]];
  return Object.entries(media.examples ?? {}).map(([name, one]) => [`Example: ${name}`, /** @type {any} */ (one).value]);
}

export function exampleView(/** @type {[string, unknown]} */ [name, value]) {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  return el("figure", {}, el("figcaption", {}, name), el("pre", { tabindex: "0" }, text));
}

function responseView(/** @type {Document} */ doc, /** @type {string} */ status, /** @type {any} */ ref) {
  const answer = doc.resolve(ref);
  const headers = Object.entries(answer.headers ?? {});
  return el("details", { class: "answer" },
    el("summary", {}, el("b", { "data-status": status[0] }, status), " ", ...inline((answer.description ?? "").replaceAll(/\s+/g, " ").trim())),
    headers.length > 0 && el("p", { class: "hint" }, "Headers: ", ...headers.flatMap(([name], i) => [i ? ", " : "", el("code", {}, name)])),
    ...contentViews(doc, answer.content));
}

/** @returns {Group} */
function securityGroup(/** @type {Document} */ doc) {
  const schemes = Object.entries(doc.root.components?.securitySchemes ?? {});
  return group("Credentials", "credentials", [], [el("h2", {}, "Credentials"), ...schemes.map(([name, s]) =>
    el("article", { id: slug(`auth ${name}`), class: "panel" }, el("h3", {}, name), el("p", { class: "hint" },
      s.type === "http" ? `HTTP ${s.scheme}${s.bearerFormat ? `, ${s.bearerFormat}` : ""}` : `${s.in} ${s.name}`), ...blocks(s.description ?? "")))]);
}
