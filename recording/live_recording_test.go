package recording

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/config/callrecording"
	"trunkline/config/encryption"
	"trunkline/internal/fault"
	"trunkline/recording/envelope"
	"trunkline/telephony/localcall"
	"trunkline/telephony/rtp"
)

// A call does not wait while its recording's key is derived: what is heard meanwhile is recorded, a
// pause is kept, and the end is the call's.
func TestACallDoesNotWaitForItsRecording(t *testing.T) {
	h, _ := newLiveEnv(t, callrecording.ModeAll)
	live := h.newLiveRecording("acme", Call{CallID: "slow"})
	live.useMedia(pcmu())

	openJournal, opening, derived := live.openJournal, make(chan struct{}), make(chan struct{})
	live.openJournal = func(ctx context.Context) (*journal, error) {
		close(opening)
		<-derived
		return openJournal(ctx)
	}

	ended := make(chan error)
	go func() { ended <- live.run() }()
	<-opening
	caller := &voice{hz: 440, ssrc: 1}

	for n := range 250 { // five seconds
		live.setPresent(time.Duration(n) * 20 * time.Millisecond)
		switch n {
		case 100:
			live.beginPause()
		case 150:
			live.resume()
		}

		live.Received(caller.next())
	}

	live.stop()
	live.setPresent(time.Minute)
	close(derived)
	check(t, <-ended)
	name := live.journal.file.Name()
	check(t, live.journal.file.Close())
	check(t, h.storeJournalFile(t.Context(), name))
	m := must(h.Metadata(t.Context(), "acme", "slow"))(t)
	if m.DurationMS < 4900 || m.DurationMS > 5100 || len(m.Pauses) != 1 {
		t.Errorf("%+v", m)
	}

	for n, level := range loudness(must(h.play("acme", "slow"))(t), channelCaller)[:240] {
		edge := n >= 98 && n <= 101 || n >= 148 && n <= 151
		if !edge && (level == 0) != (n >= 100 && n < 150) {
			t.Errorf("%d ms: level %d", n*20, level)
		}
	}
}

// A recording takes at most 256 KB of memory, also while its journal opens and both voices wait for it.
func TestTheMemoryOfARecordingIsBounded(t *testing.T) {
	h, _ := newLiveEnv(t, callrecording.ModeAll)
	h.configure(t, "acme", encryption.Change{Enabled: true, Key: new(firstKey)})
	heapBytes := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}

	caller, callee := &voice{hz: 440, ssrc: 1}, &voice{hz: 1000, ssrc: 2}
	packets := make([][2]*rtp.Packet, 500) // ten seconds
	for i := range packets {
		packets[i] = [2]*rtp.Packet{caller.next(), callee.next()}
	}

	const n = 100
	recordings := make([]*liveRecording, n)
	before := heapBytes()

	for i := range recordings {
		recordings[i] = h.newLiveRecording("acme", Call{CallID: fmt.Sprint("call-", i)})
		recordings[i].useMedia(pcmu())
		for at, pair := range packets {
			recordings[i].setPresent(time.Duration(at) * 20 * time.Millisecond)
			recordings[i].Received(pair[0])
			recordings[i].Sent(pair[1])
		}
	}

	if each := (heapBytes() - before) / n; each > 256<<10 || each < maxQueuedBytes {
		t.Errorf("%d bytes each while the journal opens", each)
	}

	for _, live := range recordings {
		live.flush(openLive(t, live).now() - samples(maxPacketDelay))
	}

	if each := (heapBytes() - before) / n; each > 256<<10 {
		t.Errorf("%d bytes each", each)
	}

	for _, live := range recordings {
		check(t, live.journal.file.Close())
	}
}

// A recording that cannot begin leaves the call as one that is not recorded.
func TestARecordingThatCannotBegin(t *testing.T) {
	h, recorder := newLiveEnv(t, callrecording.ModeOnDemand)
	h.liveDir = filepath.Join(h.liveDir, "file", "folder")
	check(t, os.MkdirAll(filepath.Dir(filepath.Dir(h.liveDir)), 0o700))
	check(t, os.WriteFile(filepath.Dir(h.liveDir), nil, 0o600))
	ports := must(rtp.NewPorts(rtp.Config{Listen: netip.MustParseAddr("127.0.0.1"), MinPort: 24300, MaxPort: 24400},
		prometheus.NewRegistry(), slog.New(slog.DiscardHandler)))(t)
	port := must(ports.Open())(t)
	defer port.Close()

	recording := recorder.Record(localcall.RecordedCall{AccountID: "acme", CallID: "c1", Port: port})
	recording.Begin(pcmu())
	for range 2 {
		if err := recorder.Control(t.Context(), Control{"acme", "c1", "start"}); err == nil ||
			fault.KindOf(err) == fault.KindConflict {
			t.Errorf("start: %v", err)
		}

		recorder.storing.Wait()
		if err := recorder.Control(t.Context(),
			Control{"acme", "c1", "pause"}); fault.KindOf(err) != fault.KindConflict {
			t.Errorf("pause: %v", err)
		}
	}

	recording.End()
}

