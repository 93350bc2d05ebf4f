/** Elements of the pages under /docs. Strings become text, never HTML. */

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
