/** Bars over time, which the arrow keys and the pointer select one by one. */
import { el, setText, svg } from "./dom.js";
import { roundUp } from "./formulas.js";

const height = 220, left = 40, bottom = 22, top = 8;
const hourSeconds = 3600;

/**
 * @typedef {object} Bar
 * @property {number} start Unix seconds
 * @property {number[]} values stacked from the bottom
 * @property {string} text shown when the bar is selected
 */

export class Plot {
  #svg; #readout; #label;
  /** @type {Bar[]} */ #bars = [];
  #selected = -1;

  /**
   * @param {Element} host
   * @param {string} title
   * @param {{name: string, tone: string}[]} parts of a bar, from the bottom
   */
  constructor(host, title, parts) {
    this.#label = title;
    this.#svg = svg("svg", { height, role: "img", class: "plot", tabindex: "0",
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.#selectByKey(event),
      onpointermove: (/** @type {PointerEvent} */ event) => this.#selectByPointer(event),
      onpointerleave: () => this.#select(-1), onblur: () => this.#select(-1) });
    this.#readout = el("p", { class: "readout", role: "status" });
    this.tones = parts.map(({ tone }) => tone);
    const legend = el("ul", { class: "legend" }, ...parts.map(({ name, tone }) => el("li", { "data-part": tone }, name)));
    host.append(legend, this.#svg, this.#readout);
  }

  /** @param {Bar[]} bars @param {string} summary for those who do not see the plot */
  draw(bars, summary) {
    this.#bars = bars;
    if (this.#selected >= bars.length) this.#selected = -1;
    this.#svg.setAttribute("aria-label", `${this.#label}. ${summary}`);
    const width = Math.max(300, this.#svg.clientWidth); // one unit is one pixel, so that text keeps its size
    this.#svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const most = roundUp(Math.max(...bars.map(total), 0));
    const y = (/** @type {number} */ v) => height - bottom - v / most * (height - bottom - top);
    const step = (width - left) / Math.max(bars.length, 1), bar = Math.max(1, step - Math.min(4, step / 4));
    const ticks = [0, most / 2, most].filter(Number.isInteger);
    const grid = ticks.flatMap((v) => [
      svg("line", { class: "grid", x1: left, x2: width, y1: y(v), y2: y(v) }),
      svg("text", { class: "axis", x: left - 8, y: y(v) + 4, "text-anchor": "end" }, String(v)),
    ]);
    const every = Math.ceil(64 / step); // minimum number of bars from one label to the next
    let labelled = -Infinity;
    const columns = bars.map(({ start, values }, i) => {
      const x = left + i * step;
      let below = 0;
      const rects = values.map((v, k) => {
        below += v;
        return v > 0 && svg("rect", { "data-part": this.tones[k], x: x.toFixed(1), width: bar.toFixed(1), y: y(below).toFixed(1), height: (y(below - v) - y(below)).toFixed(1) });
      });
      const label = start % hourSeconds === 0 && i - labelled >= every;
      if (label) labelled = i;
      return svg("g", { class: "column", "data-chosen": i === this.#selected },
        svg("rect", { class: "hit", x: x.toFixed(1), width: step.toFixed(1), y: top, height: height - bottom - top }),
        ...rects, label && svg("text", { class: "axis", x: x.toFixed(1), y: height - 5 }, clock(start)));
    });
    this.#svg.replaceChildren(...grid, ...columns);
    this.#showText();
  }

  /** The values of the bars as a table. @returns {any} */
  table(/** @type {string[]} */ columns, /** @type {(bar: Bar) => (string|number)[]} */ cells) {
    return el("table", {}, el("thead", {}, el("tr", {}, ...columns.map((name) => el("th", { scope: "col" }, name)))),
      el("tbody", {}, ...this.#bars.map((bar) => el("tr", {}, ...cells(bar).map((cell, i) => i === 0 ? el("th", { scope: "row" }, cell) : el("td", {}, cell))))));
  }

  #selectByKey(/** @type {KeyboardEvent} */ event) {
    const last = this.#bars.length - 1, at = this.#selected;
    const to = { ArrowLeft: at < 0 ? last : Math.max(0, at - 1), ArrowRight: Math.min(last, at + 1), Home: 0, End: last, Escape: -1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.#select(to);
  }

  #selectByPointer(/** @type {PointerEvent} */ event) {
    const columns = [...this.#svg.querySelectorAll(".column")];
    this.#select(columns.indexOf(/** @type {Element} */ (event.target).closest(".column") ?? columns[-1]));
  }

  #select(/** @type {number} */ i) {
    if (i === this.#selected) return;
    this.#svg.querySelector("[data-chosen]")?.removeAttribute("data-chosen");
    this.#selected = i;
    this.#svg.querySelectorAll(".column")[i]?.setAttribute("data-chosen", "");
    this.#showText();
  }

  #showText() { setText(this.#readout, this.#bars[this.#selected]?.text ?? "Point at a bar, or use the arrow keys, for its numbers."); }
}

const total = (/** @type {Bar} */ { values }) => values.reduce((sum, v) => sum + v, 0);

const time = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hour12: false });

/** 09:15 */
export function clock(/** @type {number} */ seconds) { return time.format(seconds * 1000); }

/** A bar of shares of a whole, for a table cell. */
export function shareBar(/** @type {{tone: string, part: number}[]} */ parts, /** @type {string} */ label) {
  const whole = parts.reduce((sum, { part }) => sum + part, 0) || 1;
  let x = 0;
  return svg("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", class: "shares", role: "img", "aria-label": label },
    ...parts.map(({ tone, part }) => {
      const rect = svg("rect", { "data-part": tone, x: x.toFixed(2), width: (part / whole * 100).toFixed(2), y: 0, height: 10 });
      x += part / whole * 100;
      return part > 0 && rect;
    }));
}
