/**
 * The server's time. Every answer says it to the second; together they narrow
 * down by how much the browser's clock is off. As long as that may be nothing,
 * the browser's clock is believed.
 */
export class Clock {
  #least = -Infinity; // bounds of the server's time less ours, ms
  #most = Infinity;

  /**
   * @param {number} second what the server said, Unix seconds
   * @param {number} sent when we asked, ms
   * @param {number} received when the answer was there, ms
   */
  heard(second, sent, received) {
    if (!Number.isFinite(second) || received - sent > 10_000) return;
    const least = second * 1000 - received, most = (second + 1) * 1000 - sent;
    if (least > this.#most || most < this.#least) { // one of the clocks was set
      this.#least = least;
      this.#most = most;
      return;
    }
    this.#least = Math.max(this.#least, least);
    this.#most = Math.min(this.#most, most);
  }

  /** By how much the server is ahead, ms. */
  get offset() { return Math.max(Math.min(0, this.#most), this.#least); }

  /** The server's time, ms. */
  now() { return Date.now() + this.offset; }
}
