// An AI provider made from docs/ai.md alone, with nothing but what Node
// brings: it faults every message that is not exactly one of the four, in their
// order, and sends the audio back. It prints its address, then a line of JSON
// for each session: {"events": [...], "faults": [...], "media": n, "close": code}.
'use strict';
const crypto = require('crypto');
const http = require('http');

const string = (v) => typeof v === 'string';
const number = (v) => typeof v === 'number' && Number.isFinite(v) && v >= 0;
const formats = { pcm16: [24000, 960], g711_ulaw: [8000, 160], opus: [48000, 0] };
const shapes = {
  start: {
    callId: (v) => string(v) && v !== '', otherLegCallId: string, callerIdNumber: string, calleeIdNumber: string, accountId: string,
    mediaFormat: (v) => only(v, ['encoding', 'sampleRate']) && formats[v.encoding] !== undefined && formats[v.encoding][0] === v.sampleRate,
  },
  media: { payload: (v) => string(v) && v !== '' && Buffer.from(v, 'base64').toString('base64') === v },
  dtmf: { callId: string, otherLegCallId: string, digit: (v) => string(v) && /^[0-9*#ABCD]$/.test(v), duration: number },
  hangup: { callId: string, otherLegCallId: string, reason: string },
};
const optional = { dtmf: ['duration'], hangup: ['reason'] };

function only(object, names) {
  return typeof object === 'object' && object !== null && !Array.isArray(object) &&
    Object.keys(object).sort().join() === [...names].sort().join();
}

class Session {
  constructor(socket) {
    Object.assign(this, { socket, events: [], faults: [], media: 0, close: 0, frame: 0, callId: '', input: Buffer.alloc(0) });
    socket.on('data', (data) => this.read(data));
    socket.on('error', () => {});
    socket.on('close', () => this.report());
  }

  fault(text) { if (this.faults.length < 10) this.faults.push(text); }

  report() {
    if (this.close === 0) this.fault('no close');
    const { events, faults, media, close } = this;
    console.log(JSON.stringify({ events, faults, media, close }));
  }

  read(data) {
    this.input = Buffer.concat([this.input, data]);
    for (;;) {
      let at = 2;
      if (this.input.length < at) return;
      let size = this.input[1] & 0x7f;
      if (size === 126) { if (this.input.length < 4) return; size = this.input.readUInt16BE(2); at = 4; }
      if (size === 127) { this.fault('a frame of 64 KiB and more'); this.socket.destroy(); return; }
      if (this.input.length < at + 4 + size) return;
      if ((this.input[1] & 0x80) === 0) this.fault('a frame that is not masked');
      const key = this.input.subarray(at, at + 4);
      const payload = Buffer.from(this.input.subarray(at + 4, at + 4 + size).map((b, i) => b ^ key[i & 3]));
      const first = this.input[0];
      this.input = this.input.subarray(at + 4 + size);
      if (first === 0x88) {
        this.close = payload.length >= 2 ? payload.readUInt16BE(0) : 1005;
        if (this.events.at(-1) !== 'hangup') this.fault('a close without a hangup right before it');
        this.write(8, payload);
        this.socket.end();
      } else if (first === 0x81) {
        this.take(payload.toString('utf8'));
      } else {
        this.fault(`a frame that begins with ${first}`);
      }
    }
  }

  take(text) {
    let message;
    try { message = JSON.parse(text); } catch { return this.fault(`no JSON: ${text.slice(0, 80)}`); }
    const event = message?.event;
    const shape = Object.hasOwn(shapes, event) ? shapes[event] : undefined;
    if (!shape || !only(message, ['event', event])) return this.fault(`not as in docs/ai.md: ${text.slice(0, 80)}`);
    const body = message[event];
    const given = Object.keys(shape).filter((name) => name in Object(body) || !(optional[event] || []).includes(name));
    if (!only(body, given)) return this.fault(`the fields of ${event}: ${text.slice(0, 200)}`);
    for (const name of given) if (!shape[name](body[name])) this.fault(`${event}.${name} is ${JSON.stringify(body[name])}`);
    if ((event === 'start') !== (this.events.length === 0)) this.fault(`${event} in the wrong place`);
    if (this.events.at(-1) === 'hangup') this.fault(`${event} after hangup`);
    if (event !== 'media' || this.events.at(-1) !== 'media') this.events.push(event);
    if (event === 'start') { this.callId = body.callId; this.frame = formats[body.mediaFormat.encoding][1]; }
    if ('callId' in body && body.callId !== this.callId) this.fault(`${event} is of another call`);
    if (event !== 'media') return;
    this.media++;
    const bytes = Buffer.byteLength(body.payload, 'base64');
    if (this.frame > 0 && bytes !== this.frame) this.fault(`a frame of ${bytes} bytes`);
    this.write(1, Buffer.from(JSON.stringify({ event: 'media', media: { payload: body.payload } })));
  }

  write(opcode, data) {
    const head = data.length < 126 ? Buffer.from([0x80 | opcode, data.length]) : Buffer.from([0x80 | opcode, 126, data.length >> 8, data.length & 0xff]);
    this.socket.write(Buffer.concat([head, data]));
  }
}

const server = http.createServer((_, answer) => { answer.statusCode = 426; answer.end(); });
server.on('upgrade', (request, socket, head) => {
  const accept = crypto.createHash('sha1').update(request.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest('base64');
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`);
  const session = new Session(socket);
  if (head.length > 0) session.read(head);
});
server.listen(0, '127.0.0.1', () => console.log(`ws://127.0.0.1:${server.address().port}/`));
