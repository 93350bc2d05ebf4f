import assert from "node:assert/strict";
import { test } from "node:test";
import { StreamReader } from "../static/sse.js";

const stream = ": hello\n\nid: a\ndata: one\n\nid: b\r\ndata:two\r\ndata: lines\r\n\r\nevent: x\nid\ndata\n\nid: c\ndata: never ends";
const want = [["c", " hello"], ["one", "a"], ["two\nlines", "b"], ["", ""]];

function read(chunks) {
  const got = [];
  const reader = new StreamReader((data, id) => got.push([data, id]), (text) => got.push(["c", text]));
  for (const chunk of chunks) reader.feed(chunk);
  return got;
}

test("wherever the stream is cut into chunks", () => {
  assert.deepEqual(read([stream]), want);
  assert.deepEqual(read([...stream]), want);
  for (let i = 0; i < stream.length; i++) assert.deepEqual(read([stream.slice(0, i), "", stream.slice(i)]), want, `cut at ${i}`);
});

test("what is incomplete at the end is discarded", () => {
  assert.deepEqual(read(["id: a\ndata: x\n"]), []);
});
