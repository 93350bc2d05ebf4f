package aisession_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"trunkline/aisession"
)

func TestALongTestOfAProvider(t *testing.T) {
	p := startProvider(t, 160, nil)
	p.behave = func(v *fakeConnection) {
		time.Sleep(100 * time.Millisecond)
		_ = v.sendAudio(make([]byte, 160))
	}

	h := startService(t, aisession.DefaultSettings(), p)
	report, err := h.TestProvider(t.Context(), configOf(p, "g711_ulaw"))
	if err != nil {
		t.Fatal(err)
	}

	if !report.OK || report.ConnectMS <= 0 || report.Error != "" ||
		fmt.Sprint(report.Events) != "[start media media hangup]" {
		t.Errorf("report: %+v", report)
	}

	p.nextConnection().waitHangup(t, "NORMAL_CLEARING")
	if len(h.events.all()) != 0 {
		t.Error("a test was published on the channel")
	}
}

func TestATestOfAProviderWithMalformedFrames(t *testing.T) {
	p := startProvider(t, 160, func(v *fakeConnection) {
		v.writing.Lock()
		defer v.writing.Unlock()
		_, _ = v.NetConn().Write([]byte{0xc1, 0}) // compressed, though that was not agreed
	})

	h := startService(t, aisession.DefaultSettings(), p)
	report, err := h.TestProvider(t.Context(), configOf(p, "g711_ulaw"))
	if err != nil || report.OK || !strings.Contains(report.Error, "frames are malformed") {
		t.Errorf("Test: %+v, %v", report, err)
	}
}

func TestATestOfAProviderThatCloses(t *testing.T) {
	p := startProvider(t, 160, func(v *fakeConnection) {
		time.Sleep(50 * time.Millisecond)
		v.writing.Lock()
		defer v.writing.Unlock()
		_ = v.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(1011, "secret"))
	})

	h := startService(t, aisession.DefaultSettings(), p)
	report, err := h.TestProvider(context.Background(), configOf(p, "g711_ulaw"))
	if err != nil || report.OK || !strings.Contains(report.Error, "code 1011") || len(p.connections) != 1 {
		t.Errorf("Test: %+v, %v, %d connections", report, err, len(p.connections))
	}
}
