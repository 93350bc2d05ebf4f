/** The facts of messages (docs/facts.md). */

/**
 * @typedef {object} Facts
 * @property {string} name
 * @property {string} [agent_id]
 * @property {string} [agent_name]
 * @property {string} [queue_id]
 * @property {string} [call_id]
 * @property {string} [caller]
 * @property {string} [callee]
 * @property {string} [state]
 * @property {string} [reason]
 * @property {string} [previous_state]
 * @property {number} [wait_ms]
 * @property {number} [talk_ms]
 */

/** The facts of a message; undefined for messages of older servers without facts. @returns {Facts|undefined} */
export function factsOf(/** @type {any} */ message) {
  const facts = message.metadata?.facts;
  return typeof facts?.name === "string" ? facts : undefined;
}
