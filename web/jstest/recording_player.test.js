// The parts of the player that need no browser: where a WAV file's samples are, and what they are.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseWav, peaks, samplesOf } from "../static/recording_player.js";

/** The header of a WAV file, with a chunk before the samples. */
function wav({ format = 1, bits = 16, size = 4000, extra = 0 } = {}) {
  const head = new ArrayBuffer(44 + extra), view = new DataView(head), text = new Uint8Array(head);
  const put = (at, name) => text.set(new TextEncoder().encode(name), at);
  put(0, "RIFF"); put(8, "WAVE"); put(12, "fmt ");
  view.setUint32(16, 16, true); view.setUint16(20, format, true); view.setUint16(22, 2, true);
  view.setUint32(24, 8000, true); view.setUint16(34, bits, true);
  if (extra) { put(36, "LIST"); view.setUint32(40, extra - 8, true); }
  put(36 + extra, "data"); view.setUint32(40 + extra, size, true);
  return head;
}

test("the samples of a WAV file are found", () => {
  assert.deepEqual(parseWav(wav(), 4044), { rate: 8000, channels: 2, offset: 44, size: 4000 });
  assert.deepEqual(parseWav(wav({ extra: 20 }), 4064), { rate: 8000, channels: 2, offset: 64, size: 4000 });
  assert.equal(parseWav(wav({ size: 0xffffffff }), 4044)?.size, 4000, "a size that the file does not have");
  assert.equal(parseWav(wav({ size: 0 }), 4044)?.size, 4000, "a recorder that was killed");
});

test("another format is left to the browser", () => {
  for (const head of [wav({ format: 7 }), wav({ bits: 8 }), new ArrayBuffer(0), new ArrayBuffer(10), new TextEncoder().encode("ID3 and so on, an MP3 file").buffer])
    assert.equal(parseWav(head, 4044), null);
});

test("the channels are told apart, and their peaks", () => {
  const part = new Int16Array([16384, 0, -32768, 0, 8192, 3277, 0, 0]).buffer;
  assert.deepEqual([...samplesOf(part, 2, 0)], [0.5, -1, 0.25, 0]);
  assert.deepEqual([...peaks(samplesOf(part, 2, 0), 2)], [1, 0.25]);
  assert.equal([...peaks(samplesOf(part, 2, 1), 2)][1]?.toFixed(2), "0.10");
});
