package e2e

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"trunkline/telephony/g711"
)

// wiretap notes when each tone of a phone's audio began on the network: an independent witness.
type wiretap struct {
	mu     sync.Mutex
	voices [2]toneStarts // from the phone, and to it
	begun  [2][]time.Time
}

// toneStarts finds where tones begin after 100 ms of silence.
type toneStarts struct{ silent int }

func (s *toneStarts) next(sample int16) (begins bool) {
	if sample > -1000 && sample < 1000 {
		s.silent++
		return false
	}
	begins = s.silent >= 800
	s.silent = 0
	return begins
}

// watchPhone captures the G.711 packets of a phone on loopback until the test ends.
func watchPhone(t *testing.T, p *phone) *wiretap {
	t.Helper()
	const anyIP = 0x0008 // ETH_P_IP in network order
	fd, err := syscall.Socket(syscall.AF_PACKET, syscall.SOCK_DGRAM, anyIP)
	if err != nil {
		t.Fatal(err)
	}

	err = errors.Join(
		syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4<<20),
		syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_TIMESTAMPNS, 1),
		syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &syscall.Timeval{Usec: 100_000}),
	)
	if err != nil {
		t.Fatal(err)
	}

	w, done, ended := &wiretap{}, make(chan struct{}), make(chan struct{})
	t.Cleanup(func() {
		close(done)
		<-ended
		if err := syscall.Close(fd); err != nil {
			t.Error(err)
		}
	})

	go func() {
		defer close(ended)

		packet, control := make([]byte, 4<<10), make([]byte, 256)
		for {
			select {
			case <-done:
				return
			default:
			}

			n, size, _, from, err := syscall.Recvmsg(fd, packet, control, 0)
			if err != nil { // nothing came
				continue
			}

			if link, ok := from.(*syscall.SockaddrLinklayer); !ok || link.Pkttype == syscall.PACKET_OUTGOING {
				continue // each packet of loopback is seen twice
			}

			w.note(packet[:n], control[:size], p.mediaPort())
		}
	}()

	return w
}

// note keeps a packet of the port's audio.
func (w *wiretap) note(ip, control []byte, port int) {
	header := int(ip[0]&0xF) * 4
	if ip[9] != syscall.IPPROTO_UDP || len(ip) < header+8+12 {
		return
	}

	from, to := int(binary.BigEndian.Uint16(ip[header:])), int(binary.BigEndian.Uint16(ip[header+2:]))
	rtp := ip[header+8:]
	if rtp[0] != 0x80 || rtp[1]&0x7F != 0 { // version 2 and nothing else, PCMU
		return
	}

	direction := slices.IndexFunc([]int{from, to}, func(p int) bool { return p >= port && p <= port+8 })
	messages, err := syscall.ParseSocketControlMessage(control)
	if direction < 0 || err != nil || len(messages) != 1 {
		return
	}

	stamp := messages[0].Data
	at := time.Unix(int64(binary.NativeEndian.Uint64(stamp)), int64(binary.NativeEndian.Uint64(stamp[8:])))
	w.mu.Lock()
	defer w.mu.Unlock()

	for i, sample := range g711.ULaw().Decode(nil, rtp[12:]) {
		if w.voices[direction].next(sample) {
			w.begun[direction] = append(w.begun[direction], at.Add(time.Duration(i)*time.Second/8000))
		}
	}
}

// tones returns when the tones of a direction began, after a time.
func (w *wiretap) tones(direction int, after time.Time) (begun []time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, at := range w.begun[direction] {
		if at.After(after) {
			begun = append(begun, at)
		}
	}
	return begun
}

// recordedTones returns where the tones of a channel begin, in seconds, in a WAV file that Trunkline recorded.
func recordedTones(wav []byte, channel int) (begun []float64) {
	var voice toneStarts
	for at := 44 + 2*channel; at+2 <= len(wav); at += 4 {
		if voice.next(int16(binary.LittleEndian.Uint16(wav[at:]))) {
			begun = append(begun, float64((at-44)/4)/8000)
		}
	}
	return begun
}

// commonPhase returns where in their second most of the positions are.
func commonPhase(positions []float64) float64 {
	best, bestNear := 0.0, -1
	for _, candidate := range positions {
		near := 0
		for _, other := range positions {
			if phaseDistance(candidate, other) <= 0.010 {
				near++
			}
		}

		if near > bestNear {
			best, bestNear = candidate, near
		}
	}

	return best
}

