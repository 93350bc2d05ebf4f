"""OpenAI Realtime and Deepgram Voice Agent as their vendors' packages type them: each message that comes is
validated, each that goes is built with the package. Both speak a tone, are interrupted, and hang up.

Prints one line for each thing that happens.
"""
import asyncio
import base64
import json

from deepgram.agent.v1.types import (
    AgentV1FunctionCallRequest, AgentV1FunctionCallRequestFunctionsItem, AgentV1Settings, AgentV1UserStartedSpeaking, AgentV1Welcome,
)
from openai.types.realtime import (
    ConversationItemTruncateEvent, InputAudioBufferAppendEvent, InputAudioBufferSpeechStartedEvent, RealtimeConversationItemFunctionCall,
    ResponseAudioDeltaEvent, ResponseCreateEvent, ResponseOutputItemDoneEvent, SessionUpdateEvent,
)
from websockets.asyncio.server import serve

CLIENT_EVENTS = {
    "session.update": SessionUpdateEvent, "input_audio_buffer.append": InputAudioBufferAppendEvent,
    "conversation.item.truncate": ConversationItemTruncateEvent, "response.create": ResponseCreateEvent,
}
TONE = bytes([0x80, 0x80, 0x00, 0x00]) * 4000  # 2 s of µ-law


async def openai(socket):
    frames = 0
    async for text in socket:
        message = json.loads(text)
        event = CLIENT_EVENTS[message["type"]].model_validate(message, strict=True, extra="forbid")
        if event.type == "session.update":
            print("openai", event.session.audio.input.format.type, event.session.audio.output.format.type, socket.request.path, flush=True)
        elif event.type == "response.create":
            print("openai greeting", flush=True)
            await socket.send(ResponseAudioDeltaEvent(
                type="response.output_audio.delta", event_id="e1", response_id="r1", item_id="i1", output_index=0, content_index=0,
                delta=base64.b64encode(TONE).decode(),
            ).model_dump_json())
        elif event.type == "input_audio_buffer.append":
            assert len(base64.b64decode(event.audio)) == 160
            frames += 1
            if frames == 40:
                await socket.send(InputAudioBufferSpeechStartedEvent(
                    type="input_audio_buffer.speech_started", event_id="e2", audio_start_ms=700, item_id="i2").model_dump_json())
        else:
            print("openai heard", 100 < event.audio_end_ms < 1900, event.item_id, flush=True)
            item = RealtimeConversationItemFunctionCall(
                type="function_call", id="i3", call_id="c1", name="hangup", arguments="{}", status="completed")
            await socket.send(ResponseOutputItemDoneEvent(
                type="response.output_item.done", event_id="e3", response_id="r2", output_index=0, item=item).model_dump_json())


async def deepgram(socket):
    await socket.send(AgentV1Welcome(request_id="q").model_dump_json())
    frames = 0
    async for message in socket:
        if isinstance(message, str):
            settings = AgentV1Settings.model_validate_json(message)
            print("deepgram", settings.audio.input.encoding, settings.audio.output.container, settings.agent.greeting,
                  socket.request.headers["Authorization"], flush=True)
            await socket.send(TONE)
            continue
        assert len(message) == 160
        frames += 1
        if frames == 40:
            await socket.send(AgentV1UserStartedSpeaking().model_dump_json())
            function = AgentV1FunctionCallRequestFunctionsItem(id="f1", name="hangup", arguments="{}", client_side=True)
            await socket.send(AgentV1FunctionCallRequest(functions=[function]).model_dump_json())


async def call(socket):
    await (openai if socket.request.path.startswith("/v1/realtime") else deepgram)(socket)


async def main():
    async with serve(call, "127.0.0.1", 0) as server:
        print("listening", server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()


asyncio.run(main())
