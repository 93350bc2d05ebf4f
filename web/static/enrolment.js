/**
 * Sets up one-time passwords (TOTP) for an administrator whose account requires
 * them, before the login. The secret and the recovery codes are in the page only
 * while they are shown.
 */
import { runAction, copyButton, el, setText } from "./dom.js";
import { request, RequestError } from "./http.js";

const path = "/ucp/v2/otp";

/** Reports whether a login was refused because one-time passwords have to be set up first. */
export function isEnrolmentRequired(/** @type {unknown} */ error) {
  return error instanceof RequestError && error.fields.some(({ field, code }) => field === "otp" && code === "enrolment_required");
}

export class Enrolment {
  #parts;
  /** @type {?{username: string, password: string, domain: string}} */ #credentials = null;
  /** @type {string[]} */ #codes = [];

  /**
   * @param {{form: HTMLFormElement, secret: Element, secretCopy: Element, link: HTMLAnchorElement, code: HTMLInputElement,
   *   button: HTMLButtonElement, output: Element, recovery: HTMLElement, codes: Element, codesCopy: Element, done: HTMLButtonElement}} parts
   * @param {() => void} finished shows the login again
   */
  constructor(parts, finished) {
    this.#parts = parts;
    parts.secretCopy.append(copyButton("Copy key", () => parts.secret.textContent?.replaceAll(" ", "") ?? ""));
    parts.codesCopy.append(copyButton("Copy codes", () => this.#codes.join("\n")));
    parts.form.addEventListener("submit", (event) => {
      event.preventDefault();
      runAction(parts.button, parts.output, () => this.#confirm());
    });
    parts.done.addEventListener("click", () => {
      this.leave();
      finished();
    });
  }

  /**
   * Shows a new secret of the user.
   * @param {string} username
   * @param {string} password
   * @param {string} domain
   */
  async begin(username, password, domain) {
    this.leave();
    const credentials = { username, password, domain };
    const { secret, uri } = await request(path, { method: "POST", body: credentials });
    this.#credentials = credentials;
    setText(this.#parts.secret, secret.match(/.{1,4}/g).join(" "));
    this.#parts.link.href = uri;
    this.#parts.form.hidden = false;
  }

  async #confirm() {
    const otp = this.#parts.code.value.trim();
    const { recovery_codes: codes } = await request(path, { method: "PUT", body: { ...this.#credentials, otp } });
    this.leave();
    this.#codes = codes;
    this.#parts.codes.append(...codes.map((/** @type {string} */ code) => el("li", {}, el("code", {}, code))));
    this.#parts.recovery.hidden = false;
    this.#parts.done.focus();
  }

  /** Removes everything shown. */
  leave() {
    const { form, recovery, secret, link, code, codes, output } = this.#parts;
    form.hidden = recovery.hidden = true;
    setText(secret, "");
    setText(output, "");
    link.removeAttribute("href");
    code.value = "";
    codes.replaceChildren();
    this.#codes = [];
    this.#credentials = null;
  }
}
