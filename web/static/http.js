/**
 * Requests to the server of this page. A response without success is thrown as
 * Refused, with the server's message.
 */

export class Refused extends Error {
  /**
   * @param {number} status 0: no response
   * @param {string} message
   * @param {{field: string, code: string, message: string}[]} fields
   * @param {number} after milliseconds of Retry-After, else 0
   */
  constructor(status, message, fields = [], after = 0) {
    const details = fields.map(({ field, message }) => `${field} ${message}`).join("; ");
    super(details ? `${message}: ${details}` : message);
    this.status = status;
    this.fields = fields;
    this.after = after;
  }
}

/**
 * @typedef {object} Question
 * @property {string} [method]
 * @property {string} [token]
 * @property {string} [account] for X-Account-ID
 * @property {unknown} [body] sent as JSON
 * @property {Record<string, string>} [headers]
 * @property {number} [patience] ms
 * @property {import("./clock.js").Clock} [clock] learns the server's time
 * @property {boolean} [cookies] sends and takes those of this server
 */

/** @returns {Promise<any>} the answer's JSON, undefined when it has no body */
export async function ask(/** @type {string} */ path, /** @type {Question} */ question = {}) {
  const { method = "GET", token, account, body, patience = 20_000, clock } = question;
  /** @type {Record<string, string>} */
  const headers = { Accept: "application/json", ...question.headers };
  if (token) headers.Authorization = `Bearer ${token}`;
  if (account) headers["X-Account-ID"] = account;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const sent = Date.now();
  let answer, text;
  try {
    answer = await fetch(path, {
      method, headers, cache: "no-store", credentials: question.cookies ? "same-origin" : "omit", redirect: "error",
      body: body === undefined ? undefined : JSON.stringify(body), signal: AbortSignal.timeout(patience),
    });
    clock?.observe(Date.parse(answer.headers.get("Date") ?? "") / 1000, sent, Date.now());
    text = await answer.text();
  } catch {
    throw new Refused(0, "The server does not answer");
  }
  const content = parsed(text);
  if (answer.ok) return content;
  throw new Refused(answer.status, content?.message ?? `The server answered ${answer.status}`, content?.errors, retryAfter(answer));
}

/** Milliseconds of Retry-After, 0 without it. */
export function retryAfter(/** @type {Response} */ answer) {
  return 1000 * (Number(answer.headers.get("Retry-After")) || 0);
}

/** @returns {any} */
function parsed(/** @type {string} */ text) {
  try {
    return text === "" ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}
