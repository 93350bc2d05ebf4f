/** Choices that the browser remembers: nothing secret, nothing of the account. */
const prefix = "trunkline.preference.";

/** The remembered text, "" if there is none. */
export function remembered(/** @type {string} */ name) {
  try {
    return localStorage.getItem(prefix + name) ?? "";
  } catch {
    return ""; // the browser forbids storage
  }
}

export function remember(/** @type {string} */ name, /** @type {string} */ text) {
  try {
    localStorage.setItem(prefix + name, text);
  } catch { /* the browser forbids storage: the link keeps it */ }
}
