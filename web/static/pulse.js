/** Counts and delays of events, by second, for two minutes. */

export const span = 120; // seconds

export class Pulse {
  #counts = new Array(span).fill(0);
  /** @type {number[][]} */ #delays = Array.from({ length: span }, () => []);
  #second = 0;
  #began = 0;

  /**
   * Counts an event.
   * @param {number} now ms
   * @param {number} delay ms since it was accepted; NaN: not to be counted, because it was replayed
   */
  beat(now, delay) {
    this.#to(now);
    const at = this.#second % span;
    this.#counts[at]++;
    if (Number.isFinite(delay) && this.#delays[at].length < 500) this.#delays[at].push(Math.max(0, delay));
  }

  #to(/** @type {number} */ now) {
    const second = Math.floor(now / 1000);
    this.#began ||= second;
    if (second > this.#second + span) this.#second = second - span;
    while (this.#second < second) {
      this.#second++;
      this.#counts[this.#second % span] = 0;
      this.#delays[this.#second % span] = [];
    }
  }

  /** Complete seconds, oldest first. */
  #each(/** @type {number} */ now) {
    this.#to(now);
    return Array.from({ length: span - 1 }, (_, i) => (this.#second + 1 + i) % span);
  }

  /** Events per second; NaN before the first counted one. */
  rates(/** @type {number} */ now) {
    const each = this.#each(now), unknown = span - 1 - (this.#second - this.#began);
    return each.map((at, i) => i < unknown ? NaN : this.#counts[at]);
  }

  /** The median delay of each second, ms; NaN without a delay. */
  delays(/** @type {number} */ now) { return this.#each(now).map((at) => quantile(this.#delays[at], 0.5)); }

  /** Events per second over the last ten seconds, and the delays' quantiles over all. */
  recent(/** @type {number} */ now) {
    const all = this.#each(now);
    const last = all.slice(-Math.min(10, Math.max(1, this.#second - this.#began)));
    const delays = all.flatMap((at) => this.#delays[at]);
    return {
      rate: last.reduce((sum, at) => sum + this.#counts[at], 0) / last.length,
      median: quantile(delays, 0.5), p95: quantile(delays, 0.95),
    };
  }
}

export function quantile(/** @type {number[]} */ values, /** @type {number} */ q) {
  if (values.length === 0) return NaN;
  return values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(q * values.length))];
}
