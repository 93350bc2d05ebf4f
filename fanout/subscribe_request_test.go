package fanout

import (
	"net/http"
	"testing"

	"trunkline/event"
)

func TestRefusalsComeBeforeTheUpgrade(t *testing.T) {
	log, directory := newMemoryLog(1), newDirectory()
	n := startNode(t, Config{}, log, directory, newPresence(), false)

	token := directory.token("root", nil, nil)
	ids := log.put(0, "root", event.QueueCall, 0, 1)
	for _, c := range []struct {
		name, token, query string
		status             int
	}{
		{"bad token", "nobody", "", 401},
		{"no event id", token, "since=1", 400},
		{"no cursor", token, "since=" + ids[0].String() + ".AAAA", 400},
		{"an id of the future", token, "since=" + (ids[1] + 1024).String(), 410},
		{"an id never given", token, "since=" + (ids[1] - 1024).String(), 410},
		{"an id of a partition that is not there", token, "since=" + (ids[1] + 1).String(), 410},
		{"an id older than the log", token, "since=cc_evt_1400000000000000000", 410},
	} {
		_, response, err := n.tryDial(c.token, c.query)
		if err == nil || response == nil || response.StatusCode != c.status {
			t.Errorf("%s: %v, %+v, want %d", c.name, err, response, c.status)
		}
	}

	response, err := http.Get(n.url + "/ws?token=" + token)
	if err != nil || response.StatusCode != http.StatusUpgradeRequired {
		t.Errorf("without upgrade: %v %v", response, err)
	}

	request, err := http.NewRequest(http.MethodGet, n.url+"/ws?token="+token, nil)
	if err != nil {
		t.Fatal(err)
	}

	request.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"8"},
		"Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="}}
	response, err = http.DefaultClient.Do(request)
	if err != nil || response.StatusCode != http.StatusUpgradeRequired ||
		response.Header.Get("Sec-WebSocket-Version") != "13" {
		t.Errorf("another version: %v %v", response, err)
	}
}

func TestAHandshakeHasTheHeadersOfTheResponse(t *testing.T) {
	directory := newDirectory()
	n := startNode(t, Config{}, newMemoryLog(1), directory, newPresence(), false)
	ws, response, err := n.tryDial(directory.token("root", nil, nil), "")
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()

	if response.Header.Get("X-Request-ID") != "request-1" {
		t.Errorf("headers %v", response.Header)
	}
}
