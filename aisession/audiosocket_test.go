package aisession_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"trunkline/aisession"
	"trunkline/aisession/audiosocket"
	"trunkline/config/aiprovider"
	"trunkline/telephony/audio"
)

// asterisk is the other end of an AudioSocket.
type asterisk struct {
	net.Conn
	t *testing.T
	r *bufio.Reader
}

func dialAudioSocket(t *testing.T, h *testEnv) *asterisk { return dialAudioSocketOf(t, h) }

// again makes another connection to the same server.
func (a *asterisk) again() *asterisk {
	a.t.Helper()
	conn, err := net.Dial("tcp", a.RemoteAddr().String())
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { _ = conn.Close() })
	return &asterisk{conn, a.t, bufio.NewReader(conn)}
}

func dialAudioSocketOf(t *testing.T, h audiosocket.Sessions) *asterisk {
	t.Helper()
	server, err := audiosocket.New(audiosocket.Settings{Listen: "127.0.0.1:0", MaxConnections: 100}, h,
		slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	}()

	conn, err := net.Dial("tcp", server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { // before the house goes down
		_ = conn.Close()
		cancel()
		<-done
	})

	return &asterisk{conn, t, bufio.NewReader(conn)}
}

// talk sends audio of a rate, a frame of it every 20 ms, until silent is called
// or there is no more.
func (a *asterisk) talk(kind byte, rate int, audio []byte) (silent func()) {
	stop, talking := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(talking)

		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()

		n := rate / 25
		for ; len(audio) > 0; audio = audio[n:] {
			if a.send(kind, audio[:n]) != nil {
				return
			}

			select {
			case <-stop:
				return
			case <-ticker.C:
			}
		}
	}()

	return func() { close(stop); <-talking }
}

func (a *asterisk) send(kind byte, payload []byte) error {
	_, err := a.Write(append([]byte{kind, byte(len(payload) >> 8), byte(len(payload))}, payload...))
	return err
}

func (a *asterisk) read() (kind byte, payload []byte, err error) {
	_ = a.SetReadDeadline(time.Now().Add(patience))
	header := make([]byte, 3)
	if _, err := io.ReadFull(a.r, header); err != nil {
		return 0, nil, err
	}
	payload = make([]byte, binary.BigEndian.Uint16(header[1:]))
	_, err = io.ReadFull(a.r, payload)
	return header[0], payload, err
}

const callUUID = "6d1a2b3c-0000-4000-8000-00000000abcd"

func announceCall(t *testing.T, h *testEnv, with aiprovider.Provider) {
	t.Helper()
	h.providers = map[string]aiprovider.Provider{with.ID: with}
	a := aiprovider.Announcement{AccountID: with.AccountID, ProviderID: with.ID, UUID: callUUID,
		CallerIDNumber: "+4930", CalleeIDNumber: "7"}
	if err := h.Announce(t.Context(), a); err != nil {
		t.Fatal(err)
	}
}

func TestACallByAudioSocket(t *testing.T) {
	for name, c := range map[string]struct {
		kind byte
		rate int
	}{"8 kHz": {0x10, 8000}, "16 kHz": {0x12, 16000}, "48 kHz": {0x16, 48000}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startProvider(t, 960, echoAudio)
			h := startService(t, aisession.DefaultSettings(), p)
			announceCall(t, h, configOf(p, "pcm16"))
			tone := samples(c.rate, 20*time.Second) // before the call: its first audio must not be late
			a := dialAudioSocket(t, h)
			id := uuid.MustParse(callUUID)
			_ = a.send(0x01, id[:])
			silent := a.talk(c.kind, c.rate, tone)
			defer func() { _ = a.Close(); silent() }()

			var packets [][]byte
			hearsTone(t, audio.Format{Encoding: audio.PCM16, Rate: c.rate}, 30, func() [][]byte {
				for range 40 {
					kind, frame, err := a.read()
					if err != nil || kind != c.kind || len(frame) != c.rate/25 {
						t.Fatalf("kind %#x of %d bytes, %v", kind, len(frame), err)
					}
					packets = append(packets, frame)
				}

				return packets
			})

			_ = a.send(0x03, []byte("4"))
			v := p.nextConnection()
			if press := v.waitFor(t, "dtmf",
				1); string(press.body) != `{"callId":"`+callUUID+`","otherLegCallId":"","digit":"4"}` {
				t.Errorf("dtmf: %s", press.body)
			}

			_ = a.send(0x00, nil)
			v.waitHangup(t, "NORMAL_CLEARING")
		})
	}
}

