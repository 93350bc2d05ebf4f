/** Shows an AsyncAPI description: channels and their messages. */
import { exampleView, group, slug } from "./docs_http.js";
import { el } from "./dom.js";
import { blocks } from "./markdown.js";
import { schemaView } from "./schema.js";

/**
 * @typedef {import("./schema.js").Document} Document
 * @typedef {import("./docs_http.js").Group} Group
 */

/** @returns {Group[]} */
export function asyncAPI(/** @type {Document} */ doc) {
  const { info, servers, channels } = doc.root;
  const intro = group("About", "about", [], [el("h1", {}, info.title), ...blocks(info.description ?? ""),
    el("p", {}, "Download: ", el("a", { href: "/asyncapi.yaml" }, "asyncapi.yaml"), ", ", el("a", { href: "/asyncapi.json" }, "asyncapi.json"), ".")]);
  const byServer = Object.entries(servers).map(([name, server]) => {
    const own = Object.entries(channels).filter(([, channel]) => channel.servers?.some((/** @type {any} */ s) => s.$ref === `#/servers/${name}`));
    const entries = own.map(([key, channel]) => ({ id: slug(key), label: `${channel.title ?? key}: ${channel.address}`, view: channelView(doc, key, channel) }));
    return group(`${server.protocol} · ${name}`, slug(`server ${name}`), entries,
      [el("h2", {}, `${server.protocol} · ${name}`), ...blocks(server.description ?? ""), ...entries.map(({ view }) => view)]);
  });
  return [intro, ...byServer];
}

function channelView(/** @type {Document} */ doc, /** @type {string} */ key, /** @type {any} */ channel) {
  const ws = channel.bindings?.ws;
  return el("article", { id: slug(key), class: "panel operation" }, el("h3", {}, channel.title ?? key),
    el("p", { class: "line" }, el("code", {}, channel.address)), ...blocks(channel.description ?? ""),
    ...Object.entries(channel.parameters ?? {}).flatMap(([name, p]) => [el("h4", {}, name), ...blocks(/** @type {any} */ (p).description ?? "")]),
    ws?.query && el("h4", {}, "Query"), ws?.query && schemaView(doc, ws.query),
    ws?.headers && el("h4", {}, "Headers"), ws?.headers && schemaView(doc, ws.headers),
    el("h4", {}, "Messages"), ...Object.values(channel.messages ?? {}).map((ref) => messageView(doc, doc.resolve(ref))));
}

function messageView(/** @type {Document} */ doc, /** @type {any} */ message) {
  return el("details", { class: "answer" },
    el("summary", {}, el("b", {}, message.title ?? message.name), " ", String(message.description ?? "").replaceAll(/\s+/g, " ")),
    message.headers && el("h4", {}, "Headers"), message.headers && schemaView(doc, message.headers),
    message.payload && el("h4", {}, "Payload"), message.payload && schemaView(doc, message.payload),
    ...(message.examples ?? []).flatMap((/** @type {any} */ one) =>
      [one.headers && exampleView(["Headers", one.headers]), exampleView(["Example", one.payload])]));
}
