/** Shows the view that the URL's fragment names: #floor, #wall, #phone, #admin. */
import { byID } from "./dom.js";

const all = ["floor", "wall", "phone", "admin"];

export class Views {
  #left;
  #view = "";
  /** @type {Set<string>} */ #allowed = new Set(["floor", "wall", "phone"]);

  constructor(/** @type {() => void} */ left) {
    this.#left = left;
    addEventListener("hashchange", () => this.#show(true));
    byID("wall-leave").addEventListener("click", () => this.go("floor"));
    document.addEventListener("keydown", (event) => { if (event.key === "Escape" && this.#view === "wall") this.go("floor"); });
    this.#show(false);
  }

  allow(/** @type {string} */ view, /** @type {boolean} */ yes) {
    if (yes) this.#allowed.add(view);
    else this.#allowed.delete(view);
    byID(`to-${view}`).parentElement.hidden = !yes;
    this.#show(false);
  }

  go(/** @type {string} */ view) {
    if (location.hash !== `#${view}`) history.pushState(null, "", `#${view}`);
    this.#show(true);
  }

  #show(/** @type {boolean} */ focus) {
    const asked = location.hash.slice(1);
    const view = all.includes(asked) && this.#allowed.has(asked) ? asked : "floor";
    if (view === this.#view) return;
    if (this.#view === "admin") this.#left();
    this.#view = view;
    document.body.dataset.view = view;
    for (const name of ["floor", "phone", "admin"]) byID(name).hidden = name !== (view === "wall" ? "floor" : view);
    for (const name of all) {
      const link = byID(`to-${name}`);
      if (name === view) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    if (focus) byID(view === "wall" ? "floor" : view).focus({ preventScroll: true });
  }
}
