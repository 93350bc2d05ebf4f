/** Shows the search on the pages of docs. Strings become text, never HTML. */
import { search, split } from "./search.js";

const form = /** @type {HTMLFormElement} */ (document.querySelector("form.search"));
const field = /** @type {HTMLInputElement} */ (document.getElementById("search"));
const found = /** @type {HTMLElement} */ (document.getElementById("found"));
const article = /** @type {HTMLElement} */ (document.querySelector("article"));
const index = /** @type {string} */ (field.dataset.index);

/** Addresses in the index are those seen from the root, where the index is. */
const root = new URL(index, location.href);

/** @type {Promise<import("./search.js").Page[]> | undefined} */
let pages;

/** The index, which is read once. */
function read() {
  pages ??= fetch(root, { credentials: "omit" }).then((response) => {
    if (!response.ok) throw new Error(`${root.pathname} answered with ${response.status}`);
    return response.json();
  });
  pages.catch(() => { pages = undefined; });
  return pages;
}

async function show() {
  const query = field.value.trim();
  article.hidden = query.length > 1;
  found.hidden = !article.hidden;
  if (found.hidden) return;
  try {
    const results = search(await read(), query);
    if (query === field.value.trim()) found.replaceChildren(...view(results, query));
  } catch (error) {
    found.replaceChildren(element("p", `The pages could not be searched: ${error instanceof Error ? error.message : error}`));
  }
}

function view(/** @type {import("./search.js").Result[]} */ results, /** @type {string} */ query) {
  const list = element("ol", ...results.map((result) => {
    const link = element("a", `${result.page === result.title ? "" : `${result.page}: `}${result.title}`);
    link.setAttribute("href", new URL(result.address, root).href);
    link.addEventListener("click", () => { field.value = ""; show(); });
    return element("li", link, element("p", ...marked(result.excerpt, split(query))));
  }));
  return [element("h1", results.length ? "Found" : `Nothing found for “${query}”`), list];
}

/** The text with the words of the query marked. @returns {(Node|string)[]} */
function marked(/** @type {string} */ text, /** @type {string[]} */ words) {
  const escaped = words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return text.split(new RegExp(`(${escaped.join("|")})`, "i")).map((part, i) => (i % 2 ? element("mark", part) : part));
}

/** @returns {HTMLElement} */
function element(/** @type {string} */ name, /** @type {(Node|string)[]} */ ...children) {
  const made = document.createElement(name);
  made.append(...children);
  return made;
}

form.hidden = false;
form.addEventListener("submit", (event) => event.preventDefault());
field.addEventListener("input", show);
field.addEventListener("keydown", (event) => {
  if (event.key === "Enter") found.querySelector("a")?.click();
  if (event.key === "Escape") { field.value = ""; show(); }
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !(event.target instanceof HTMLInputElement)) { event.preventDefault(); field.focus(); }
});
const asked = new URLSearchParams(location.search).get("q");
if (asked) { field.value = asked; show(); }
