/** Components of all pages, on preact and htm (preact.js; docs/decisions/0013). Strings become text, never HTML. */
import { Component, html, render, useCallback, useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from "./preact.js";
import { RequestError } from "./http.js";

export { html, render, useCallback, useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState };

/** A value that components follow. @template T */
export class Value {
  #watchers = new Set();
  /** @param {T} value */
  constructor(value) { this.value = value; }
  set(value) {
    this.value = value;
    for (const watcher of this.#watchers) watcher(value);
  }
  /** Calls watcher after each change; the result ends it. */
  watch(watcher) {
    this.#watchers.add(watcher);
    return () => { this.#watchers.delete(watcher); };
  }
}

/** The value, and a new rendering after each change. @template T @returns {T} */
export function useValue(/** @type {Value<T>} */ value) {
  const [, redraw] = useState(0);
  useLayoutEffect(() => value.watch(() => redraw((n) => n + 1)), [value]);
  return value.value;
}

/** A component that is drawn again only when a property differs; its function uses no hooks. */
export function memo(/** @type {(properties: any) => any} */ draw) {
  return class extends Component {
    shouldComponentUpdate(next) {
      const before = /** @type {any} */ (this).props;
      return Object.keys(next).some((name) => next[name] !== before[name]);
    }
    render(properties) { return draw(properties); }
  };
}

/**
 * Items in lasting places: who leaves leaves a gap, who comes takes its old place, a gap or the end. So nothing moves while
 * people come and go; another arrangement puts them in their order.
 *
 * @template T @returns {{key: string, item: ?T}[]}
 */
export function usePlaces(/** @type {T[]} */ items, /** @type {(item: T) => string} */ keyOf, /** @type {string} */ arrangement) {
  const kept = useRef({ arrangement: "", places: [] });
  return useMemo(() => {
    const places = placed(items, keyOf, kept.current.arrangement === arrangement ? kept.current.places : []);
    kept.current = { arrangement, places };
    return places;
  }, [items, arrangement]);
}

/** Items at the places that they have, then in gaps, then behind. @template T @returns {{key: string, item: ?T}[]} */
export function placed(/** @type {T[]} */ items, /** @type {(item: T) => string} */ keyOf, /** @type {{key: string}[]} */ before) {
  const left = new Map(items.map((item) => [keyOf(item), item])), places = before.map(({ key }) => {
    const item = left.get(key) ?? null;
    left.delete(key);
    return { key, item };
  });
  let i = 0;
  for (const [key, item] of left) {
    while (places[i]?.item) i++;
    places[i] = { key, item };
  }
  while (places.length && !places[places.length - 1].item) places.pop();
  return places;
}

/**
 * Shows what is added at the top of a list by scrolling to it, which moves nothing for the browser (it keeps what is seen in
 * place), unless the reader has scrolled away.
 */
export function useNewest(/** @type {{current: any}} */ list) {
  const follows = useRef(true);
  follows.current ||= list.current.scrollTop <= 1;
  useLayoutEffect(() => {
    if (!follows.current) return;
    requestAnimationFrame(() => {
      if (list.current) list.current.scrollTop = 1; // at 0 the browser would keep nothing in place
      follows.current = false;
    });
  });
}

/** Changes each quarter of an hour, when people who came are put in their order. */
export function quarter(/** @type {number} */ ms) { return Math.floor(ms / 900_000); }

/** The message of anything thrown. */
export function messageOf(/** @type {unknown} */ error) { return error instanceof Error ? error.message : String(error); }

/** Loads something when a dependency changes, and keeps the last result: {data, error, busy, reload}. */
export function useLoad(/** @type {() => Promise<any>} */ load, /** @type {any[]} */ dependencies) {
  const [state, setState] = useState({ data: undefined, error: "", busy: true });
  const current = useRef(0);
  const reload = useCallback(async () => {
    const number = ++current.current;
    setState((before) => ({ ...before, busy: true }));
    try {
      const data = await load();
      if (number === current.current) setState({ data, error: "", busy: false });
    } catch (error) {
      if (number === current.current) setState((before) => ({ ...before, error: messageOf(error), busy: false }));
    }
  }, dependencies);
  useEffect(() => {
    reload();
    return () => { current.current++; };
  }, [reload]);
  return { ...state, reload };
}

/** A button that runs an action once at a time and shows its error beside it. */
export function Act({ run, children, class: kind = "", ...rest }) {
  const [busy, setBusy] = useState(false), [error, setError] = useState("");
  const press = async () => {
    if (busy) return;
    setBusy(true);
    setError("");
    try {
      await run();
    } catch (problem) {
      setError(messageOf(problem));
    }
    setBusy(false);
  };
  return html`<button type="button" class=${kind} aria-disabled=${busy ? "true" : undefined} onClick=${press} ...${rest}>${children}</button>
    ${error && html`<p class="output bad" role="alert">${error}</p>`}`;
}

/** A button that copies a text and confirms it for a moment. */
export function Copy({ text, children = "Copy" }) {
  const [said, say] = useState("");
  const copy = async () => {
    say(await navigator.clipboard.writeText(text()).then(() => "Copied", () => "Could not copy"));
    setTimeout(() => say(""), 1500);
  };
  return html`<button type="button" onClick=${copy}>${said || children}</button>`;
}

/** A modal dialog; it is closed by Escape, its button and close(). */
export function Dialog({ title, onClose, children, wide = false, id = undefined, onCancel = undefined }) {
  const ref = useRef(null);
  useLayoutEffect(() => {
    if (!ref.current.open) ref.current.showModal();
    (ref.current.querySelector("[autofocus]") ?? ref.current.querySelector("input, select, textarea"))?.focus();
  }, [title]);
  return html`<dialog id=${id} ref=${ref} class=${wide ? "wide" : ""} aria-label=${title} onClose=${onClose} onCancel=${onCancel}>
    <header><h2>${title}</h2>${onClose && html`<button type="button" class="plain" aria-label="Close" onClick=${() => ref.current.close()}>✕</button>`}</header>
    ${children}
  </dialog>`;
}

/** A table in a region that scrolls. columns: [{title, cell(row), number}]; the first cell is the row's heading. */
export function Table({ name, columns, rows, keyOf, empty = "None.", actions = undefined, busy = false }) {
  if (!rows?.length) return html`<p class="empty" role="status">${busy ? "Loading …" : empty}</p>`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${name}><table>
    <thead><tr>${columns.map((c) => html`<th scope="col" class=${c.number ? "number" : ""}>${c.title}</th>`)}${actions && html`<th scope="col">
      <span class="unseen">Actions</span></th>`}</tr></thead>
    <tbody>${rows.map((row, i) => html`<tr key=${keyOf ? keyOf(row) : i}>${columns.map((c, k) =>
      k === 0 ? html`<th scope="row">${c.cell(row)}</th>` : html`<td class=${c.number ? "number" : ""}>${c.cell(row)}</td>`)}
      ${actions && html`<td class="row-actions">${actions(row)}</td>`}</tr>`)}</tbody>
  </table></div>`;
}

/** Names and values. */
export function Facts({ of }) {
  return html`<dl class="facts">${of.filter((pair) => pair && pair[1] !== undefined && pair[1] !== "" && pair[1] !== null).map(([name, value]) => html`<dt>
    ${name}</dt><dd>${value}</dd>`)}</dl>`;
}

/**
 * One field of a form.
 *
 * @typedef {object} Field
 * @property {string} name path in the body, as websocket.url
 * @property {string} label
 * @property {"text"|"password"|"number"|"url"|"tel"|"select"|"checks"|"list"|"bool"|"map"|"json"|"date"} [type]
 * @property {any} [options] [value, label] or values; a function of the form's values
 * @property {string} [hint]
 * @property {(values: any) => boolean} [when] whether the field is shown and sent
 * @property {any} [value] of a new object
 */

/** The member of an object at a path. */
export function at(/** @type {any} */ object, /** @type {string} */ path) { return path.split(".").reduce((inner, name) => inner?.[name], object); }

/** A copy of an object with the member at a path set; undefined removes it. @returns {any} */
export function withAt(/** @type {any} */ object, /** @type {string} */ path, /** @type {any} */ value) {
  const [name, ...rest] = path.split(".");
  const { [name]: before, ...others } = object ?? {};
  const inner = rest.length ? withAt(before, rest.join("."), value) : value;
  return inner === undefined || rest.length && Object.keys(inner).length === 0 ? others : { ...others, [name]: inner };
}

/** A form made of fields; submit gets the values, and errors of the server stand at their fields. */
export function Form({ fields, initial = {}, submit, label = "Save", children = undefined, id = undefined }) {
  const [values, setValues] = useState(() => fields.reduce((all, f) =>
    at(all, f.name) === undefined && f.value !== undefined ? withAt(all, f.name, f.value) : all, initial));
  const [errors, setErrors] = useState({}), [busy, setBusy] = useState(false);
  const form = useRef(null);
  const shown = fields.filter((f) => !f.when || f.when(values));
  useLayoutEffect(() => { form.current.querySelector("[autofocus]")?.focus(); }, []);
  const send = async (event) => {
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    setErrors({});
    try {
      const hidden = fields.filter((f) => !shown.includes(f) && !shown.some((s) => s.name === f.name));
      await submit(hidden.reduce((all, f) => withAt(all, f.name, undefined), values));
    } catch (error) {
      setErrors(errorsByField(error, shown.map((f) => f.name)));
      requestAnimationFrame(() => form.current?.querySelector('[aria-invalid="true"]')?.focus());
    }
    setBusy(false);
  };
  return html`<form ref=${form} id=${id} class="form" autocomplete="off" onSubmit=${send}>
    ${shown.map((f) => html`<${Input} key=${f.name + f.label} field=${f} error=${errors[f.name] ?? ""} value=${at(values, f.name)} values=${values}
      set=${(value) => setValues((before) => withAt(before, f.name, value))} />`)}
    ${children}
    ${errors[""] && html`<p class="output bad" role="alert">${errors[""]}</p>`}
    <p class="actions"><button type="submit" class="primary" aria-disabled=${busy ? "true" : undefined}>${label}</button></p>
  </form>`;
}

/** The errors of a refused request by field; "" has those of no shown field. */
export function errorsByField(/** @type {unknown} */ error, /** @type {string[]} */ names) {
  /** @type {Record<string, string>} */
  const all = {};
  const fields = error instanceof RequestError ? error.fields : [];
  for (const { field, message } of fields) {
    const name = names.filter((one) => field === one || field.startsWith(`${one}.`) || field.startsWith(`${one}[`)).sort((a, b) => b.length - a.length)[0] ?? "";
    const text = name === "" ? `${field}: ${message}` : message;
    all[name] = all[name] ? `${all[name]}; ${text}` : text;
  }
  if (fields.length === 0) all[""] = messageOf(error);
  return all;
}

let numbers = 0; // of ids that connect a field with its error

/** @param {{field: Field, value: any, values: any, error: string, set: (value: any) => void}} properties */
function Input({ field, value, values, error, set }) {
  const [id] = useState(() => `field-${++numbers}`);
  const { label, hint, type = "text", options, name, when, value: initial, ...rest } = field;
  const described = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(" ") || undefined;
  const common = { id, name, "aria-invalid": error ? "true" : undefined, "aria-describedby": described, spellcheck: false, autocapitalize: "none", ...rest };
  const choices = (typeof options === "function" ? options(values) : options ?? []).map((o) => Array.isArray(o) ? o : [o, o]);
  const text = (event) => set(event.target.value === "" ? undefined : event.target.value);
  const notes = html`${hint && html`<small id=${`${id}-hint`}>${hint}</small>`}${error && html`<small id=${`${id}-error`} class="bad" role="alert">${error}
    </small>`}`;
  if (type === "bool") {
    return html`<div class="field"><label class="check">
      <input type="checkbox" ...${common} checked=${Boolean(value)} onChange=${(e) => set(e.target.checked)} /> ${label}</label>${notes}</div>`;
  }
  if (type === "checks") {
    const chosen = value ?? [];
    return html`<fieldset class="field" aria-describedby=${described}><legend>${label}</legend><div class="checks">
      ${choices.map(([one, title]) => html`<label class="check"><input type="checkbox" name=${name} value=${one}
      checked=${chosen.includes(one)} onChange=${(e) => set(e.target.checked ? [...chosen, one] : chosen.filter((c) => c !== one))} /> ${title}</label>`)}
        </div>${notes}</fieldset>`;
  }
  if (type === "list") return html`<div class="field"><${List} ...${{ id, label, value, set, choices, described, error, name, rest }} />${notes}</div>`;
  if (type === "map") return html`<div class="field"><${Pairs} ...${{ id, label, value, set }} />${notes}</div>`;
  let control;
  if (type === "select") {
    const all = value !== undefined && !choices.some(([one]) => String(one) === String(value)) ? [...choices, [value, value]] : choices;
    control = html`<select ...${common} onChange=${(e) => set(all.find(([one]) => String(one) === e.target.value)?.[0])}>
      ${all.map(([one, title]) => html`<option value=${one} selected=${String(one) === String(value ?? "")}>${title}</option>`)}</select>`;
  } else if (type === "json") {
    control = html`<textarea rows="5" ...${common} value=${typeof value === "string" ? value : value === undefined ? "" : JSON.stringify(value, null, 2)}
      onInput=${(e) => {
      let parsed = e.target.value;
      try { parsed = parsed.trim() === "" ? undefined : JSON.parse(parsed); } catch { /* being typed: the server refuses a text */ }
      set(parsed);
    }}></textarea>`;
  } else {
    const list = choices.length ? `${id}-list` : undefined;
    control = html`<input type=${type} list=${list} ...${common} value=${value ?? ""}
      onInput=${type === "number" ? (e) => set(e.target.value === "" ? undefined : Number(e.target.value)) : text} />
      ${list && html`<datalist id=${list}>${choices.map(([one, title]) => html`<option value=${one}>${title}</option>`)}</datalist>`}`;
  }
  return html`<div class="field"><label for=${id}>${label}</label>${control}${notes}</div>`;
}

/** Several values, chosen from those that the server knows or typed. */
function List({ id, label, value, set, choices, described, error, name, rest }) {
  const chosen = value ?? [], titleOf = (one) => choices.find(([v]) => v === one)?.[1] ?? one;
  const add = (input) => {
    const one = input.value.trim(), known = choices.find(([v, title]) => v === one || title === one)?.[0] ?? one;
    if (known && !chosen.includes(known)) set([...chosen, known]);
    input.value = "";
  };
  const left = choices.filter(([v]) => !chosen.includes(v));
  return html`<label for=${id}>${label}</label>
    ${chosen.length > 0 && html`<ul class="chosen">${chosen.map((one) => html`<li key=${one}>
      ${titleOf(one)} <button type="button" class="plain" aria-label=${`Remove ${titleOf(one)}`}
      onClick=${() => set(chosen.filter((c) => c !== one))}>✕</button></li>`)}</ul>`}
    <input id=${id} name=${name} list=${`${id}-list`} aria-describedby=${described} aria-invalid=${error ? "true" : undefined} spellcheck="false"
      autocapitalize="none" placeholder=${chosen.length ? "add another" : "all"} ...${rest}
      onChange=${(e) => add(e.target)} onKeyDown=${(e) => { if (e.key === "Enter" && e.target.value.trim()) { e.preventDefault(); add(e.target); } }} />
    <datalist id=${`${id}-list`}>${left.map(([one, title]) => html`<option value=${one}>${title === one ? "" : title}</option>`)}</datalist>`;
}

/** Names with values, such as headers. */
function Pairs({ id, label, value, set }) {
  const pairs = Object.entries(value ?? {});
  const put = (list) => set(list.length ? Object.fromEntries(list) : undefined);
  return html`<span id=${id}>${label}</span>${[...pairs, ["", ""]].map(([key, one], i) => html`<div class="pair" key=${i}>
    <input aria-label=${`${label}: name ${i + 1}`} value=${key} placeholder="Name" spellcheck="false"
      onChange=${(e) => put(e.target.value ? pairs.toSpliced(i, 1, [e.target.value, one]) : pairs.toSpliced(i, 1))} />
    <input aria-label=${`${label}: value ${i + 1}`} value=${one} placeholder="Value" spellcheck="false" disabled=${key === ""}
      onChange=${(e) => put(pairs.toSpliced(i, 1, [key, e.target.value]))} />
      </div>`)}`;
}

/** A secret that the server shows once. */
export function Secret({ title, text }) {
  return html`<p class="once" role="status">${title}, shown once: <code class="secret">${text}</code> <${Copy} text=${() => text} /></p>`;
}

/** A bar of shares of a whole. */
export function Shares({ parts, label }) {
  const whole = parts.reduce((sum, { part }) => sum + part, 0) || 1;
  let x = 0;
  return html`<svg viewBox="0 0 100 10" preserveAspectRatio="none" class="shares" role="img" aria-label=${label}>${parts.map(({ tone, part }) => {
    const rect = part > 0 && html`<rect data-part=${tone} x=${x.toFixed(2)} width=${(part / whole * 100).toFixed(2)} y="0" height="10" />`;
    x += part / whole * 100;
    return rect;
  })}</svg>`;
}