// A call with a port on real sockets is recorded as its mode and the actions of Control say, on this node, by each of
// its ids.
func TestACallIsRecordedFromItsPort(t *testing.T) {
	h, recorder := newLiveEnv(t, callrecording.ModeOnDemand)
	ports := must(rtp.NewPorts(rtp.Config{Listen: netip.MustParseAddr("127.0.0.1"), MinPort: 24100, MaxPort: 24200},
		prometheus.NewRegistry(), slog.New(slog.DiscardHandler)))(t)
	port := must(ports.Open())(t)
	defer port.Close()

	recording := recorder.Record(
		localcall.RecordedCall{AccountID: "acme", CallID: "c1", OriginationCallID: "o1", Port: port})
	for _, action := range []string{"start", "pause"} {
		if err := recorder.Control(t.Context(),
			Control{"acme", "c1", action}); fault.KindOf(err) != fault.KindConflict {
			t.Errorf("%s before the call is connected: %v", action, err)
		}
	}

	recording.Begin(pcmu())
	for _, step := range []struct {
		id, action string
		kind       fault.Kind // "": it is done
	}{
		{"c1", "pause", fault.KindConflict}, {"other", "start", fault.KindNotFound}, {"o1", "start", ""},
		{"c1", "start", fault.KindConflict},
		{"c1", "pause", ""}, {"c1", "pause", fault.KindConflict}, {"c1", "resume", ""},
		{"c1", "resume", fault.KindConflict},
		{"c1", "erase", fault.KindInvalid}, {"c1", "stop", ""}, {"c1", "stop", fault.KindConflict}, {"c1", "start", ""},
	} {
		err := recorder.Control(t.Context(), Control{"acme", step.id, step.action})
		if (err == nil) != (step.kind == "") || err != nil && fault.KindOf(err) != step.kind {
			t.Errorf("%s of %s: %v", step.action, step.id, err)
		}
	}

	if err := recorder.Control(t.Context(), Control{"other", "c1", "stop"}); fault.KindOf(err) != fault.KindNotFound {
		t.Errorf("of another account: %v", err)
	}

	recording.End()
	recording.End()
	ended, cancel := context.WithCancel(t.Context())
	cancel()

	check(t, recorder.Run(ended))
	page := must(h.List(t.Context(), Filter{Account: "acme", Call: Call{OriginationCallID: "o1"}}))(t)
	// Both are stored at once: which is listed first is nobody's promise.
	slices.SortFunc(page.Data, func(a, b Metadata) int { return strings.Compare(a.RecordingID, b.RecordingID) })
	if len(page.Data) != 2 || len(page.Data[0].Pauses) != 1 || page.Data[1].RecordingID != "c1-2" {
		t.Errorf("%+v", page.Data)
	}

	off, silent := newLiveEnv(t, callrecording.ModeOff)
	call := silent.Record(localcall.RecordedCall{AccountID: "acme", CallID: "c1", Port: port})
	call.Begin(pcmu())

	if err := silent.Control(t.Context(), Control{"acme", "c1", "start"}); fault.KindOf(err) != fault.KindConflict ||
		!strings.Contains(err.Error(), "off") {
		t.Errorf("where the mode is off: %v", err)
	}

	call.End()
	if page := must(off.List(t.Context(), Filter{Account: "acme"}))(t); len(page.Data) != 0 {
		t.Errorf("%+v", page.Data)
	}
}

// BenchmarkRecordedSecond is what a second of a recorded call costs, sealed: 100 packets and two
// writes.
func BenchmarkRecordedSecond(b *testing.B) {
	h, _ := newLiveEnv(b, callrecording.ModeAll)
	checkError(b)(h.config.Update(context.Background(), "acme",
		encryption.Change{Enabled: true, Key: new(firstKey), Salt: new("the salt of all tests")}, ""))
	live := openLive(b, h.newLiveRecording("acme", Call{CallID: "bench"}))
	live.useMedia(pcmu())
	caller, callee := &voice{hz: 440, ssrc: 1}, &voice{hz: 1000, ssrc: 2}

	packets := make([][2]*rtp.Packet, 50)
	for i := range packets {
		packets[i] = [2]*rtp.Packet{caller.next(), callee.next()}
	}

	second := time.Duration(0)
	for b.Loop() {
		for n, pair := range packets {
			live.setPresent(second + time.Duration(n)*20*time.Millisecond)
			pair[0].Timestamp += 8000
			pair[1].Timestamp += 8000
			live.Received(pair[0])
			live.Sent(pair[1])

			if n%25 == 24 {
				live.flush(live.now() - samples(maxPacketDelay))
			}
		}

		second += time.Second
	}

	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1e7, "%core/call")
	check(b, live.journal.file.Close())
}

// So many recordings as begin at once are written one after the other, and none waits for longer than that.
func TestRecordingsAreWrittenInTurn(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		turn := make(chan struct{}, 1)
		var recordings []*liveRecording
		var ended atomic.Int32

		for i := range 3 {
			live := newLiveRecording(func(context.Context) (*journal, error) {
				return createJournal(filepath.Join(dir, fmt.Sprint(i)), liveRecordingDescription{}, nil,
					envelope.Params{})
			}, turn, slog.New(slog.DiscardHandler))
			live.useMedia(pcmu())
			recordings = append(recordings, live)

			go func() {
				check(t, live.run())
				ended.Add(1)
			}()
		}

		turn <- struct{}{} // somebody writes
		time.Sleep(3 * writeInterval)
		synctest.Wait()

		for _, live := range recordings {
			if live.writtenSamples != 0 {
				t.Errorf("%d samples are written out of turn", live.writtenSamples)
			}
			live.stop()
		}

		<-turn
		synctest.Wait()
		if n := ended.Load(); n != 3 {
			t.Errorf("%d of 3 are written", n)
		}

		for _, live := range recordings {
			if live.writtenSamples < samples(3*writeInterval) {
				t.Errorf("%d samples are written", live.writtenSamples)
			}
			check(t, live.journal.file.Close())
		}
	})
}