// phaseDistance returns how far two positions are apart in their seconds.
func phaseDistance(a, b float64) float64 {
	d := math.Mod(math.Abs(a-b), 1)
	return min(d, 1-d)
}

// checkPositions compares where the tones of both channels begin with when they began on the phone's
// wire: on one clock, which is the recording's, and within 20 ms, up to whole seconds, the length of a
// beep with its silence.
func checkPositions(wav []byte, w *wiretap, bridged time.Time) error {
	var recorded, sent [2][]float64
	for channel := range recorded {
		recorded[channel] = recordedTones(wav, channel)
		for _, at := range w.tones(channel, bridged) {
			sent[channel] = append(sent[channel], at.Sub(bridged).Seconds())
		}

		if len(recorded[channel]) < 3 || len(sent[channel]) < 3 {
			return fmt.Errorf("channel %d has tones at %.3f, the wire at %.3f", channel, recorded[channel],
				sent[channel])
		}
	}

	clock := commonPhase(recorded[0]) - commonPhase(sent[0])
	for channel, tones := range recorded {
		for _, at := range tones[1 : len(tones)-1] { // the first and the last may be cut
			if !slices.ContainsFunc(sent[channel],
				func(s float64) bool { return phaseDistance(at, s+clock) <= 0.020 }) {
				return fmt.Errorf("channel %d: a tone at %.3f s, the wire at %.3f and %.3f", channel, at, sent[channel],
					clock)
			}
		}
	}

	return nil
}

// recordCall runs a click to call for some seconds, finds its recording from the call's record, and
// checks that it is sealed and has both tones on their channels.
func (r *recordingUser) recordCall(t *testing.T, d *dialler, destination string, caller, callee *phone) error {
	t.Helper()
	seen := watchPhone(t, caller)
	id := d.dial(t, destination)
	d.await(t, id, "bridged")

	bridged := time.Now()
	eventually(t, "six tones of each voice", func() error {
		if a, b := len(seen.tones(0, bridged)), len(seen.tones(1, bridged)); a < 6 || b < 6 {
			return fmt.Errorf("%d and %d", a, b)
		}
		return nil
	})

	caller.command(t, "hangup", "")
	d.await(t, id, "ended")

	var row callRecord
	eventually(t, "the call's record to name its recording", func() error {
		if err := d.report(t, "origination_call_id="+id, &row); err != nil {
			return err
		}
		if row.RecordingID == "" {
			return errors.New("it names none yet")
		}

		return nil
	})

	if m := r.metadata(t, row.RecordingID); !m.Encrypted {
		t.Errorf("%+v", m)
	}

	wav := r.play(t, row.RecordingID)
	file := filepath.Join(t.TempDir(), "call.wav")
	if err := os.WriteFile(file, wav, 0o600); err != nil {
		t.Fatal(err)
	}

	for channel, p := range []*phone{caller, callee} {
		if hertz := roughFrequency(t, file, channel, "1", "4"); hertz < p.hertz*9/10 || hertz > p.hertz*11/10 {
			t.Errorf("channel %d has %d Hz, want %d", channel, hertz, p.hertz)
		}
		r.mustHideTone(t, p)
	}

	return checkPositions(wav, seen, bridged)
}

// A new user turns recording on, calls a phone and an AI provider from a browser's click, and finds both
// recordings from the calls' records: each voice on its channel, within 20 ms of where it was.
func TestRecordedCallsKeepTheirVoicesInPlace(t *testing.T) {
	if !inNetworkNamespace(t) {
		return
	}

	echo := startForeign(t, nil, program(t), "ai", "echo", "--listen", "127.0.0.1:9555")
	echo.await(t, "to listen", func(out, _ []string) bool { return len(out) > 0 })
	n := newNode(t, "recorded", map[string]string{
		"TRUNKLINE_DEMO_PASSWORD": password, "TRUNKLINE_AI_PROVIDER_ALLOW_NETWORKS": "127.0.0.0/8",
	})
	n.start(t)
	registered := n.registrations(t)
	provider := n.createProvider(t, "g711_ulaw", 8000, "ws://127.0.0.1:9555/")
	alice, bob := n.newBeeper(t, "alice", "1001", 5071, 440), n.newBeeper(t, "bob", "1002", 5081, 880)
	registered(2)
	r := newRecordingUser(t, n)
	r.recordCalls(t)
	d := n.dialler(t, "alice")

	for _, call := range []struct {
		destination string
		callee      *phone // whose tone the callee's channel has
	}{{"1002", bob}, {"ai-" + provider, alice}} {
		// On a machine that is too busy the phones themselves are late: another call is tried.
		var err error
		for range 5 {
			err = r.recordCall(t, d, call.destination, alice, call.callee)
			if err == nil || t.Failed() {
				break
			}
			t.Logf("%s: %v", call.destination, err)
		}

		if err != nil {
			t.Errorf("%s: %v", call.destination, err)
		}
	}
}

