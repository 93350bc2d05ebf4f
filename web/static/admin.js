/**
 * For administrators: the encryption of an account's recordings, and its AI
 * providers. The key and the salt are in the page only while this view is open.
 */
import { runAction, copyButton, el, setText } from "./dom.js";

const mask = "••••••••••••••••";

export class Admin {
  #session; #parts;

  /**
   * @param {import("./session.js").Session} session
   * @param {{account: HTMLInputElement, seal: HTMLButtonElement, sealOutput: Element, sealResult: Element,
   *   list: HTMLButtonElement, listOutput: Element, listResult: Element}} parts
   */
  constructor(session, parts) {
    this.#session = session;
    this.#parts = parts;
    parts.seal.addEventListener("click", () => runAction(parts.seal, parts.sealOutput, () => this.#encryption()));
    parts.list.addEventListener("click", () => runAction(parts.list, parts.listOutput, () => this.#providers()));
    parts.account.addEventListener("input", () => this.leave());
  }

  /** Removes all displayed data. */
  leave() {
    for (const part of [this.#parts.sealResult, this.#parts.listResult]) part.replaceChildren();
    for (const part of [this.#parts.sealOutput, this.#parts.listOutput]) setText(part, "");
  }

  get #account() { return this.#parts.account.value.trim() || this.#session.user?.account_id || ""; }

  async #encryption() {
    const { config } = await this.#session.request("/api/v2/config/call_recording_encryption", { account: this.#account });
    const facts = el("dl", { class: "facts" });
    const fact = (/** @type {string} */ name, /** @type {any} */ ...value) => facts.append(el("dt", {}, name), el("dd", {}, ...value));
    fact("Recordings", config.enabled === undefined ? "not encrypted (never configured)" : config.enabled ? "sealed" : "not encrypted");
    if (config.algorithm) fact("Algorithm", config.algorithm);
    if (config.key_id) fact("Key id", config.key_id);
    if (config.key_version) fact("Key version", config.key_version);
    if (config.key) fact("Key", ...secret("key", config.key));
    if (config.salt) fact("Salt", ...secret("salt", config.salt));
    const older = Object.keys(config.historical_keys ?? {}).sort((a, b) => Number(b) - Number(a));
    for (const version of older) {
      fact(`Version ${version}`, ...secret(`key of version ${version}`, config.historical_keys[version]),
        ...config.historical_salts?.[version] ? secret(`salt of version ${version}`, config.historical_salts[version]) : []);
    }
    this.#parts.sealResult.replaceChildren(facts);
    setText(this.#parts.sealOutput, `Read for account ${this.#account}.`);
  }

  async #providers() {
    const { data } = await this.#session.request("/api/v2/config/ai_providers", { account: this.#account });
    this.#parts.listResult.replaceChildren(...data.map((/** @type {any} */ p) => this.#provider(p, this.#account)));
    setText(this.#parts.listOutput, data.length === 1 ? "1 provider." : data.length ? `${data.length} providers.` : "This account has no AI provider.");
  }

  #provider(/** @type {any} */ p, /** @type {string} */ account) {
    const output = el("p", { class: "output", role: "status" });
    const test = el("button", { type: "button", class: "quiet", "aria-label": `Test ${p.name}`, onclick: () => runAction(test, output, async () => {
      setText(output, "Connecting…");
      const path = `/api/v2/config/ai_providers/${encodeURIComponent(p.id)}/test`;
      const result = await this.#session.request(path, { method: "POST", account, timeout: 60_000 });
      output.classList.toggle("bad", !result.ok);
      setText(output, result.ok ? `Works: connected in ${Math.round(result.connect_ms)} ms; ${eventCounts(result.events)}` : `Failed: ${result.error ?? "no reason given"}`);
    }) }, "Test");
    return el("li", { class: "card" }, el("h3", {}, p.name), el("dl", { class: "facts" },
      ...[["Address", p.websocket?.url], ["Audio", `${p.media?.audioFormat}, ${p.media?.sampleRate} Hz`],
        ["Headers", Object.keys(p.websocket?.headers ?? {}).join(", ") || "none"], ["Extensions", p.extensions ? "yes" : "no"],
        ["Fallback", p.fallback ?? "hangup"], ["Id", p.id]].flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value ?? "")])),
    el("p", { class: "actions" }, test, copyButton("Copy id", () => p.id)), output);
  }
}

/** "start, 49 media, hangup" */
function eventCounts(/** @type {string[]} */ events) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const name of events) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].map(([name, n]) => n > 1 ? `${n} ${name}` : name).join(", ");
}

/** A secret, masked until Show is pressed. */
function secret(/** @type {string} */ name, /** @type {string} */ value) {
  const shown = el("code", { class: "secret" }, mask);
  const copy = copyButton("Copy", () => value);
  copy.setAttribute("aria-label", `Copy ${name}`);
  const button = el("button", { type: "button", class: "quiet", "aria-pressed": "false", "aria-label": `Show ${name}`, onclick: () => {
    const show = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(show));
    setText(button, show ? "Hide" : "Show");
    setText(shown, show ? value : mask);
  } }, "Show");
  return [shown, " ", button, copy];
}
