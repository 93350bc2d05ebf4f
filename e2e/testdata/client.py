"""A subscriber of the events channel: logs in, prints every event, and after a
break comes back where it was.

  pip install websockets
  TRUNKLINE_PASSWORD=... python3 client.py https://127.0.0.1:9443 alice demo.local data/tls/cert.pem
"""

import json
import os
import random
import ssl
import sys
import time
import urllib.parse
import urllib.request

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

base, username, domain, certificate = sys.argv[1:]
trust = ssl.create_default_context(cafile=certificate)
trust.maximum_version = ssl.TLSVersion.TLSv1_2  # two threads use the socket: cpython#143756
PATIENCE = 180  # seconds: a busy machine is slower than the defaults of websockets


def login():
    body = {"username": username, "domain": domain, "password": os.environ["TRUNKLINE_PASSWORD"]}
    request = urllib.request.Request(
        base + "/ws/v1/cc_events/login", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, context=trust) as answer:
        return json.load(answer)["access_token"]


token, since = login(), None
while True:
    query = "?" + urllib.parse.urlencode({"since": since}) if since else ""
    url = base.replace("http", "ws", 1) + "/api/v2/cc_events_channel/ws" + query
    try:
        with connect(
            url, ssl=trust, additional_headers={"Authorization": "Bearer " + token},
            open_timeout=PATIENCE, ping_timeout=PATIENCE,
        ) as socket:
            print("connected", file=sys.stderr, flush=True)
            for text in socket:
                print(text, flush=True)
                since = json.loads(text)["id"]
    except (OSError, ConnectionClosed) as error:
        print(error, file=sys.stderr, flush=True)
    time.sleep(0.2 + random.random() * 0.3)
