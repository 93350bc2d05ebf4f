"""A bot written for Twilio with pipecat: echoes the audio, is interrupted by the key 1, ends its call by the key 2, and
transfers it by the key 3.

Prints one line for each thing that happens. Environment: TOKEN, REST (address of Twilio's API).
"""
import asyncio
import contextlib
import json
import os

from pipecat.frames.frames import EndFrame, InputAudioRawFrame, InputDTMFFrame, InterruptionFrame, OutputAudioRawFrame
from pipecat.serializers.twilio import TwilioFrameSerializer
from twilio.request_validator import RequestValidator
from twilio.rest import Client
from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed


def transfer(account, call, destination):
    client = Client(account, os.environ["TOKEN"])
    client.api.base_url = os.environ["REST"]
    client.calls(call).update(twiml=f"<Response><Dial>{destination}</Dial></Response>")


async def call(socket):
    url = "ws://" + socket.request.headers["Host"] + socket.request.path
    signed = RequestValidator(os.environ["TOKEN"]).validate(url, {}, socket.request.headers["X-Twilio-Signature"])
    print("signature", signed, flush=True)
    connected = json.loads(await socket.recv())
    start = json.loads(await socket.recv())["start"]
    print(connected["event"], start["customParameters"]["bot"], start["customParameters"]["callerIdNumber"], flush=True)
    serializer = TwilioFrameSerializer(
        start["streamSid"], call_sid=start["callSid"], account_sid=start["accountSid"], auth_token=os.environ["TOKEN"],
        base_url=os.environ["REST"], params=TwilioFrameSerializer.InputParams(sample_rate=8000),
    )
    await serializer.setup(None)
    async for text in socket:
        frame = await serializer.deserialize(text)
        answer = None
        if isinstance(frame, InputAudioRawFrame):
            answer = await serializer.serialize(OutputAudioRawFrame(frame.audio, frame.sample_rate, 1))
        elif isinstance(frame, InputDTMFFrame):
            print("key", frame.button.value, flush=True)
            if frame.button.value == "3":
                await asyncio.to_thread(transfer, start["accountSid"], start["callSid"], start["customParameters"]["queue"])
                continue
            answer = await serializer.serialize(InterruptionFrame() if frame.button.value == "1" else EndFrame())
        elif json.loads(text)["event"] == "stop":
            print("stop", flush=True)
        if answer:
            with contextlib.suppress(ConnectionClosed):  # what came before the end of the call is still read
                await socket.send(answer)


async def main():
    async with serve(call, "127.0.0.1", 0) as server:
        print("listening", server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()


asyncio.run(main())
