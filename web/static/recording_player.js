/**
 * A player of one recording: both channels' waveforms, seeking, keyboard. A WAV file of 16-bit
 * samples is read in parts by Range, so that a seek in a long call loads one part; another format is
 * loaded whole and decoded by the browser. No element of the page has a URL of the audio.
 */
import { el } from "./dom.js";
import { duration } from "./format.js";

/**
 * @typedef {{fetch: (path: string, options?: {headers?: Record<string, string>}) => Promise<Response>}} AudioSession
 *   sends a request with the user's token, and throws unless the response is a success
 * @typedef {{rate: number, channels: number, offset: number, size: number}} Wav where the samples are
 */

/** Sets the text if it differs, so that screen readers do not repeat unchanged text. */
const setText = (/** @type {Element} */ element, /** @type {string} */ text) => {
  if (element.textContent !== text) element.textContent = text;
};

/** Bytes of one part: a minute of a call that Trunkline recorded. */
export const partBytes = 1_920_000;
const headerBytes = 4096;
const width = 800, height = 60;

/** The samples of a WAV file of 16 bits; null for another format. @returns {?Wav} */
export function parseWav(/** @type {ArrayBuffer} */ head, /** @type {number} */ total) {
  const view = new DataView(head);
  const text = (/** @type {number} */ at) => at + 4 > view.byteLength ? "" : String.fromCharCode(...new Uint8Array(head, at, 4));
  if (text(0) !== "RIFF" || text(8) !== "WAVE") return null;
  let rate = 0, channels = 0;
  for (let at = 12; at + 8 <= view.byteLength;) {
    const name = text(at), size = view.getUint32(at + 4, true);
    if (name === "fmt " && at + 24 <= view.byteLength) {
      if (view.getUint16(at + 8, true) !== 1 || view.getUint16(at + 22, true) !== 16) return null;
      channels = view.getUint16(at + 10, true);
      rate = view.getUint32(at + 12, true);
    }
    // A recorder that was killed leaves a size of its own making.
    if (name === "data") return rate && channels ? { rate, channels, offset: at + 8, size: Math.min(size || Infinity, total - at - 8) } : null;
    at += 8 + size + size % 2;
  }
  return null;
}

/** The samples of one channel, from -1 to 1. */
export function samplesOf(/** @type {ArrayBuffer} */ part, /** @type {number} */ channels, /** @type {number} */ channel) {
  const view = new DataView(part), n = Math.floor(part.byteLength / 2 / channels);
  const samples = new Float32Array(n);
  for (let i = 0; i < n; i++) samples[i] = view.getInt16((i * channels + channel) * 2, true) / 32768;
  return samples;
}

/** The loudest sample in each of n parts. */
export function peaks(/** @type {Float32Array} */ samples, /** @type {number} */ n) {
  const loudest = new Float32Array(n);
  for (let i = 0; i < samples.length; i++) {
    const bar = Math.floor(i * n / samples.length);
    loudest[bar] = Math.max(loudest[bar] ?? 0, Math.abs(samples[i] ?? 0));
  }
  return loudest;
}

/** The audio of a recording, in parts of equal length. */
class Audio {
  /** @type {Map<number, Promise<AudioBuffer>>} */ #parts = new Map();
  /** @type {?Wav} */ #wav = null;
  #session; #path; #context;
  seconds = 0;
  channels = 1;
  partSeconds = 0;

  constructor(/** @type {AudioSession} */ session, /** @type {string} */ path, /** @type {AudioContext} */ context) {
    this.#session = session;
    this.#path = path;
    this.#context = context;
  }

  async open() {
    const response = await this.#session.fetch(this.#path, { headers: { Range: `bytes=0-${headerBytes - 1}` } });
    const total = Number(/\/(\d+)$/.exec(response.headers.get("Content-Range") ?? "")?.[1] ?? 0);
    this.#wav = parseWav(await response.arrayBuffer(), total);
    if (this.#wav) {
      const bytesPerSecond = this.#wav.rate * this.#wav.channels * 2;
      this.seconds = this.#wav.size / bytesPerSecond;
      this.channels = this.#wav.channels;
      this.partSeconds = partBytes / bytesPerSecond;
      return;
    }
    const whole = await this.part(0);
    this.seconds = this.partSeconds = whole.duration;
    this.channels = whole.numberOfChannels;
  }

  get parts() { return Math.max(1, Math.ceil(this.seconds / (this.partSeconds || 1))); }

