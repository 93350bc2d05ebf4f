/**
 * The server's time. The Date of each response is exact to the second; together they bound the
 * offset of the browser's clock. While the offset may be zero, the browser's clock is used.
 */
export class Clock {
  #minOffset = -Infinity; // bounds of the server's time minus the browser's, ms
  #maxOffset = Infinity;

  /**
   * @param {number} second the server's time, Unix seconds
   * @param {number} sent when the request was sent, ms
   * @param {number} received when the response arrived, ms
   */
  observe(second, sent, received) {
    if (!Number.isFinite(second) || received - sent > 10_000) return;
    const minOffset = second * 1000 - received, maxOffset = (second + 1) * 1000 - sent;
    if (minOffset > this.#maxOffset || maxOffset < this.#minOffset) { // one of the clocks was set
      this.#minOffset = minOffset;
      this.#maxOffset = maxOffset;
      return;
    }
    this.#minOffset = Math.max(this.#minOffset, minOffset);
    this.#maxOffset = Math.min(this.#maxOffset, maxOffset);
  }

  /** Offset of the server's clock, ms; positive: it is ahead. */
  get offset() { return Math.max(Math.min(0, this.#maxOffset), this.#minOffset); }

  /** The server's time, ms. */
  now() { return Date.now() + this.offset; }
}
