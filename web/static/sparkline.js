/** A small chart of the last two minutes. */
import { svg } from "./dom.js";

const width = 240, height = 44;

export class Sparkline {
  #area; #line;

  /** @param {Element} host */
  constructor(host) {
    this.#area = svg("path", { class: "area" });
    this.#line = svg("path", { class: "line" });
    host.append(svg("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true", focusable: "false" },
      this.#area, this.#line));
  }

  /** @param {number[]} values NaN: unknown @param {number} minTop the smallest value of the full height */
  draw(values, minTop) {
    const top = Math.max(minTop, ...values.filter(Number.isFinite)) * 1.1;
    const x = (/** @type {number} */ i) => (i * width / (values.length - 1)).toFixed(1);
    const y = (/** @type {number} */ v) => (height - 1 - v / top * (height - 4)).toFixed(1);
    let line = "", area = "";
    for (const run of knownRuns(values)) {
      const path = run.map((i) => `${x(i)},${y(values[i])}`).join("L");
      line += `M${path}`;
      area += `M${x(run[0])},${height}L${path}L${x(run[run.length - 1])},${height}Z`;
    }
    this.#line.setAttribute("d", line);
    this.#area.setAttribute("d", area);
  }
}

const maxGap = 6; // missing values up to this number do not interrupt the line

/** The indexes of known values, in separate runs where too many are missing. */
export function knownRuns(/** @type {number[]} */ values) {
  /** @type {number[][]} */
  const all = [];
  for (let i = 0, last = -Infinity; i < values.length; i++) {
    if (!Number.isFinite(values[i])) continue;
    if (i - last > maxGap) all.push([]);
    all[all.length - 1].push(i);
    last = i;
  }
  return all;
}