// A server that is killed in a call keeps all but the last two seconds: after the restart they are a
// recording like others.
func TestAKilledServerKeepsTheRecordingOfACall(t *testing.T) {
	if !inNetworkNamespace(t) {
		return
	}

	for attempt := range 8 { // on a machine that is too busy the last write may be late
		lost := killInCall(t, attempt)
		if lost <= 2*time.Second || t.Failed() {
			return
		}
		t.Logf("lost %v", lost)
	}

	t.Error("each time more than two seconds are lost")
}

// killInCall kills a server in a call of two phones, and returns what its recording lacks.
func killInCall(t *testing.T, attempt int) (lost time.Duration) {
	t.Helper()
	n := newNode(t, fmt.Sprintf("killed-%d", attempt), map[string]string{"TRUNKLINE_DEMO_PASSWORD": password})
	n.start(t)
	registered := n.registrations(t)
	port := 5071 + 40*attempt
	alice, bob := n.newBeeper(t, "alice", "1001", port, 440), n.newBeeper(t, "bob", "1002", port+20, 880)
	registered(2)
	r := newRecordingUser(t, n)
	r.recordCalls(t)
	d := n.dialler(t, "alice")
	seen := watchPhone(t, alice)
	id := d.dial(t, "1002")
	d.await(t, id, "bridged")

	bridged := time.Now()
	eventually(t, "six tones of each voice", func() error {
		if a, b := len(seen.tones(0, bridged)), len(seen.tones(1, bridged)); a < 6 || b < 6 {
			return fmt.Errorf("%d and %d", a, b)
		}
		return nil
	})

	heard := time.Since(bridged)
	n.kill(t)
	for _, p := range []*phone{alice, bob} {
		r.mustHideTone(t, p)
	}

	n.start(t)
	r.login(t)
	var found struct {
		Data []struct {
			RecordingID string `json:"recording_id"`
			Encrypted   bool   `json:"encrypted"`
			DurationMS  int64  `json:"duration_ms"`
		} `json:"data"`
	}

	eventually(t, "the recording to be stored", func() error {
		r.decode(t, r.curl(t, "-H", "X-API-Key: "+r.key, r.url+"/api/v2/recordings?origination_call_id="+id), &found)
		if len(found.Data) != 1 {
			return fmt.Errorf("%d recordings", len(found.Data))
		}
		return nil
	})

	m := found.Data[0]
	file := filepath.Join(t.TempDir(), "call.wav")
	wav := r.play(t, m.RecordingID)
	if err := os.WriteFile(file, wav, 0o600); err != nil {
		t.Fatal(err)
	}
	if !m.Encrypted || int64(len(wav)-44)/32 != m.DurationMS {
		t.Errorf("%+v, %d bytes", m, len(wav))
	}

	for channel, p := range []*phone{alice, bob} {
		if hertz := roughFrequency(t, file, channel, "1", "3"); hertz < p.hertz*9/10 || hertz > p.hertz*11/10 {
			t.Errorf("channel %d has %d Hz, want %d", channel, hertz, p.hertz)
		}
		r.mustHideTone(t, p)
	}

	left, err := filepath.Glob(filepath.Join(n.dir, "recordings-in-progress", "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left are %s (%v)", strings.Join(left, " "), err)
	}

	lost = heard - time.Duration(m.DurationMS)*time.Millisecond
	t.Logf("%v were heard, %v are lost", heard, lost)
	return lost
}
