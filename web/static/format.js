/** Formats for display. */
import { factsOf } from "./facts.js";

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const dateTime = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

/** 14:03:09 */
export function time(/** @type {number} */ ms) { return Number.isFinite(ms) ? clock.format(ms) : ""; }

/** Date and time. */
export function date(/** @type {number} */ seconds) { return Number.isFinite(seconds) ? dateTime.format(seconds * 1000) : ""; }

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
export function shorten(/** @type {string} */ id) { return id.length > 13 ? `${id.slice(0, 8)}…` : id; }

/** The part before the @ and a domain: 1002 of 1002@pbx.example.com. */
export function userPart(/** @type {string} */ id) { return id.replace(/@[\w.:-]+$/, "") || id; }

/** A word of a type, name or state for display: Wrap up, Queue call answered. */
export function displayText(/** @type {string} */ text) {
  const words = text.replaceAll(/[._-]/g, " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** The short name of an event: its fact name, else its type. Queue call answered, Agent login, Call progress. */
export function eventName(/** @type {any} */ message) {
  const name = factsOf(message)?.name ?? "other";
  return name === "other" ? typeName(message.type) : displayText(name);
}

export function typeName(/** @type {string} */ type) {
  if (type === "svc_cc_queue_on_call_event") return "Queue call";
  if (type === "svc_cc_queue_on_agent_state_event") return "Agent state";
  return displayText(type.replace(/^AGENT_/, "").toLowerCase());
}

/** A one-line summary of an event; only its queue if it has no facts. */
export function summary(/** @type {any} */ message) {
  const f = factsOf(message);
  if (!f) return userPart(message.metadata?.queue_id ?? "");
  const agent = f.agent_name || userPart(f.agent_id ?? "");
  return [
    agent && `agent ${agent}`, userPart(f.queue_id ?? ""), f.state && displayText(f.state).toLowerCase(), f.reason,
    f.wait_ms !== undefined && `waited ${duration(f.wait_ms / 1000)}`, f.talk_ms !== undefined && `talked ${duration(f.talk_ms / 1000)}`,
    f.call_id && shorten(f.call_id),
  ].filter(Boolean).join(" · ");
}

/** The numbers in an event that a user can call. @returns {string[]} */
export function callableNumbers(/** @type {any} */ message) {
  const f = factsOf(message);
  return [...new Set([f?.caller, f?.callee])].filter((number) => number !== undefined && /^\+?\d{2,20}$/.test(number));
}
