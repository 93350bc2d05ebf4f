/** The words that sources use for states; the same as fanout/snapshot/transitions.go. */

/** @typedef {{state: ""|"waiting"|"offering"|"answered", begins: boolean, over: boolean}} Step */

/** @type {(state: Step["state"], begins?: boolean, over?: boolean) => Readonly<Step>} */
const step = (state, begins = false, over = false) => Object.freeze({ state, begins, over });

export const nothing = step("");

/** @type {[Readonly<Step>, string][]} */
const meanings = [
  [step("waiting", true), `member_queue_start member_queue_resume waiting call member_add
    create created join_queue channel_create entered queued`],
  [step("waiting"), "bridge_agent_fail missed channel_unbridge"],
  [step("offering"), "agent_offering offering offered connecting ringing channel_progress channel_progress_media"],
  [step("answered"), `bridge_agent_start handled connect_accepted call_success pickup connected
    answered bridged transferred channel_answer channel_bridge`],
  [step("", false, true), `bridge_agent_end member_queue_end abandoned processed hungup call_cancel call_failure
    delete deleted hangup ended completed del_member channel_hangup channel_hangup_complete channel_destroy`],
];

const steps = new Map(meanings.flatMap(([meaning, words]) =>
  words.split(/\s+/).map((word) => /** @type {const} */ ([word, meaning]))));

/** The step of a call that a word means; undefined for other words. */
export function stepOf(/** @type {string} */ word) { return steps.get(normal(word)); }

/** Normalizes the spelling of a word. */
export function normal(/** @type {string} */ word) { return word.replace(/[- ]/g, "_").toLowerCase(); }

/** Whether a state or status means logged out. */
export function loggedOut(/** @type {string} */ word) {
  return ["logged_out", "loggedout", "logout"].includes(normal(word));
}