  /** A part's audio, loaded once. */
  part(/** @type {number} */ n) {
    let part = this.#parts.get(n);
    if (!part) {
      part = this.#load(n);
      this.#parts.set(n, part);
      part.catch(() => this.#parts.delete(n));
    }
    return part;
  }

  async #load(/** @type {number} */ n) {
    const wav = this.#wav;
    if (!wav) return this.#context.decodeAudioData(await (await this.#session.fetch(this.#path)).arrayBuffer());
    const from = wav.offset + n * partBytes, to = wav.offset + Math.min(wav.size, (n + 1) * partBytes) - 1;
    const bytes = await (await this.#session.fetch(this.#path, { headers: { Range: `bytes=${from}-${to}` } })).arrayBuffer();
    const buffer = this.#context.createBuffer(wav.channels, Math.max(1, Math.floor(bytes.byteLength / 2 / wav.channels)), wav.rate);
    for (let channel = 0; channel < wav.channels; channel++) buffer.copyToChannel(samplesOf(bytes, wav.channels, channel), channel);
    return buffer;
  }
}

/**
 * Shows the player of a recording in an element.
 * @param {Element} element
 * @param {string} id
 * @param {AudioSession} session
 * @param {string} [account] where it is not the session's own
 * @returns {Promise<() => void>} ends the player
 */
export async function showRecording(element, id, session, account) {
  const own = { fetch: (/** @type {string} */ path, /** @type {any} */ options = {}) =>
    session.fetch(path, { ...options, headers: { ...options.headers, ...(account && { "X-Account-ID": account }) } }) };
  const context = new AudioContext();
  const audio = new Audio(own, `/api/v2/recordings/${encodeURIComponent(id)}`, context);
  const button = el("button", { type: "button" }, "Play"), clock = el("output", {}, ""), problem = el("output", { role: "status" }, "");
  await audio.open();

  const names = audio.channels === 2 ? ["Caller", "Callee"] : ["Recording"];
  const canvases = names.map((name) => el("canvas", { width, height, role: "img", "aria-label": `${name}: loudness` }));
  const slider = el("input", { type: "range", min: 0, max: audio.seconds, step: 0.1, value: 0, "aria-label": "Position in seconds" });
  element.replaceChildren(...canvases.map((canvas, i) => el("figure", {}, el("figcaption", {}, names[i]), canvas)), slider, button, " ", clock, " ", problem);

  /** @type {?AudioBufferSourceNode} */ let source = null;
  let position = 0, startedAt = 0, playing = false, generation = 0;
  const now = () => playing ? Math.min(audio.seconds, position + context.currentTime - startedAt) : position;

  const draw = async (/** @type {number} */ n) => {
    const part = await audio.part(n);
    const from = Math.floor(n * audio.partSeconds / audio.seconds * width);
    const bars = Math.max(1, Math.ceil(part.duration / audio.seconds * width));
    canvases.forEach((canvas, channel) => {
      const paint = canvas.getContext("2d");
      paint.fillStyle = getComputedStyle(element).color;
      peaks(part.getChannelData(channel), bars).forEach((peak, i) =>
        paint.fillRect(from + i, height / 2 * (1 - peak), 1, Math.max(1, height * peak)));
    });
  };

  const stop = () => {
    generation++;
    position = now();
    playing = false;
    source?.stop();
    source = null;
    setText(button, "Play");
  };

  /** Plays from the position to the end, part after part. */
  const play = async () => {
    const own = ++generation;
    await context.resume();
    if (position >= audio.seconds) position = 0;
    const n = Math.floor(position / audio.partSeconds), part = await audio.part(n);
    draw(n).catch(report);
    if (own !== generation) return;
    source = context.createBufferSource();
    source.buffer = part;
    source.connect(context.destination);
    startedAt = context.currentTime;
    playing = true;
    setText(button, "Pause");
    source.onended = () => {
      if (own !== generation) return;
      position = Math.min(audio.seconds, (n + 1) * audio.partSeconds);
      playing = false;
      if (n + 1 < audio.parts) play().catch(report);
      else stop();
    };
    source.start(0, position - n * audio.partSeconds);
    if (n + 1 < audio.parts) draw(n + 1).catch(report); // the next one is there in time
  };

  const report = (/** @type {unknown} */ error) => { stop(); setText(problem, error instanceof Error ? error.message : String(error)); };
  const seek = (/** @type {number} */ to) => {
    const was = playing;
    stop();
    position = Math.min(audio.seconds, Math.max(0, to));
    if (was) play().catch(report);
  };

  button.addEventListener("click", () => playing ? stop() : play().catch(report));
  slider.addEventListener("input", () => seek(Number(slider.value)));
  canvases.forEach((canvas) => canvas.addEventListener("click", (/** @type {MouseEvent} */ event) =>
    seek(event.offsetX / canvas.clientWidth * audio.seconds)));
  element.addEventListener("keydown", onKey);
  /** Space plays and pauses; the arrows seek by five seconds, with Shift by a minute. */
  function onKey(/** @type {any} */ event) {
    const step = { ArrowLeft: -5, ArrowRight: 5 }[/** @type {"ArrowLeft"|"ArrowRight"} */ (event.key)];
    if (event.key === " " && event.target !== button) button.click();
    else if (step) seek(now() + step * (event.shiftKey ? 12 : 1));
    else return;
    event.preventDefault();
  }

  const timer = setInterval(() => {
    setText(clock, `${duration(now())} of ${duration(audio.seconds)}`);
    if (document.activeElement !== slider || playing) slider.value = String(now());
  }, 200);
  draw(0).catch(report);
  return () => {
    clearInterval(timer);
    element.removeEventListener("keydown", onKey);
    stop();
    context.close().catch(() => {}); // it has nothing to play
    element.replaceChildren();
  };
}
