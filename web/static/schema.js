/** Shows a JSON Schema as a tree of members with their types and limits. */
import { el } from "./dom.js";
import { inline } from "./markdown.js";

/** @typedef {any} Schema */

/** Resolves a schema's references. */
export class Document {
  #root; #files;

  /** @param {any} root @param {Map<string, any>} files other documents by the name that references use */
  constructor(root, files = new Map()) {
    this.#root = root;
    this.#files = files;
  }

  get root() { return this.#root; }

  /**
   * Returns the object, or the one that it refers to; members next to a reference override it.
   * @returns {any}
   */
  resolve(/** @type {any} */ value, /** @type {any} */ root = this.#root) {
    for (let hops = 0; value && typeof value.$ref === "string" && hops < 20; hops++) {
      const { $ref, ...beside } = value;
      const [file, pointer = ""] = $ref.split("#");
      let from = root;
      if (file) from = this.#files.get(file.replace(/^.*\//, ""));
      const found = pointer.split("/").filter(Boolean).reduce((/** @type {any} */ at, /** @type {string} */ step) =>
        at?.[decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~")], from);
      value = { ...found ?? { description: `${$ref} is not here` }, ...beside };
    }
    return value;
  }
}

const maxDepth = 7;

/** A schema as a tree. @returns {HTMLElement} */
export function schemaView(/** @type {Document} */ doc, /** @type {Schema} */ schema) {
  const s = doc.resolve(schema);
  return el("div", { class: "schema" }, memberLine(doc, "", s, false), memberList(doc, s, 0));
}

/** @returns {HTMLElement} one line: name, type, required or not, limits, description */
function memberLine(/** @type {Document} */ doc, /** @type {string} */ name, /** @type {Schema} */ s, /** @type {boolean} */ required) {
  return el("div", { class: "member" }, name && el("code", { class: "name" }, name), " ", el("span", { class: "type" }, typeOf(doc, s)),
    required && el("span", { class: "required" }, "required"), ...limits(s).map((limit) => el("span", { class: "limit" }, limit)),
    s.description && el("span", { class: "what" }, ...inline(String(s.description).replaceAll(/\s+/g, " ").trim())));
}

/** The members of an object, an array or alternatives. */
function memberList(/** @type {Document} */ doc, /** @type {Schema} */ s, /** @type {number} */ depth) {
  if (depth > maxDepth) return null;
  const list = el("ul", { class: "members" });
  const add = (/** @type {string} */ name, /** @type {Schema} */ schema, required = false) => {
    const member = doc.resolve(schema);
    list.append(el("li", {}, memberLine(doc, name, member, required), memberList(doc, member, depth + 1)));
  };
  for (const [name, member] of Object.entries(s.properties ?? {})) add(name, member, s.required?.includes(name));
  if (s.additionalProperties && typeof s.additionalProperties === "object") add("(any name)", s.additionalProperties);
  const item = doc.resolve(s.items);
  if (item && (item.properties || item.oneOf || item.description)) add("(each)", item);
  for (const [word, choices] of [["one of", s.oneOf], ["any of", s.anyOf]]) {
    if (!s.properties) for (const choice of choices ?? []) add(word, choice);
  }
  return list.children.length ? list : null;
}

/** @returns {string} */
function typeOf(/** @type {Document} */ doc, /** @type {Schema} */ s) {
  if (s.const !== undefined) return JSON.stringify(s.const);
  if (s.enum) return s.enum.map((/** @type {unknown} */ v) => JSON.stringify(v)).join(" | ");
  if (s.oneOf && !s.type) return "one of";
  const type = Array.isArray(s.type) ? s.type.join(" | ") : s.type ?? (s.properties ? "object" : "any");
  if (type !== "array") return s.format ? `${type}, ${s.format}` : type;
  return `array of ${typeOf(doc, doc.resolve(s.items) ?? {})}`;
}

function limits(/** @type {Schema} */ s) {
  /** @type {[string, string][]} */
  const named = [["minimum", "≥ "], ["maximum", "≤ "], ["minLength", "length ≥ "], ["maxLength", "length ≤ "],
    ["minItems", "items ≥ "], ["maxItems", "items ≤ "], ["pattern", "matches "], ["default", "default "]];
  return named.filter(([key]) => s[key] !== undefined).map(([key, word]) => word + (typeof s[key] === "string" ? s[key] : JSON.stringify(s[key])));
}
