"""A provider that listens: it recognises what is said on each track with pocketsphinx, and sends transcripts.

Prints one line for each of them, with the milliseconds between the words' last sample and the transcript.
"""
import array
import asyncio
import base64
import json
import time

from pocketsphinx import Decoder, Endpointer
from websockets.asyncio.server import serve

RATE = 16000
GRAMMAR = """#JSGF V1.0;
grammar call;
public <said> = ( where is my parcel | good morning how can i help | cancel my order | thank you for calling )+ ;
"""


class Track:
    """Recognises one voice, from pcm16 at 24000 Hz."""

    def __init__(self):
        self.decoder = Decoder(lm=None, loglevel="FATAL")
        self.decoder.add_jsgf_string("call", GRAMMAR)
        self.decoder.activate_search("call")
        self.endpointer = Endpointer(sample_rate=RATE)
        self.waiting = b""

    def hear(self, pcm):
        """Yields what was said, with its start and end in seconds."""
        samples = array.array("h", pcm)
        kept = array.array("h")
        for i in range(0, len(samples) - 2, 3):  # 24000 Hz to 16000 Hz
            kept.append(samples[i])
            kept.append((samples[i + 1] + samples[i + 2]) // 2)
        self.waiting += kept.tobytes()
        size = self.endpointer.frame_bytes
        while len(self.waiting) >= size:
            frame, self.waiting = self.waiting[:size], self.waiting[size:]
            spoke = self.endpointer.in_speech
            speech = self.endpointer.process(frame)
            if speech is None:
                continue
            if not spoke:
                self.decoder.start_utt()
            self.decoder.process_raw(speech)
            if not self.endpointer.in_speech:
                self.decoder.end_utt()
                found = self.decoder.hyp()
                if found and found.hypstr:
                    yield found.hypstr, self.endpointer.speech_start, self.endpointer.speech_end


async def call(socket):
    start = json.loads(await socket.recv())["start"]
    print("hears", start["callerIdNumber"], start["calleeIdNumber"], flush=True)
    began = time.monotonic()
    tracks = {"caller": Track(), "callee": Track()}
    async for text in socket:
        message = json.loads(text)
        if message["event"] != "media":
            continue
        media = message["media"]
        for said, first, last in tracks[media["track"]].hear(base64.b64decode(media["payload"])):
            await socket.send(json.dumps({"event": "transcript", "transcript": {
                "text": said, "final": True, "track": media["track"], "startMs": round(first * 1000), "endMs": round(last * 1000)}}))
            print("said", media["track"], said, "late", round((time.monotonic() - began - last) * 1000), flush=True)
    print("end", flush=True)


async def main():
    Track()  # the model is read before the first call
    async with serve(call, "127.0.0.1", 0) as server:
        print("listening", server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()


asyncio.run(main())
