/** Counts and delays of events, by second, for two minutes. */

export const seconds = 120; // length of the window
const maxDelays = 100; // kept of each second

export class EventRates {
  #counts = new Array(seconds).fill(0);
  /** @type {number[][]} */ #delays = Array.from({ length: seconds }, () => []);
  #second = 0;
  #began = 0;

  /**
   * Counts an event.
   * @param {number} now ms
   * @param {number} delay ms since it was accepted; NaN: not to be counted, because it was replayed
   */
  count(now, delay) {
    this.#advance(now);
    const slot = this.#second % seconds;
    this.#counts[slot]++;
    if (Number.isFinite(delay) && this.#delays[slot].length < maxDelays) this.#delays[slot].push(Math.max(0, delay));
  }

  #advance(/** @type {number} */ now) {
    const second = Math.floor(now / 1000);
    this.#began ||= second;
    if (second > this.#second + seconds) this.#second = second - seconds;
    while (this.#second < second) {
      this.#second++;
      this.#counts[this.#second % seconds] = 0;
      this.#delays[this.#second % seconds] = [];
    }
  }

  /** Complete seconds, oldest first. */
  #slots(/** @type {number} */ now) {
    this.#advance(now);
    return Array.from({ length: seconds - 1 }, (_, i) => (this.#second + 1 + i) % seconds);
  }

  /** Events per second; NaN before the first counted one. */
  rates(/** @type {number} */ now) {
    const slots = this.#slots(now), unknown = seconds - 1 - (this.#second - this.#began);
    return slots.map((slot, i) => i < unknown ? NaN : this.#counts[slot]);
  }

  /** The median delay of each second, ms; NaN without a delay. */
  delays(/** @type {number} */ now) { return this.#slots(now).map((slot) => quantile(this.#delays[slot], 0.5)); }

  /** Events per second over the last ten seconds, and the delays' quantiles over all. */
  recent(/** @type {number} */ now) {
    const all = this.#slots(now);
    const last = all.slice(-Math.min(10, Math.max(1, this.#second - this.#began)));
    const delays = all.flatMap((slot) => this.#delays[slot]);
    return {
      rate: last.reduce((sum, slot) => sum + this.#counts[slot], 0) / last.length,
      median: quantile(delays, 0.5), p95: quantile(delays, 0.95),
    };
  }
}

export function quantile(/** @type {number[]} */ values, /** @type {number} */ q) {
  if (values.length === 0) return NaN;
  return values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(q * values.length))];
}