// TestAnAudioSocketChangesItsRate: the session began at 8 kHz, for the caller was
// silent; then 16 kHz come, and later 8 kHz again.
func TestAnAudioSocketChangesItsRate(t *testing.T) {
	t.Parallel()
	p := startProvider(t, 960, echoAudio)
	h := startService(t, aisession.DefaultSettings(), p)
	announceCall(t, h, configOf(p, "pcm16"))
	a := dialAudioSocket(t, h)
	id := uuid.MustParse(callUUID)
	_ = a.send(0x01, id[:])
	v := p.nextConnection()
	v.waitFor(t, "start", 1) // the session begins without audio

	for _, c := range []struct {
		kind byte
		rate int
	}{{0x12, 16000}, {0x10, 8000}} {
		silent := a.talk(c.kind, c.rate, samples(c.rate, 20*time.Second))
		var packets [][]byte
		hearsTone(t, audio.Format{Encoding: audio.PCM16, Rate: c.rate}, 30, func() [][]byte {
			for n := 0; n < 40; {
				kind, frame, err := a.read()
				if err != nil || rateOf[kind] == 0 || len(frame) != rateOf[kind]/25 {
					t.Fatalf("kind %#x of %d bytes, %v", kind, len(frame), err)
				}

				if kind == c.kind { // those before the change are on their way
					packets = append(packets, frame)
					n++
				}
			}

			return packets
		})

		silent()
	}

	_ = a.send(0x00, nil)
	v.waitHangup(t, "NORMAL_CLEARING")
}

var rateOf = map[byte]int{0x10: 8000, 0x12: 16000}

// TestAnAudioSocketCannotTransfer: the provider receives the refusal.
func TestAnAudioSocketCannotTransfer(t *testing.T) {
	p := startProvider(t, 160,
		func(v *fakeConnection) { _ = v.send(`{"event":"transfer","transfer":{"destination":"1002"}}`) })
	p.extensions = true
	h := startService(t, aisession.DefaultSettings(), p)
	with := configOf(p, "g711_ulaw")
	with.Extensions = true
	announceCall(t, h, with)
	a := dialAudioSocket(t, h)
	id := uuid.MustParse(callUUID)
	_ = a.send(0x01, id[:])
	v := p.nextConnection()
	if m := v.waitFor(t, "transfer",
		1); string(m.body) != `{"destination":"1002","error":"AudioSocket cannot transfer a call"}` {
		t.Errorf("told %s", m.body)
	}

	v.waitFor(t, "media", 5)
	_ = a.send(0x00, nil)
	v.waitHangup(t, "NORMAL_CLEARING")
}

// A key that the door of the call cannot send is answered with an error, and the call continues.
func TestAKeyThatCannotBeSentIsAnswered(t *testing.T) {
	p := startProvider(t, 160, func(v *fakeConnection) { _ = v.send(`{"event":"dtmf","dtmf":{"digit":"5"}}`) })
	p.extensions = true
	h := startService(t, aisession.DefaultSettings(), p)
	with := configOf(p, "g711_ulaw")
	with.Extensions = true
	announceCall(t, h, with)
	a := dialAudioSocket(t, h)
	id := uuid.MustParse(callUUID)
	_ = a.send(0x01, id[:])
	v := p.nextConnection()
	if m := v.waitFor(t, "error", 1); string(m.body) != `{"event":"dtmf","message":"AudioSocket cannot send DTMF"}` {
		t.Errorf("told %s", m.body)
	}

	v.waitFor(t, "media", 5)
	_ = a.send(0x00, nil)
	v.waitHangup(t, "NORMAL_CLEARING")
}

func TestAnAudioSocketThatIsRefused(t *testing.T) {
	id := uuid.MustParse(callUUID)
	for name, first := range map[string]func(*asterisk){
		"nobody announced it": func(a *asterisk) { _ = a.send(0x01, id[:]) },
		"no UUID":             func(a *asterisk) { _ = a.send(0x10, make([]byte, 320)) },
		"a short UUID":        func(a *asterisk) { _ = a.send(0x01, id[:7]) },
		"half a message": func(a *asterisk) {
			_, _ = a.Write(
				[]byte{1, 0})
			_ = a.Conn.(*net.TCPConn).CloseWrite()
		},
		"HTTP": func(a *asterisk) {
			_, _ = io.WriteString(a,
				"GET / HTTP/1.1\r\n\r\n"+strings.Repeat("x", 1<<16))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := startService(t, aisession.DefaultSettings(), nil)
			a := dialAudioSocket(t, h)
			first(a)

			if kind, _, err := a.read(); err == nil && kind != 0x00 {
				t.Errorf("got kind %#x", kind)
			}
			if _, _, err := a.read(); err == nil {
				t.Error("the connection continues")
			}
		})
	}
}

func TestAnAudioSocketHearsThatTheProviderHangsUp(t *testing.T) {
	p := startProvider(t, 160, func(v *fakeConnection) { _ = v.send(`{"event":"hangup","hangup":{}}`) })
	h := startService(t, aisession.DefaultSettings(), p)
	with := configOf(p, "g711_ulaw")
	with.Extensions = true
	announceCall(t, h, with)
	a := dialAudioSocket(t, h)
	id := uuid.MustParse(callUUID)
	_ = a.send(0x01, id[:])

	for {
		kind, _, err := a.read()
		if err != nil {
			t.Fatalf("no hangup: %v", err)
		}

		if kind == 0x00 {
			break
		}
	}

	p.nextConnection().waitHangup(t, "NORMAL_CLEARING")
}
