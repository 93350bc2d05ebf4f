/** Shows the view that the URL's fragment names: #floor, #wall, #figures, #phone, #admin. */
import { byID } from "./dom.js";

const all = ["floor", "wall", "figures", "phone", "admin"];

export class Views {
  #changed;
  #view = "";
  /** @type {Set<string>} */ #allowed = new Set(["floor", "wall", "figures", "phone"]);

  constructor(/** @type {(view: string, before: string) => void} */ changed) {
    this.#changed = changed;
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

  get view() { return this.#view; }

  go(/** @type {string} */ view) {
    if (location.hash !== `#${view}`) history.pushState(null, "", `#${view}`);
    this.#show(true);
  }

  #show(/** @type {boolean} */ focus) {
    const asked = location.hash.slice(1);
    const view = all.includes(asked) && this.#allowed.has(asked) ? asked : "floor";
    if (view === this.#view) return;
    const before = this.#view;
    this.#view = view;
    document.body.dataset.view = view;
    for (const name of ["floor", "figures", "phone", "admin"]) byID(name).hidden = name !== (view === "wall" ? "floor" : view);
    for (const name of all) {
      const link = byID(`to-${name}`);
      if (name === view) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    this.#changed(view, before);
    if (focus) byID(view === "wall" ? "floor" : view).focus({ preventScroll: true });
  }
}
