/**
 * The user's session. It has two tokens: the portal's for REST and the channel's
 * for events; neither is accepted in place of the other.
 *
 * Both are in sessionStorage, so that they survive a reload and end with the tab.
 * The refresh token stays in memory: it can be used once, and a duplicated tab
 * copies its storage, so that two tabs would use the same one and the server would
 * end both sessions. The password is not stored. The Content-Security-Policy of
 * web.go protects the tokens: only scripts of this server run in the page.
 */
import { request, RequestError } from "./http.js";
import { eventTypes } from "./event_types.js";

const storageKey = "trunkline.session";

/**
 * @typedef {{id: string, account_id: string, username: string, presence_id: string, role: "admin"|"supervisor"|"agent"|"auditor"|"user"}} User
 * @typedef {{user: User, domain: string, portal: string, portalUntil: number, channel: string, filters?: Filters}} Tokens
 * @typedef {{queue_ids?: string[], agent_ids?: string[], call_ids?: string[], names?: string[]}} Filters of the events channel
 */

export class Session {
  /** @type {?Tokens} */ #tokens = null;
  #refreshToken = "";
  /** @type {?Promise<string>} */ #refreshing = null;
  /** @type {ReturnType<typeof setTimeout>|undefined} */ #timer;
  #clock;
  #storage;
  /** Called when the user must log in again. @type {(reason: string) => void} */ expired = () => {};

  /**
   * @param {import("./clock.js").Clock} clock
   * @param {Storage} storage
   */
  constructor(clock, storage = sessionStorage) {
    this.#clock = clock;
    this.#storage = storage;
    try {
      this.#tokens = JSON.parse(storage.getItem(storageKey) ?? "null");
    } catch {
      storage.removeItem(storageKey);
    }
  }

  get user() { return this.#tokens?.user ?? null; }
  get domain() { return this.#tokens?.domain ?? ""; }
  /** The token of the events channel, "" when logged out and for auditors. */
  get channel() { return this.#tokens?.channel ?? ""; }

  /** The filters of the channel's token. @returns {Filters} */
  get filters() { return this.#tokens?.filters ?? {}; }

  /**
   * Logs in and keeps the filters if the user is the same.
   * @param {string} username
   * @param {string} password
   * @param {string} domain "": the username is unique
   * @param {string} otp "": not required
   */
  async login(username, password, domain, otp = "") {
    await this.#begin(await this.#post("/ucp/v2/login", { username, password, ...(domain && { domain }), ...(otp && { otp }) }), domain);
  }

  /** Uses the session of a login at the OpenID Connect provider, after the redirect back. */
  async loginAtProvider() {
    await this.#begin(await request("/auth/oidc/session", { method: "POST", cookies: true, clock: this.#clock }), "");
  }

  /**
   * @param {{user: User, access_token: string, refresh_token: string, expires_in: number}} portal
   * @param {string} domain
   */
  async #begin(portal, domain) {
    // The channel's token is exchanged for the portal's, so that a logout ends both.
    const filters = portal.user.id === this.user?.id ? this.filters : {};
    const channel = portal.user.role === "auditor" ? { access_token: "" } // an auditor sees no events
      : await request("/ws/v1/cc_events/login", { method: "POST", token: portal.access_token, body: { event_types: eventTypes, ...filters }, clock: this.#clock });
    this.#tokens = { user: portal.user, domain, portal: "", portalUntil: 0, channel: channel.access_token, filters };
    this.#setTokens(portal);
  }

  /** Replaces the channel's token by one with these filters. */
  async subscribe(/** @type {Filters} */ filters) {
    const { access_token: channel } = await this.request("/ws/v1/cc_events/login", { method: "POST", body: { event_types: eventTypes, ...filters } });
    if (!this.#tokens) return; // logged out meanwhile
    Object.assign(this.#tokens, { channel, filters });
    this.#storage.setItem(storageKey, JSON.stringify(this.#tokens));
  }

  /** Ends the session in the browser, and on the server if it is reachable. */
  async logout() {
    const token = this.#tokens?.portal;
    this.#forget();
    if (!token) return;
    try {
      await request("/ucp/v2/logout", { method: "POST", token, timeout: 5000 });
    } catch (error) {
      if (!(error instanceof RequestError)) throw error; // the token expires within the hour
    }
  }

  /**
   * Sends a request with the user's token.
   * @param {string} path
   * @param {import("./http.js").RequestOptions} options
   */
  async request(path, options = {}) {
    const token = await this.#portalToken();
    try {
      return await request(path, { ...options, token, clock: this.#clock });
    } catch (error) {
      if (!(error instanceof RequestError) || error.status !== 401 || !this.#refreshToken) throw error;
      return request(path, { ...options, token: await this.#refresh(), clock: this.#clock });
    }
  }

  /**
   * Sends a GET with the user's token and returns the response itself, which is a success: for audio.
   * @param {string} path
   * @param {{headers?: Record<string, string>}} options
   */
  async fetch(path, { headers = {} } = {}) {
    const token = await this.#portalToken();
    const response = await fetch(path, { headers: { ...headers, Authorization: `Bearer ${token}` }, cache: "no-store", credentials: "omit", redirect: "error" });
    if (!response.ok) throw new RequestError(response.status, response.status === 403 ? "Your role may not listen" : `The server answered ${response.status}`);
    return response;
  }

  async #portalToken() {
    if (this.#tokens && Date.now() < this.#tokens.portalUntil) return this.#tokens.portal;
    if (this.#refreshToken) return this.#refresh();
    this.expired("Log in again to do this. Events continue.");
    throw new RequestError(401, "Log in again to do this");
  }

  /** Refreshes once at a time, because a refresh token can be used once. */
  #refresh() {
    this.#refreshing ??= this.#exchange().finally(() => { this.#refreshing = null; });
    return this.#refreshing;
  }

  async #exchange() {
    const refresh_token = this.#refreshToken;
    try {
      this.#setTokens(await this.#post("/ucp/v2/login/refresh", { refresh_token }));
    } catch (error) {
      if (error instanceof RequestError && error.status === 401) {
        this.#refreshToken = "";
        this.expired("Your session has ended");
      }
      throw error;
    }
    return this.#tokens?.portal ?? "";
  }

  /** @param {{access_token: string, refresh_token: string, expires_in: number}} tokens */
  #setTokens(tokens) {
    if (!this.#tokens) return; // logged out meanwhile
    const lifetime = tokens.expires_in * 1000;
    Object.assign(this.#tokens, { portal: tokens.access_token, portalUntil: Date.now() + lifetime * 0.95 });
    this.#refreshToken = tokens.refresh_token;
    this.#storage.setItem(storageKey, JSON.stringify(this.#tokens));
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#refresh().catch(() => {}), Math.min(lifetime * 0.8, 2 ** 31 - 1)); // a failure is retried by the next request
  }

  #forget() {
    clearTimeout(this.#timer);
    this.#tokens = null;
    this.#refreshToken = "";
    this.#storage.removeItem(storageKey);
  }

  #post(/** @type {string} */ path, /** @type {unknown} */ body) {
    return request(path, { method: "POST", body, clock: this.#clock });
  }
}
