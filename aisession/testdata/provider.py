"""An AI provider made from docs/ai.md alone, with nothing but Python's
standard library: it reports every deviation from it and
sends the audio back. It prints its address, then a line of JSON for each
session: {"events": [...], "faults": [...], "media": n, "close": code}.
"""

import asyncio
import base64
import hashlib
import json
import struct

RATES = {"pcm16": 24000, "g711_ulaw": 8000, "opus": 48000}
FRAMES = {"pcm16": 960, "g711_ulaw": 160}
FIELDS = {
    "start": {"callId": str, "otherLegCallId": str, "callerIdNumber": str, "calleeIdNumber": str, "accountId": str, "mediaFormat": dict},
    "media": {"payload": str},
    "dtmf": {"callId": str, "otherLegCallId": str, "digit": str, "duration": (int, float)},
    "hangup": {"callId": str, "otherLegCallId": str, "reason": str},
}
OPTIONAL = {("dtmf", "duration"), ("hangup", "reason")}
DIGITS = "0123456789*#ABCD"


class Session:
    def __init__(self):
        self.events, self.faults, self.media, self.frame, self.close = [], [], 0, None, None

    def fault(self, text):
        if len(self.faults) < 10:
            self.faults.append(text)

    def take(self, raw):
        """Checks one message; returns the payload of media."""
        try:
            message = json.loads(raw.decode("utf-8"))
            event = message["event"]
            body = message[event]
        except (ValueError, KeyError, TypeError):
            return self.fault("no message: %r" % raw[:80])
        if set(message) != {"event", event} or event not in FIELDS:
            return self.fault("not as in docs/ai.md: %r" % raw[:80])
        if (event == "start") != (not self.events):
            self.fault("%s in the wrong place" % event)
        if "hangup" in self.events:
            self.fault("%s after hangup" % event)
        if event != "media" or self.events[-1:] != ["media"]:
            self.events.append(event)
        for name, kind in FIELDS[event].items():
            if name not in body:
                if (event, name) not in OPTIONAL:
                    self.fault("%s lacks %s" % (event, name))
            elif not isinstance(body[name], kind) or isinstance(body[name], bool):
                self.fault("%s.%s is no %s" % (event, name, kind))
        if set(body) - set(FIELDS[event]):
            self.fault("%s has more fields" % event)
        if event == "start":
            media = body["mediaFormat"]
            if set(media) != {"encoding", "sampleRate"} or RATES.get(media["encoding"]) != media["sampleRate"]:
                self.fault("a format that is none")
            self.frame = FRAMES.get(media.get("encoding"))
        if event == "dtmf" and (len(body["digit"]) != 1 or body["digit"] not in DIGITS):
            self.fault("a digit that is none")
        if event == "media":
            self.media += 1
            audio = base64.b64decode(body["payload"], validate=True)
            if not audio or self.frame and len(audio) != self.frame:
                self.fault("a frame of %d bytes" % len(audio))
            return body["payload"]
        return None


async def read_frame(reader):
    first, second = await reader.readexactly(2)
    length = second & 0x7F
    if length == 126:
        (length,) = struct.unpack(">H", await reader.readexactly(2))
    elif length == 127:
        (length,) = struct.unpack(">Q", await reader.readexactly(8))
    if not second & 0x80:
        raise ValueError("a client's frame must be masked")
    key = await reader.readexactly(4)
    data = bytes(b ^ key[i & 3] for i, b in enumerate(await reader.readexactly(length)))
    return first & 0x0F, bool(first & 0x80), data


def frame(opcode, data):
    if len(data) < 126:
        return bytes([0x80 | opcode, len(data)]) + data
    return bytes([0x80 | opcode, 126]) + struct.pack(">H", len(data)) + data


async def serve(reader, writer):
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    headers = {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in head.split("\r\n")[1:])}
    accept = base64.b64encode(hashlib.sha1((headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest())
    writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " + accept + b"\r\n\r\n")
    session = Session()
    try:
        while True:
            opcode, final, data = await read_frame(reader)
            if opcode == 8:
                session.close = struct.unpack(">H", data[:2])[0]
                writer.write(frame(8, data))
                break
            if opcode != 1 or not final:
                session.fault("a frame with opcode %d" % opcode)
                continue
            payload = session.take(data)
            if payload:
                writer.write(frame(1, json.dumps({"event": "media", "media": {"payload": payload}}).encode()))
    except (asyncio.IncompleteReadError, ConnectionError):
        session.fault("no close")
    except ValueError as problem:
        session.fault(str(problem))
    print(json.dumps({"events": session.events, "faults": session.faults, "media": session.media, "close": session.close}), flush=True)
    writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print("ws://127.0.0.1:%d/" % server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


asyncio.run(main())
