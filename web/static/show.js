/** Formats for display. */
import { normal } from "./words.js";

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const full = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

/** 14:03:09 */
export function time(/** @type {number} */ ms) { return Number.isFinite(ms) ? clock.format(ms) : ""; }

/** Date and time. */
export function date(/** @type {number} */ seconds) { return Number.isFinite(seconds) ? full.format(seconds * 1000) : ""; }

/** 0:07, 12:40, 3:05:00 */
export function duration(/** @type {number} */ seconds) {
  const s = Math.max(0, Math.floor(seconds));
  const two = (/** @type {number} */ n) => String(n).padStart(2, "0");
  return s < 3600 ? `${Math.floor(s / 60)}:${two(s % 60)}` : `${Math.floor(s / 3600)}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)}`;
}

/** 8 ms, 1.2 s */
export function milliseconds(/** @type {number} */ ms) {
  if (!Number.isFinite(ms)) return "–";
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
}

/** 0.4, 12, 1.3k */
export function rate(/** @type {number} */ n) {
  if (n >= 1000) return `${(n / 1000).toFixed(1)}k`;
  return n >= 10 || Number.isInteger(n) ? String(Math.round(n)) : n.toFixed(1);
}

/** The beginning of a long id. */
export function short(/** @type {string} */ id) { return id.length > 13 ? `${id.slice(0, 8)}…` : id; }

/** The part before the @ and a domain: 1002 of 1002@pbx.example.com. */
export function local(/** @type {string} */ id) { return id.replace(/@[\w.:-]+$/, "") || id; }

/** A source's word for display: In a queue call, Logged in. */
export function word(/** @type {string} */ text) {
  const plain = text.replaceAll(/[_-]/g, " ");
  return plain.charAt(0).toUpperCase() + plain.slice(1);
}

/** A short name of the kind of event: Queue call, Login, Break start, Call progress. */
export function kindOf(/** @type {any} */ message) {
  const own = message.metadata?.original_format === "trunkline.event" && message.data?.event;
  return typeof own === "string" ? word(own.replaceAll(".", " ")) : kind(message.type);
}

export function kind(/** @type {string} */ type) {
  if (type === "svc_cc_queue_on_call_event") return "Queue call";
  if (type === "svc_cc_queue_on_agent_state_event") return "Agent state";
  return word(type.replace(/^AGENT_/, "").toLowerCase());
}

/**
 * The class of an agent's state and status, for colours and counts; the words
 * themselves are always shown too.
 * @typedef {"available"|"ringing"|"talking"|"wrap"|"break"|"other"} Tone
 * @returns {Tone}
 */
export function tone(/** @type {{state: string, status: string}} */ { state, status }) {
  if (tones[normal(status)] === "break") return "break";
  if (state === "Idle" && status.startsWith("Available")) return "wrap"; // mod_callcenter's Idle takes no calls
  return tones[normal(state)] ?? tones[normal(status)] ?? "other";
}

/** @type {Record<string, Tone>} */
const tones = Object.assign(Object.create(null), Object.fromEntries(/** @type {[Tone, string][]} */ ([
  ["available", "waiting idle ready available logged_in online available_(on_demand)"],
  ["ringing", "receiving ringing connecting offering"],
  ["talking", "in_a_queue_call on_call connected answered busy talking oncall"],
  ["wrap", "wrap_up wrapup after_call wrapping"],
  ["break", "break on_break paused pause away unavailable outbound"],
]).flatMap(([tone, words]) => words.split(" ").map((word) => [word, tone]))));
