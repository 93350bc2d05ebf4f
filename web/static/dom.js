/** Functions for page elements. Strings become text, never HTML. */

/** The element of the page with this id. @returns {any} */
export function byID(/** @type {string} */ id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no #${id}`);
  return element;
}

/**
 * Creates an element. Attributes that are true have no value, those that are
 * false, null or undefined are omitted; functions (on…) are listeners.
 * @param {string} tag
 * @param {Record<string, any>} attributes
 * @param {...(Node|string|number|null|undefined|false)} children
 * @returns {any}
 */
export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same in SVG. @returns {any} */
export function svg(/** @type {string} */ tag, /** @type {Record<string, any>} */ attributes = {}, /** @type {any[]} */ ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

/** @param {Element} element @param {Record<string, any>} attributes @param {any[]} children */
function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false).map((child) =>
    child instanceof Node ? child : String(child)));
  return element;
}

/** Sets the text if it differs, so that screen readers do not repeat unchanged text. */
export function setText(/** @type {Element} */ element, /** @type {string|number} */ text) {
  if (element.textContent !== String(text)) element.textContent = String(text);
}

/**
 * Updates parent's children to those of the list, by key; unchanged ones stay.
 * @template T
 * @param {Element} parent
 * @param {T[]} list
 * @param {(item: T) => string} key
 * @param {(item: T) => any} make
 * @param {(element: any, item: T) => void} update
 */
export function syncChildren(parent, list, key, make, update) {
  /** @type {Map<string, any>} */
  const old = new Map([...parent.children].map((child) => [/** @type {any} */ (child).key, child]));
  let next = parent.firstElementChild;
  for (const item of list) {
    const name = key(item);
    let element = old.get(name);
    old.delete(name);
    if (!element) {
      element = make(item);
      element.key = name;
    }
    update(element, item);
    if (element === next) next = element.nextElementSibling;
    else parent.insertBefore(element, next);
  }
  for (const gone of old.values()) gone.remove();
}

const minFrameInterval = 100; // ms between two updates

/** Runs work with the next frame, at most every minFrameInterval ms; once a second in a hidden tab. */
export function oncePerFrame(/** @type {() => void} */ work) {
  let scheduled = false, last = 0;
  const run = () => {
    scheduled = false;
    last = Date.now();
    work();
  };
  return () => {
    if (scheduled) return;
    scheduled = true;
    if (document.hidden) setTimeout(run, 1000);
    else setTimeout(() => requestAnimationFrame(run), Math.max(0, last + minFrameInterval - Date.now()));
  };
}

/** A button that copies a text and confirms it for a moment. @returns {HTMLButtonElement} */
export function copyButton(/** @type {string} */ label, /** @type {() => string} */ text) {
  const button = el("button", { type: "button", class: "quiet", onclick: async () => {
    try {
      await navigator.clipboard.writeText(text());
      setText(button, "Copied");
    } catch {
      setText(button, "Could not copy");
    }
    setTimeout(() => setText(button, label), 1500);
  } }, label);
  return button;
}

/**
 * Runs an action of a form or button: disables the button until it has finished and shows its
 * error.
 * @param {HTMLButtonElement} button
 * @param {Element} output shows the error
 * @param {() => Promise<void>} action
 */
export async function runAction(button, output, action) {
  if (button.getAttribute("aria-disabled") === "true") return;
  button.setAttribute("aria-disabled", "true");
  setText(output, "");
  output.classList.remove("bad");
  try {
    await action();
  } catch (error) {
    output.classList.add("bad");
    setText(output, error instanceof Error ? error.message : String(error));
  } finally {
    button.removeAttribute("aria-disabled");
  }
}
