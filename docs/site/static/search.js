/** The search over the sections of all pages. It has no state and no page, so that it can be tested alone. */

/** @typedef {{title: string, anchor: string, text: string}} Section */
/** @typedef {{address: string, title: string, sections: Section[]}} Page */
/** @typedef {{address: string, page: string, title: string, excerpt: string, score: number}} Result */

const most = 30;

/**
 * Finds the sections that have every word of the query, best first: words in a heading count most, then those in
 * the page's title, then whole words, then their number.
 * @param {Page[]} pages
 * @param {string} query
 * @returns {Result[]}
 */
export function search(pages, query) {
  const words = split(query);
  if (!words.length) return [];
  /** @type {Result[]} */
  const results = [];
  for (const page of pages) {
    for (const section of page.sections) {
      const score = rate(page, section, words);
      if (score > 0) {
        results.push({
          address: `${page.address}#${section.anchor}`, page: page.title, title: section.title,
          excerpt: excerpt(section.text, words), score,
        });
      }
    }
  }
  return results.sort((a, b) => b.score - a.score).slice(0, most);
}

/** The words of a query, in lower case. @returns {string[]} */
export function split(/** @type {string} */ query) {
  return query.toLowerCase().split(/[\s,;]+/).filter((word) => word.length > 1);
}

function rate(/** @type {Page} */ page, /** @type {Section} */ section, /** @type {string[]} */ words) {
  const pageTitle = page.title.toLowerCase(), title = section.title.toLowerCase(), text = section.text.toLowerCase();
  let score = 0;
  for (const word of words) {
    const inTitle = title.includes(word), inPage = pageTitle.includes(word), times = text.split(word).length - 1;
    if (!inTitle && !inPage && !times) return 0;
    score += (inTitle ? 12 : 0) + (inPage ? 4 : 0) + (whole(text, word) ? 2 : 0) + Math.min(times, 5);
  }
  return score + (text.includes(words.join(" ")) ? 6 : 0);
}

function whole(/** @type {string} */ text, /** @type {string} */ word) {
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) {
    if (!/[\p{L}\p{N}_]/u.test(text[at - 1] ?? " ") && !/[\p{L}\p{N}_]/u.test(text[at + word.length] ?? " ")) return true;
  }
  return false;
}

/** The part of the text around the first word that it has. */
function excerpt(/** @type {string} */ text, /** @type {string[]} */ words) {
  const lower = text.toLowerCase();
  const places = words.map((word) => lower.indexOf(word)).filter((at) => at >= 0);
  const begin = Math.max(0, Math.min(...places, text.length) - 60);
  const from = begin && text.indexOf(" ", begin) + 1;
  return `${from ? "… " : ""}${text.slice(from, from + 220)}${text.length > from + 220 ? " …" : ""}`;
}
