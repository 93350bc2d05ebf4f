/**
 * For administrators: the accounts below their own, and an account's users, phones
 * and API keys. Passwords and keys are shown once, and are in the page only while
 * this view is open.
 */
import { runAction, copyButton, el, setText } from "./dom.js";
import { request } from "./http.js";
import { date } from "./format.js";

const accountsPath = "/api/v2/accounts", keysPath = "/api/v2/apikeys";
const sizeOfPage = 200;

/** @typedef {{form: HTMLFormElement, list: HTMLButtonElement, create: HTMLButtonElement, output: Element, result: Element}} Panel */

export class Directory {
  #session; #account; #subject; #panels;

  /**
   * @param {import("./session.js").Session} session
   * @param {HTMLInputElement} account whose users and keys are shown; empty: the administrator's
   * @param {HTMLElement} subject field of a new user's subject at the OpenID Connect provider
   * @param {{accounts: Panel, users: Panel, keys: Panel}} panels
   */
  constructor(session, account, subject, panels) {
    this.#session = session;
    this.#account = account;
    this.#subject = subject;
    this.#panels = panels;
    this.#connect(panels.accounts, () => this.#listAccounts(), (fields) => this.#createAccount(fields));
    this.#connect(panels.users, () => this.#listUsers(), (fields) => this.#createUser(fields));
    this.#connect(panels.keys, () => this.#listKeys(), (fields) => this.#createKey(fields));
    account.addEventListener("input", () => this.leave());
  }

  /** Shows the subject's field if the server has an OpenID Connect provider. */
  async enter() {
    const { enabled } = await request("/auth/oidc").catch(() => ({ enabled: false })); // on failure, users with a password can still be created
    this.#subject.hidden = !enabled;
  }

