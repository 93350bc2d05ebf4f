/**
 * Parses an event stream (HTML standard, section 9.2.6) from chunks of text and
 * calls back for every event and comment. An event that is incomplete at the end
 * of the stream is discarded.
 */
export class StreamReader {
  #line = "";
  #afterReturn = false;
  /** @type {string[]} */ #data = [];
  #id = "";
  #event;
  #comment;

  /**
   * @param {(data: string, id: string) => void} event
   * @param {(text: string) => void} comment
   */
  constructor(event, comment) {
    this.#event = event;
    this.#comment = comment;
  }

  feed(/** @type {string} */ chunk) {
    if (this.#afterReturn && chunk.startsWith("\n")) chunk = chunk.slice(1);
    if (chunk === "") return;
    this.#afterReturn = chunk.endsWith("\r");
    const lines = chunk.split(/\r\n|\n|\r/);
    lines[0] = this.#line + lines[0];
    this.#line = lines.pop() ?? "";
    for (const line of lines) this.#take(line);
  }

  #take(/** @type {string} */ line) {
    if (line === "") return this.#dispatch();
    const colon = line.indexOf(":");
    if (colon === 0) return this.#comment(line.slice(1));
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "data") this.#data.push(value);
    else if (name === "id" && !value.includes("\0")) this.#id = value;
  }

  #dispatch() {
    if (this.#data.length) this.#event(this.#data.join("\n"), this.#id);
    this.#data = [];
  }
}
