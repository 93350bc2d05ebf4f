/** The parts of Markdown that the API descriptions use: paragraphs, tables, code, strong, links. */
import { el } from "./dom.js";

/** @returns {HTMLElement[]} */
export function blocks(/** @type {string} */ text) {
  return text.trim().split(/\n\s*\n/).filter(Boolean).map((block) => {
    const lines = block.split("\n").map((line) => line.trim());
    return lines.length > 1 && lines.every((line) => line.startsWith("|")) ? table(lines) : el("p", {}, ...inline(lines.join(" ")));
  });
}

function table(/** @type {string[]} */ lines) {
  const [head, , ...rows] = lines.map((line) => line.split("|").slice(1, -1).map((cell) => cell.trim()));
  return el("div", { class: "scroll" }, el("table", {},
    el("thead", {}, el("tr", {}, ...head.map((cell) => el("th", { scope: "col" }, ...inline(cell))))),
    el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map((cell) => el("td", {}, ...inline(cell))))))));
}

/** @returns {(Node|string)[]} */
export function inline(/** @type {string} */ text) {
  const parts = [];
  let rest = text;
  for (let found; (found = /`([^`]+)`|\*\*([^*]+)\*\*|\[([^\]]+)\]\(([^)\s]+)\)/.exec(rest));) {
    const [whole, code, strong, label, to] = found;
    parts.push(rest.slice(0, found.index));
    if (code !== undefined) parts.push(el("code", {}, code));
    else if (strong !== undefined) parts.push(el("strong", {}, strong));
    else parts.push(link(label, to));
    rest = rest.slice(found.index + whole.length);
  }
  return [...parts, rest].filter((part) => part !== "");
}

/** Replaces links between the description files by links between their pages. */
function link(/** @type {string} */ label, /** @type {string} */ to) {
  const pages = { "asyncapi.yaml": "/docs/events", "openapi.yaml": "/docs/http" };
  const href = pages[/** @type {keyof typeof pages} */ (to)] ?? (/^(https:\/|)\//.test(to) ? to : undefined);
  return href ? el("a", { href }, label) : label;
}
