/**
 * Requests to the server of this page. A response without success is thrown as
 * RequestError, with the server's message.
 */

export class RequestError extends Error {
  /**
   * @param {number} status 0: no response
   * @param {string} message
   * @param {{field: string, code: string, message: string}[]} fields
   * @param {number} retryAfter milliseconds of Retry-After, else 0
   */
  constructor(status, message, fields = [], retryAfter = 0) {
    const details = fields.map(({ field, message }) => `${field} ${message}`).join("; ");
    super(details ? `${message}: ${details}` : message);
    this.status = status;
    this.fields = fields;
    this.retryAfter = retryAfter;
  }
}

/**
 * @typedef {object} RequestOptions
 * @property {string} [method]
 * @property {string} [token]
 * @property {string} [account] for X-Account-ID
 * @property {unknown} [body] sent as JSON
 * @property {Record<string, string>} [headers]
 * @property {number} [timeout] ms
 * @property {import("./clock.js").Clock} [clock] is set to the server's time
 * @property {boolean} [raw] returns the response, its body not read
 * @property {boolean} [cookies] sends and accepts the cookies of this server
 */

/** @returns {Promise<any>} the response's JSON; undefined without a body */
export async function request(/** @type {string} */ path, /** @type {RequestOptions} */ options = {}) {
  const { method = "GET", token, account, body, timeout = 20_000, clock } = options;
  /** @type {Record<string, string>} */
  const headers = { ...(!options.raw && { Accept: "application/json" }), ...options.headers };
  if (token) headers.Authorization = `Bearer ${token}`;
  if (account) headers["X-Account-ID"] = account;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const sent = Date.now();
  let response, text;
  try {
    response = await fetch(path, {
      method, headers, cache: "no-store", credentials: options.cookies ? "same-origin" : "omit", redirect: "error",
      body: body === undefined ? undefined : JSON.stringify(body), signal: AbortSignal.timeout(timeout),
    });
    clock?.observe(Date.parse(response.headers.get("Date") ?? "") / 1000, sent, Date.now());
    if (options.raw && response.ok) return response;
    text = await response.text();
  } catch {
    throw new RequestError(0, "The server does not answer");
  }
  const content = parsed(text);
  if (response.ok) return content;
  throw new RequestError(response.status, content?.message ?? `The server answered ${response.status}`, content?.errors, retryAfterOf(response));
}

/** Milliseconds of Retry-After, 0 without it. */
export function retryAfterOf(/** @type {Response} */ response) {
  return 1000 * (Number(response.headers.get("Retry-After")) || 0);
}

/** @returns {any} */
function parsed(/** @type {string} */ text) {
  try {
    return text === "" ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}
