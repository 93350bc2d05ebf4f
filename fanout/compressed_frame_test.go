package fanout

import (
	"slices"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"trunkline/event"
)

func TestCompressionWhereConfiguredAndOffered(t *testing.T) {
	for _, c := range []struct {
		name                string
		configured, offered bool
		agreed              bool
	}{{"both", true, true, true}, {"not configured", false, true, false}, {"not offered", true, false, false}} {
		t.Run(c.name, func(t *testing.T) {
			log, directory := newMemoryLog(1), newDirectory()
			n := startNode(t, Config{Settings: Settings{Compression: c.configured, RingBytes: 1}}, log, directory,
				newPresence(), false)
			dialer := *websocket.DefaultDialer
			dialer.EnableCompression = c.offered
			token := directory.token("root", nil, nil)
			log.put(0, "root", event.QueueCall, sourceOffsets(0, 700)...)
			ws, response, err := dialer.Dial("ws"+strings.TrimPrefix(n.url, "http")+"/ws?since=earliest&token="+token,
				nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = ws.Close() }()

			if agreed := response.Header.Get("Sec-Websocket-Extensions") != ""; agreed != c.agreed {
				t.Errorf("agreed on compression: %v", agreed)
			}

			sub := &testClient{t, ws}
			log.put(0, "root", event.QueueCall, 700)
			if got := sub.numbers(701); !slices.Equal(got, rising(0, 701)) {
				t.Errorf("got %d from %d", len(got), got[0])
			}
		})
	}
}

func TestACompressedFrameIsSmallerAndMadeOnce(t *testing.T) {
	b, _ := newBatch(benchRecords(1, func(int) string { return "root" }), &interner{}, true)
	m := &b.frames[0]
	small := m.compressed.get(m)
	if small != m.compressed.get(m) || len(small.Wire) >= len(m.Wire)/2 || small.ID != m.ID {
		t.Errorf("%d bytes of %d", len(small.Wire), len(m.Wire))
	}
}
