/**
 * The server's time. The Date of each response is exact to the second; together they bound the
 * offset of the browser's clock. While the offset may be zero, the browser's clock is used.
 */
export class Clock {
  #least = -Infinity; // bounds of the server's time minus the browser's, ms
  #most = Infinity;

  /**
   * @param {number} second the server's time, Unix seconds
   * @param {number} sent when the request was sent, ms
   * @param {number} received when the response arrived, ms
   */
  observe(second, sent, received) {
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

  /** Offset of the server's clock, ms; positive: it is ahead. */
  get offset() { return Math.max(Math.min(0, this.#most), this.#least); }

  /** The server's time, ms. */
  now() { return Date.now() + this.offset; }
}