  /** Removes all displayed data. */
  leave() {
    for (const { output, result, form } of Object.values(this.#panels)) {
      result.replaceChildren();
      setText(output, "");
      form.reset();
    }
  }

  get #id() { return this.#account.value.trim() || this.#session.user?.account_id || ""; }
  get #users() { return `${accountsPath}/${encodeURIComponent(this.#id)}/users`; }

  /** @param {Panel} panel @param {() => Promise<void>} list @param {(fields: FormData) => Promise<any>} create */
  #connect({ form, list: button, create: submit, output, result }, list, create) {
    button.addEventListener("click", () => runAction(button, output, list));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      runAction(submit, output, async () => {
        const shown = await create(new FormData(form));
        form.reset();
        await list();
        if (shown) result.prepend(shown);
      });
    });
  }

  /** Shows all pages of a list. @param {Panel} panel @param {string} path @param {string} one @param {(item: any) => Node} card @param {string} [account] */
  async #list({ output, result }, path, one, card, account) {
    const items = [];
    let next = "";
    do {
      const query = new URLSearchParams({ page_size: String(sizeOfPage), ...(next && { start_key: next }) });
      const page = await this.#session.request(`${path}?${query}`, { account });
      items.push(...page.data);
      next = page.next_start_key ?? "";
    } while (next);
    result.replaceChildren(...items.map(card));
    setText(output, items.length === 1 ? `1 ${one}.` : `${items.length} ${one}s.`);
  }

  #listAccounts() {
    const panel = this.#panels.accounts;
    return this.#list(panel, accountsPath, "account", (a) => {
      const path = `${accountsPath}/${encodeURIComponent(a.id)}`, list = () => this.#listAccounts();
      const card = this.#card(a.name, [["Domain", a.domain], ["Id", a.id], ["Parent account", a.parent_id], ["Time zone", a.time_zone]], [
        el("button", { type: "button", class: "quiet", "aria-label": `Choose ${a.name}`, onclick: () => {
          this.#account.value = a.id;
          this.#account.dispatchEvent(new Event("input"));
          this.#account.focus();
        } }, "Choose"),
        this.#button(panel, `Login rule of ${a.name}`, "Login rule", () => this.#showLoginRule(panel, a, card)),
        this.#remove(panel, a.name, path, list),
        this.#remove(panel, `${a.name} and its data`, `${path}?purge=now`, list, "Delete with its data"),
      ]);
      return card;
    });
  }

  /** Shows whether an account's administrators need one-time passwords, with a button to change it. @param {Panel} panel @param {any} account @param {HTMLElement} card */
  async #showLoginRule(panel, account, card) {
    const path = "/api/v2/config/login";
    const { admin_otp } = await this.#session.request(path, { account: account.id });
    const rule = el("select", { onchange: () => runAction(rule, panel.output, async () => {
      await this.#session.request(path, { method: "PUT", account: account.id, body: { admin_otp: rule.value } });
      setText(panel.output, `Login rule of ${account.name}: ${rule.value}.`);
    }) }, el("option", { value: "optional" }, "optional"), el("option", { value: "required" }, "required"));
    rule.value = admin_otp;
    card.querySelector(".rule")?.remove();
    card.append(el("p", { class: "rule" }, el("label", {}, "One-time passwords of its administrators ", rule)));
  }

  #createAccount(/** @type {FormData} */ fields) {
    return this.#session.request(accountsPath, { method: "POST", body: { name: fields.get("name"), domain: fields.get("domain"), parent_id: this.#id, time_zone: fields.get("time_zone") } }).then(() => undefined);
  }

  #listUsers() {
    const panel = this.#panels.users;
    return this.#list(panel, this.#users, "user", (u) => {
      const path = `${this.#users}/${encodeURIComponent(u.id)}`;
      const put = async (/** @type {object} */ change) => {
        const { role, presence_id } = await this.#session.request(path); // the list may be out of date
        await this.#session.request(path, { method: "PUT", body: { role, presence_id, ...change } });
      };
      const other = u.role === "admin" ? "user" : "admin";
      const card = this.#card(u.username, [["Role", u.role], ["Queues", (u.queue_ids ?? []).join(" ")], ["Agents", (u.agent_ids ?? []).join(" ")], ["Extension", u.presence_id], ["Subject", u.oidc_subject], ["Id", u.id]], [
        this.#button(panel, `Make ${u.username} ${other === "admin" ? "an administrator" : "a user"}`, other === "admin" ? "Make administrator" : "Make user", async () => {
          await put({ role: other });
          await this.#listUsers();
        }),
        !u.oidc_subject && this.#button(panel, `New password for ${u.username}`, "New password", async () => {
          const password = randomPassword();
          await put({ password });
          card.append(secret(`Password of ${u.username}`, password));
        }),
        u.presence_id && this.#button(panel, `Phone password for ${u.username}`, "Phone password", async () => {
          const device = await this.#session.request(`${path}/devices`, { method: "POST", body: { name: "made on the board" } });
          card.append(secret(`Phone password of ${u.username}`, device.password));
        }),
        this.#button(panel, `Phones of ${u.username}`, "Phones", () => this.#listPhones(panel, u, path, card)),
        !u.oidc_subject && this.#button(panel, `One-time passwords for ${u.username}`, "One-time passwords", async () => {
          const { uri, recovery_codes } = await this.#session.request(`${path}/otp`, { method: "POST" });
          card.append(secret(`One-time passwords of ${u.username}`, uri), secret(`Recovery codes of ${u.username}`, recovery_codes.join(" ")));
        }),
        !u.oidc_subject && this.#button(panel, `Remove one-time passwords of ${u.username}`, "Remove one-time passwords", async () => {
          await this.#session.request(`${path}/otp`, { method: "DELETE" });
          setText(panel.output, `${u.username} has no one-time passwords.`);
        }),
        this.#remove(panel, u.username, path, () => this.#listUsers()),
      ]);
      return card;
    });
  }

  /** @param {Panel} panel @param {any} user @param {string} path @param {HTMLElement} card */
  async #listPhones(panel, user, path, card) {
    const { data } = await this.#session.request(`${path}/devices`); // a page holds the maximum number of devices
    card.querySelector(".phones")?.remove();
    card.append(el("ul", { class: "phones" }, ...data.map((/** @type {any} */ phone) => el("li", {}, `${phone.name || phone.id}, ${date(phone.created_at)} `,
      this.#remove(panel, `phone ${phone.id}`, `${path}/devices/${encodeURIComponent(phone.id)}`, () => this.#listPhones(panel, user, path, card))))));
    setText(panel.output, data.length === 1 ? `1 phone of ${user.username}.` : `${data.length} phones of ${user.username}.`);
  }

  async #createUser(/** @type {FormData} */ fields) {
    const made = await this.#session.request(this.#users, { method: "POST", body: newUser(fields) });
    return made.password && el("li", { class: "card" }, secret(`Password of ${made.username}`, made.password));
  }

  #listKeys() {
    const panel = this.#panels.keys;
    return this.#list(panel, keysPath, "key", (k) => this.#card(k.name || k.id, [["Scopes", k.scopes.join(", ")],
      ["Expires", k.expires_at ? date(k.expires_at) : "never"], ["Id", k.id]],
    [this.#remove(panel, k.name || k.id, `${keysPath}/${encodeURIComponent(k.id)}`, () => this.#listKeys())]), this.#id);
  }

  async #createKey(/** @type {FormData} */ fields) {
    const days = Number(fields.get("days"));
    const made = await this.#session.request(keysPath, { method: "POST", account: this.#id, body: {
      name: fields.get("name"), scopes: fields.getAll("scope"), ...(days && { expires_at: Math.floor(Date.now() / 1000) + days * 86400 }),
    } });
    return el("li", { class: "card" }, secret(`Key ${made.name || made.id}`, made.key));
  }

  /** @param {string} title @param {[string, any][]} facts @param {any[]} actions */
  #card(title, facts, actions) {
    return el("li", { class: "card" }, el("h3", {}, title),
      el("dl", { class: "facts" }, ...facts.filter(([, value]) => value).flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])),
      el("p", { class: "actions" }, ...actions));
  }

  /** @param {Panel} panel @param {string} name @param {string} label @param {() => Promise<void>} action */
  #button(panel, name, label, action) {
    const button = el("button", { type: "button", class: "quiet", "aria-label": name, onclick: () => runAction(button, panel.output, action) }, label);
    return button;
  }

  /** A button that deletes on its second press. @param {Panel} panel @param {string} name @param {string} path @param {() => Promise<void>} list @param {string} [label] */
  #remove(panel, name, path, list, label = "Delete") {
    const button = this.#button(panel, `Delete ${name}`, label, async () => {
      if (button.textContent === label) {
        setText(button, "Press again to delete");
        button.setAttribute("aria-label", `Press again to delete ${name}`);
        return;
      }
      await this.#session.request(path, { method: "DELETE" });
      await list();
    });
    button.addEventListener("blur", () => {
      setText(button, label);
      button.setAttribute("aria-label", `Delete ${name}`);
    });
    return button;
  }
}

/** The body of a request that creates a user: with a subject, or with a password that the server generates. */
export function newUser(/** @type {FormData} */ fields) {
  const subject = String(fields.get("oidc_subject") ?? "").trim();
  return { username: fields.get("username"), presence_id: fields.get("presence_id"), role: fields.get("role"), ...limits(fields), ...(subject && { oidc_subject: subject }) };
}

/** A secret that the server shows once. */
function secret(/** @type {string} */ title, /** @type {string} */ text) {
  return el("p", { class: "once", role: "status" }, `${title}, shown once: `, el("code", { class: "secret" }, text), " ", copyButton("Copy", () => text));
}

/** 120 random bits in letters and digits. */
function randomPassword() {
  return Array.from(crypto.getRandomValues(new Uint8Array(24)), (byte) => "abcdefghijkmnpqrstuvwxyz23456789"[byte % 32]).join("");
}

/** The queues of a new supervisor, or the agents of a new agent. */
function limits(/** @type {FormData} */ fields) {
  const ids = String(fields.get("limits") ?? "").split(/\s+/).filter(Boolean);
  const field = { supervisor: "queue_ids", agent: "agent_ids" }[String(fields.get("role"))];
  return field && ids.length > 0 ? { [field]: ids } : {};
}
