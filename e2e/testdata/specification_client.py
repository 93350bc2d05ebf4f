"""A client of the specification alone: logs in, reads call events, places a call and finds it.

specification_client.py BASE_URL CA_FILE USERNAME PASSWORD DOMAIN DESTINATION CALL_EVENTS

It prints "ready" when its WebSocket is open, one line for each of CALL_EVENTS call events, and one
for the call that it placed. Needs the package websockets.
"""

import json
import ssl
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

from websockets.sync.client import connect

PATIENCE = 180  # seconds: a busy machine is slower than the defaults of websockets

base, ca_file, username, password, domain, destination, wanted = sys.argv[1:8]
trust = ssl.create_default_context(cafile=ca_file)
trust.maximum_version = ssl.TLSVersion.TLSv1_2  # two threads use the socket: cpython#143756


def request(method, path, body=None, token=None):
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = "Bearer " + token
    data = json.dumps(body).encode() if body is not None else None
    asked = urllib.request.Request(base + path, data=data, method=method, headers=headers)
    with urllib.request.urlopen(asked, context=trust) as answer:
        return answer.status, json.load(answer)


def read_call_event(message):
    """What the specification says of a call event, and nothing else."""
    data = message["data"]
    channel = data["CDR"]["channel"]
    assert isinstance(channel["Conference-Channel-Vars"], dict)
    assert channel["Custom-Channel-Vars"]["Account-ID"] and channel["Custom-Channel-Vars"]["Bridge-ID"]
    assert isinstance(data["CDR"]["Conference-ID"], str)
    assert data["Account-ID"] == message["account_id"] and data["Type"] == message["type"]
    customer = data["customer_info"]
    assert isinstance(customer["customer_callerid_name"], str) and customer["customer_uuid"] == data["CDR"]["Call-ID"]
    history = data["history"]
    for entry in history:
        assert entry["type"] in ("agent", "queue")
        assert all(isinstance(entry[name], str) for name in ("ext", "event", "email", "first_name", "last_name"))
    assert history[-1]["event"] == data["CDR"]["Event"]
    agents = [entry["ext"] for entry in history if entry["type"] == "agent"]
    return [data["Queue-ID"], data["CDR"]["Event"], customer["customer_callerid_number"], agents[-1] if agents else ""]


_, channel = request("POST", "/ws/v1/cc_events/login", {
    "username": username, "password": password, "domain": domain,
    "account_ids": [], "event_types": ["svc_cc_queue_on_call_event"],
})
assert channel["expires_in"] > 0
with connect(base.replace("https:", "wss:") + "/ws/v1/cc_events", ssl=trust,
             additional_headers={"Authorization": "Bearer " + channel["access_token"]},
             open_timeout=PATIENCE, ping_timeout=PATIENCE) as events:
    print("ready", flush=True)
    for _ in range(int(wanted)):
        message = json.loads(events.recv(timeout=PATIENCE))
        assert message["id"].startswith("cc_evt_") and isinstance(message["timestamp"], int)
        print("event", json.dumps(read_call_event(message)), flush=True)

_, session = request("POST", "/ucp/v2/login", {"username": username, "password": password, "domain": domain})
token, placed_at = session["access_token"], int(time.time())
status, placed = request("POST", "/ucp/v2/c2c/" + urllib.parse.quote(destination, safe=""), token=token)
assert status == 201
call_id = placed["origination_call_id"]
print("placed", call_id, flush=True)

query = "/api/v2/reports/cdrs?" + urllib.parse.urlencode(
    {"startDate": placed_at - 3600, "endDate": placed_at + 3600, "origination_call_id": call_id})
deadline = time.monotonic() + PATIENCE
while True:
    try:
        _, row = request("GET", query, token=token)
        if "custom_sip_headers" in row or time.monotonic() > deadline:
            break  # the leg with the call's own headers; its record may come last
    except urllib.error.HTTPError as error:
        if error.code != 404 or time.monotonic() > deadline:
            raise
    time.sleep(0.2)
assert row["origination_call_id"] == call_id and row["call_id"] != call_id and row["interaction_id"]
assert row["custom_sip_headers"]["svc_call_type"] == "clicktocall"
print("found", json.dumps([row["to"], row["direction"], row["hangup_cause"]]), flush=True)
