/** The form for the filters of the events channel: a list of ids or names in each field. */
import { runAction } from "./dom.js";

/** @typedef {import("./session.js").Filters} Filters */

export class FilterForm {
  #fields;

  /**
   * @param {{form: HTMLFormElement, button: HTMLButtonElement, output: Element, fields: Record<keyof Filters, HTMLInputElement>}} parts
   * @param {(filters: Filters) => Promise<void>} apply
   */
  constructor({ form, button, output, fields }, apply) {
    this.#fields = fields;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      runAction(button, output, () => apply(this.#filters()));
    });
    form.addEventListener("reset", (event) => {
      event.preventDefault();
      this.show({});
      runAction(button, output, () => apply({}));
    });
  }

  /** Puts the filters into the form. */
  show(/** @type {Filters} */ filters) {
    for (const name of this.#names()) this.#fields[name].value = filters[name]?.join(", ") ?? "";
  }

  #names() { return /** @type {(keyof Filters)[]} */ (Object.keys(this.#fields)); }

  #filters() {
    /** @type {Filters} */
    const filters = {};
    for (const name of this.#names()) {
      const list = splitList(this.#fields[name].value);
      if (list.length > 0) filters[name] = list;
    }
    return filters;
  }
}

/** The parts of a comma-separated list, without duplicates. */
export function splitList(/** @type {string} */ text) {
  return [...new Set(text.split(",").map((part) => part.trim()).filter((part) => part !== ""))];
}
