/** Plots: a small line of the last minutes, and bars over time that the arrow keys and the pointer select. */
import { roundUp } from "./formulas.js";
import { html, useLayoutEffect, useRef, useState } from "./ui.js";

const lineWidth = 240, lineHeight = 44;

/** @param {{values: number[], minTop: number}} properties values NaN: unknown; minTop the smallest value of the full height */
export function Sparkline({ values, minTop }) {
  const top = Math.max(minTop, ...values.filter(Number.isFinite)) * 1.1;
  const x = (i) => (i * lineWidth / (values.length - 1)).toFixed(1), y = (v) => (lineHeight - 1 - v / top * (lineHeight - 4)).toFixed(1);
  let line = "", area = "";
  for (const run of knownRuns(values)) {
    const path = run.map((i) => `${x(i)},${y(values[i])}`).join("L");
    line += `M${path}`;
    area += `M${x(run[0])},${lineHeight}L${path}L${x(run[run.length - 1])},${lineHeight}Z`;
  }
  return html`<div class="spark"><svg viewBox=${`0 0 ${lineWidth} ${lineHeight}`} preserveAspectRatio="none" aria-hidden="true" focusable="false">
    <path class="area" d=${area} /><path class="line" d=${line} /></svg></div>`;
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

const height = 220, left = 40, bottom = 22, top = 8;

/**
 * Bars of stacked values.
 *
 * @param {object} properties
 * @param {string} properties.title
 * @param {string} properties.summary for those who do not see the plot
 * @param {{name: string, tone: string}[]} properties.parts of a bar, from the bottom
 * @param {{label: string, values: number[], text: string, href?: string}[]} properties.bars label "": none; text is shown when the bar is selected
 */
export function Bars({ title, summary, parts, bars }) {
  const [selected, select] = useState(-1), [width, setWidth] = useState(600), host = useRef(null);
  useLayoutEffect(() => {
    const follow = new ResizeObserver(([entry]) => setWidth(Math.max(300, Math.round(entry.contentRect.width)))); // one unit is one pixel, so that text keeps its size
    follow.observe(host.current);
    return () => follow.disconnect();
  }, []);
  const most = roundUp(Math.max(...bars.map(({ values }) => values.reduce((sum, v) => sum + v, 0)), 0));
  const y = (v) => height - bottom - v / most * (height - bottom - top);
  const step = (width - left) / Math.max(bars.length, 1), bar = Math.max(1, step - Math.min(4, step / 4)), every = Math.ceil(64 / step), last = bars.length - 1;
  const key = (event) => {
    const to = { ArrowLeft: selected < 0 ? last : Math.max(0, selected - 1), ArrowRight: Math.min(last, selected + 1),
      Home: 0, End: last, Escape: -1 }[event.key];
    if (event.key === "Enter" && bars[selected]?.href) location.hash = /** @type {string} */ (bars[selected].href);
    if (to === undefined) return;
    event.preventDefault();
    select(to);
  };
  let labelled = -Infinity;
  return html`<ul class="legend">${parts.map(({ name, tone }) => html`<li data-part=${tone}>${name}</li>`)}</ul>
    <div ref=${host}><svg height=${height} viewBox=${`0 0 ${width} ${height}`} class="plot" role="img" tabindex="0" aria-label=${`${title}. ${summary}`}
      onKeyDown=${key} onPointerLeave=${() => select(-1)} onBlur=${() => select(-1)}>
      ${[0, most / 2, most].filter(Number.isInteger).map((v) => html`<line class="grid" x1=${left} x2=${width} y1=${y(v)} y2=${y(v)} />
        <text class="axis" x=${left - 8} y=${y(v) + 4} text-anchor="end">${v}</text>`)}
      ${bars.map(({ label, values, href }, i) => {
        const x = left + i * step, named = label && i - labelled >= every;
        if (named) labelled = i;
        let below = 0;
        return html`<g class="column" data-chosen=${i === selected ? "" : undefined} onPointerEnter=${() => select(i)}
          onClick=${() => { if (href) location.hash = href; }}>
          <rect class="hit" x=${x.toFixed(1)} width=${step.toFixed(1)} y=${top} height=${height - bottom - top} />
          ${values.map((v, k) => {
            below += v;
            return v > 0 && html`<rect data-part=${parts[k].tone} x=${x.toFixed(1)} width=${bar.toFixed(1)} y=${y(below).toFixed(1)}
              height=${(y(below - v) - y(below)).toFixed(1)} />`;
          })}${named && html`<text class="axis" x=${x.toFixed(1)} y=${height - 5}>${label}</text>`}</g>`;
      })}</svg></div>
    <p class="readout" role="status">${bars[selected]?.text ?? "Point at a bar, or use the arrow keys, for its numbers."}</p>`;
}
