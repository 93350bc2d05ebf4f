"""Driver of clients/python: see package conformance for the line protocol."""

import asyncio
import json
import os
import ssl
import sys
from dataclasses import asdict

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))

from trunkline_client import Client, Event, FileStore, Filters, TrunklineError  # noqa: E402


def put(**line):
    print(json.dumps(line), flush=True)


def described(error):
    return error and {
        "name": type(error).__name__, "message": str(error), "permanent": getattr(error, "permanent", False),
        "code": getattr(error, "code", 0), "status": getattr(error, "status", 0),
    }


def on_status(status):
    put(kind="status", state=status.state, error=described(status.error), retry_in_ms=status.retry_in * 1000)


async def follow(config, resumed):
    trust = ssl.create_default_context(cafile=config["ca"]) if config.get("ca") else None
    options = {
        "since": config.get("since", ""), "snapshot": config.get("snapshot", False),
        "filters": Filters(**config.get("filters", {})), "on_status": on_status,
        "store": FileStore(config["store"]) if config.get("store") else None,
    }
    for name in ("retry_min", "retry_max", "silence"):
        if config.get(name + "_ms"):
            options[name] = config[name + "_ms"] / 1000
    async with Client(config["url"], username=config.get("username"), password=config.get("password"),
                      domain=config.get("domain"), portal_token=config.get("portal_token"),
                      api_key=config.get("api_key"), ssl_context=trust) as client:
        async for item in client.subscribe(**options):
            if isinstance(item, Event):
                facts = {name: value for name, value in asdict(item.facts).items() if value is not None} if item.facts else None
                put(kind="event", id=item.id, cursor=item.cursor, facts=facts)
            else:
                put(kind="snapshot", cursor=item.cursor, agents=[agent.agent_id for agent in item.agents])
            if isinstance(item, Event) and item.id == config.get("pause_at"):
                await resumed.wait()


async def main():
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    config = json.loads(await reader.readline())
    resumed = asyncio.Event()
    task = asyncio.create_task(follow(config, resumed))

    async def obey():
        while line := await reader.readline():
            what = json.loads(line)["do"]
            if what == "stop":
                task.cancel()
            elif what == "resume":
                resumed.set()

    commands = asyncio.create_task(obey())
    failure = None
    try:
        await task
    except asyncio.CancelledError:
        pass
    except (TrunklineError, ValueError) as error:
        failure = error
    commands.cancel()
    put(kind="end", error=described(failure))


asyncio.run(main())
