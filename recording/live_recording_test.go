package recording

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"log/slog"

	"trunkline/audit"
	"trunkline/config/callrecording"
	"trunkline/config/encryption"
	"trunkline/internal/fault"
	"trunkline/internal/redisclient"
	"trunkline/internal/testservice/testdb"
	"trunkline/recording/envelope"
	"trunkline/telephony/g711"
	"trunkline/telephony/localcall"
	"trunkline/telephony/rtp"
	"trunkline/telephony/sip"
)

// onePolicy is every account's policy.
type onePolicy callrecording.Policy

func (p onePolicy) Policy(context.Context, string) (callrecording.Policy, error) {
	return callrecording.Policy(p), nil
}

func newLiveEnv(t testing.TB, mode callrecording.Mode) (*env, *Recorder) {
	t.Helper()
	h := newEnv(t, Settings{PauseKeys: "*7"}, testdb.SQLite(t))
	h.policies, h.liveDir = onePolicy{Mode: mode}, filepath.Join(t.TempDir(), "takes")
	return h, NewRecorder(h.Service, nil)
}

func pcmu() sip.NegotiatedMedia {
	return sip.NegotiatedMedia{
		Codecs:         []sip.NegotiatedCodec{{Codec: sip.PCMU(), SendType: 0, ReceiveType: 0}},
		TelephoneEvent: sip.NegotiatedCodec{Codec: sip.TelephoneEvent(8000), SendType: 101, ReceiveType: 101},
	}
}

// voice is a tone in packets of 20 ms. Its samples are found again by their bytes.
type voice struct {
	hz        float64
	ssrc      uint32
	timestamp uint32
	n         int
}

func (v *voice) pcm(i int) int16 {
	return g711.ULaw().DecodeSample(g711.ULaw().EncodeSample(int16(8000 * math.Sin(2*math.Pi*v.hz*float64(i)/8000))))
}

func (v *voice) next() *rtp.Packet {
	payload := make([]byte, 160)
	for i := range payload {
		payload[i] = g711.ULaw().EncodeSample(int16(8000 * math.Sin(2*math.Pi*v.hz*float64(v.n*160+i)/8000)))
	}
	packet := &rtp.Packet{Timestamp: v.timestamp + uint32(v.n*160), SSRC: v.ssrc, Payload: payload}
	v.n++
	return packet
}

// loudest returns the loudness of a channel in parts of 20 ms.
func loudness(wav []byte, channel int) (levels []int) {
	data := wav[44:]
	for from := 0; from+160*4 <= len(data); from += 160 * 4 {
		sum := 0
		for i := range 160 {
			sample := int16(binary.LittleEndian.Uint16(data[from+i*4+channel*2:]))
			sum += int(math.Abs(float64(sample)))
		}
		levels = append(levels, sum/160)
	}

	return levels
}

// at moves the clock of a live recording: its present is that long after its start.
func (t *liveRecording) at(d time.Duration) {
	t.mu.Lock()
	t.began = time.Now().Add(-d)
	t.mu.Unlock()
}

// openTake opens the journal of a live recording.
func openTake(t testing.TB, took *liveRecording) *liveRecording {
	t.Helper()
	check(t, took.prepare())
	return took
}

// A call does not wait while its recording's key is derived: what is heard meanwhile is recorded, a
// pause is kept, and the end is the call's.
func TestACallDoesNotWaitForItsRecording(t *testing.T) {
	h, _ := newLiveEnv(t, callrecording.ModeAll)
	took := h.newLiveRecording("acme", Call{CallID: "slow"})
	took.useMedia(pcmu())

	openJournal, opening, derived := took.openJournal, make(chan struct{}), make(chan struct{})
	took.openJournal = func(ctx context.Context) (*journal, error) {
		close(opening)
		<-derived
		return openJournal(ctx)
	}

	ended := make(chan error)
	go func() { ended <- took.run() }()
	<-opening
	caller := &voice{hz: 440, ssrc: 1}

	for n := range 250 { // five seconds
		took.at(time.Duration(n) * 20 * time.Millisecond)
		switch n {
		case 100:
			took.beginPause()
		case 150:
			took.resume()
		}

		took.Received(caller.next())
	}

	took.stop()
	took.at(time.Minute)
	close(derived)
	check(t, <-ended)
	name := took.journal.file.Name()
	check(t, took.journal.file.Close())
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
	live := func() int64 {
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
	takes := make([]*liveRecording, n)
	before := live()

	for i := range takes {
		takes[i] = h.newLiveRecording("acme", Call{CallID: fmt.Sprint("call-", i)})
		takes[i].useMedia(pcmu())
		for at, pair := range packets {
			takes[i].at(time.Duration(at) * 20 * time.Millisecond)
			takes[i].Received(pair[0])
			takes[i].Sent(pair[1])
		}
	}

	if each := (live() - before) / n; each > 256<<10 || each < maxQueuedBytes {
		t.Errorf("%d bytes each while the journal opens", each)
	}

	for _, took := range takes {
		took.flush(openTake(t, took).now() - samples(maxPacketDelay))
	}

	if each := (live() - before) / n; each > 256<<10 {
		t.Errorf("%d bytes each", each)
	}

	for _, took := range takes {
		check(t, took.journal.file.Close())
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

// Both voices stand on one clock: a lost packet is silence of its length, and a pause is silence
// of which nothing is stored.
func TestTwoVoicesStandOnOneClock(t *testing.T) {
	h, _ := newLiveEnv(t, callrecording.ModeAll)
	for _, sealed := range []bool{false, true} {
		h.configure(t, "acme", encryption.Change{Enabled: sealed, Key: new(firstKey)})
		took := openTake(t, h.newLiveRecording("acme", Call{CallID: "call@1"}))
		took.useMedia(pcmu())
		caller, callee := &voice{hz: 440, ssrc: 1, timestamp: 4_294_967_000}, &voice{hz: 1000, ssrc: 2, timestamp: 7}

		for n := range 250 { // five seconds
			at := time.Duration(n) * 20 * time.Millisecond
			took.at(at)
			switch n {
			case 100:
				took.beginPause()
			case 150:
				took.resume()
			}

			if packet := caller.next(); n < 50 || n >= 60 { // 200 ms are lost
				took.Received(packet)
			}
			if packet := callee.next(); n >= 25 { // it begins after half a second
				took.Sent(packet)
			}
			if n%25 == 0 {
				took.flush(took.now() - samples(maxPacketDelay))
			}
		}

		took.at(5 * time.Second)
		took.flush(took.now())
		name := took.journal.file.Name()
		check(t, took.journal.file.Close())

		if raw := must(os.ReadFile(name))(t); sealed == bytes.Contains(raw, toneBytes(440, 0)) {
			t.Errorf("sealed %v: the tone's samples in the journal", sealed)
		}

		check(t, h.storeJournalFile(t.Context(), name))

		id := "call_1"
		if sealed {
			id = "call_1-2"
		}

		wav := must(h.play("acme", id))(t)
		m := must(h.Metadata(t.Context(), "acme", id))(t)
		if m.Encrypted != sealed || m.Channels != 2 || m.DurationMS < 4990 || m.DurationMS > 5100 ||
			len(m.Pauses) != 1 ||
			m.Pauses[0].StartMS < 1990 || m.Pauses[0].EndMS > 3100 || m.ContentType != "audio/wav" ||
			m.CallID != "call@1" {
			t.Errorf("%+v", m)
		}

		for channel, silent := range []func(n int) bool{
			func(n int) bool { return n >= 50 && n < 60 || n >= 100 && n < 150 },
			func(n int) bool { return n < 25 || n >= 100 && n < 150 },
		} {
			for n, level := range loudness(wav, channel) {
				edge := silent(n) != silent(n-1) || silent(n) != silent(n+1) // 20 ms of tolerance
				if !edge && n < 249 && (level == 0) != silent(n) {
					t.Errorf("sealed %v, channel %d, %d ms: level %d", sealed, channel, n*20, level)
				}
			}
		}

		if left := must(os.ReadDir(h.liveDir))(t); len(left) != 0 {
			t.Errorf("left are %v", left)
		}
	}
}

// toneBytes is a piece of a tone as samples of a channel that stands beside silence.
func toneBytes(hz float64, from int) (text []byte) {
	v := voice{hz: hz}
	for i := range 20 {
		text = binary.LittleEndian.AppendUint16(text, uint16(v.pcm(from+i)))
		text = append(text, 0, 0)
	}
	return text
}

// A process that is killed has written all but the last second, readable and authentic.
func TestAKilledProcessKeepsWhatItRecorded(t *testing.T) {
	h, _ := newLiveEnv(t, callrecording.ModeAll)
	h.configure(t, "acme", encryption.Change{Enabled: true, Key: new(firstKey)})
	took := openTake(t, h.newLiveRecording("acme", Call{CallID: "killed"}))
	took.useMedia(pcmu())
	caller := &voice{hz: 440, ssrc: 1}

	for n := range 500 { // ten seconds
		took.at(time.Duration(n) * 20 * time.Millisecond)
		took.Received(caller.next())
		if n%25 == 24 {
			took.flush(took.now() - samples(maxPacketDelay))
		}
	}

	name := took.journal.file.Name()
	check(t, took.journal.file.Close())
	whole := must(os.ReadFile(name))(t)
	check(t, os.WriteFile(name, whole[:len(whole)-5], 0o600)) // the kill cut off a write
	old := time.Now().Add(-time.Minute)
	check(t, os.Chtimes(name, old, old))
	check(t, h.storeAbandoned(t.Context()))
	m := must(h.Metadata(t.Context(), "acme", "killed"))(t)
	if !m.Encrypted || m.DurationMS < 8000 {
		t.Errorf("%+v", m)
	}

	for n, level := range loudness(must(h.play("acme", "killed"))(t), channelCaller) {
		if level == 0 {
			t.Errorf("silence at %d ms", n*20)
		}
	}

	// An altered journal is not stored, and stays.
	altered := bytes.Clone(whole)
	altered[len(altered)/2] ^= 1
	check(t, os.WriteFile(name, altered, 0o600))
	check(t, os.Chtimes(name, old, old))

	if err := h.storeAbandoned(t.Context()); err == nil {
		t.Error("an altered journal is stored")
	}

	checkError(t)(os.Stat(name))
}

// The door: a call of two ports, packets on real sockets, pause by REST and by keys.
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

// A recording is controlled on any node: the one with the call does it.
func TestARecordingIsControlledOnAnyNode(t *testing.T) {
	h, _ := newLiveEnv(t, callrecording.ModeOnDemand)
	server := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()

	nodes := &redisclient.HolderRequests[Control]{Client: client, Channel: "test:controls",
		Log: slog.New(slog.DiscardHandler)}
	asked, holder := NewRecorder(h.Service, nodes), NewRecorder(h.Service, nodes)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()

	for _, r := range []*Recorder{asked, holder} {
		running.Go(func() { check(t, r.Run(ctx)) })
	}

	for server.PubSubNumSub("test:controls")["test:controls"] < 2 {
		time.Sleep(time.Millisecond)
	}

	ports := must(rtp.NewPorts(rtp.Config{Listen: netip.MustParseAddr("127.0.0.1"), MinPort: 24500, MaxPort: 24600},
		prometheus.NewRegistry(), slog.New(slog.DiscardHandler)))(t)
	port := must(ports.Open())(t)
	defer port.Close()

	recording := holder.Record(
		localcall.RecordedCall{AccountID: "acme", CallID: "c1", OriginationCallID: "o1", Port: port})
	recording.Begin(pcmu())
	defer recording.End()

	for _, step := range []struct {
		id, action string
		kind       fault.Kind // "": it is done
	}{{"o1", "start", ""}, {"o1", "start", fault.KindConflict}, {"o1", "pause", ""}, {"c1", "resume", ""},
		{"other", "stop", fault.KindNotFound}, {"o1", "stop", ""}} {
		err := asked.Control(t.Context(), Control{"acme", step.id, step.action})
		if (err == nil) != (step.kind == "") || err != nil && fault.KindOf(err) != step.kind {
			t.Errorf("%s of %s: %v", step.action, step.id, err)
		}
	}

	server.Close()
	if err := asked.Control(t.Context(), Control{"acme", "o1", "start"}); fault.KindOf(err) != fault.KindUnavailable {
		t.Errorf("without Redis: %v", err)
	}
}

func TestKeysPauseTheRecording(t *testing.T) {
	k := keySequence{sequence: "*7"}
	for i, step := range []struct {
		channel int
		digit   byte
		want    bool
	}{{0, '*', false}, {1, '7', false}, {0, '1', false}, {0, '*', false}, {0, '*', false}, {0, '7', true},
		{0, '7', false}, {1, '*', false}, {1, '7', true}} {
		if got := k.press(step.channel, step.digit); got != step.want {
			t.Errorf("step %d: %v", i, got)
		}
	}

	if none := (keySequence{}); none.press(0, '*') {
		t.Error("no keys are set")
	}
}

// A peer whose clock drifts, or that begins anew, stays where it is heard.
func TestAClockFollowsItsPeer(t *testing.T) {
	var c rtpClock
	for n := range int64(10_000) { // 200 s of a clock that is 0.1 % slow
		arrived := n*160 + n*160/1000
		at := c.position(1, uint32(n*160), 8000, arrived)
		if at-arrived > 2*driftLimit || arrived-at > 2*driftLimit {
			t.Fatalf("packet %d: at %d, arrived at %d", n, at, arrived)
		}
	}

	if at := c.position(2, 0, 8000, 5_000_000); at != 5_000_000 {
		t.Errorf("another source: at %d", at)
	}
	if at := c.position(2, 96_000_000, 48000, 5_000_160); at != 5_000_160 {
		t.Errorf("a jump: at %d", at)
	}
	if at := c.position(2, 96_000_960, 48000, 5_000_400); at != 5_000_320 {
		t.Errorf("opus: at %d", at)
	}
}

// BenchmarkRecordedSecond is what a second of a recorded call costs, sealed: 100 packets and two
// writes.
func BenchmarkRecordedSecond(b *testing.B) {
	h, _ := newLiveEnv(b, callrecording.ModeAll)
	checkError(b)(h.config.Update(context.Background(), "acme",
		encryption.Change{Enabled: true, Key: new(firstKey), Salt: new("the salt of all tests")}, ""))
	took := openTake(b, h.newLiveRecording("acme", Call{CallID: "bench"}))
	took.useMedia(pcmu())
	caller, callee := &voice{hz: 440, ssrc: 1}, &voice{hz: 1000, ssrc: 2}

	packets := make([][2]*rtp.Packet, 50)
	for i := range packets {
		packets[i] = [2]*rtp.Packet{caller.next(), callee.next()}
	}

	second := time.Duration(0)
	for b.Loop() {
		for n, pair := range packets {
			took.at(second + time.Duration(n)*20*time.Millisecond)
			pair[0].Timestamp += 8000
			pair[1].Timestamp += 8000
			took.Received(pair[0])
			took.Sent(pair[1])

			if n%25 == 24 {
				took.flush(took.now() - samples(maxPacketDelay))
			}
		}

		second += time.Second
	}

	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1e7, "%core/call")
	check(b, took.journal.file.Close())
}

// Who has used up the entries of a minute neither starts nor pauses a recording.
func TestARecordingIsNotControlledWithoutItsEntry(t *testing.T) {
	_, recorder := newLiveEnv(t, callrecording.ModeOnDemand)
	ports := must(rtp.NewPorts(rtp.Config{Listen: netip.MustParseAddr("127.0.0.1"), MinPort: 24100, MaxPort: 24200},
		prometheus.NewRegistry(), slog.New(slog.DiscardHandler)))(t)
	port := must(ports.Open())(t)
	defer port.Close()

	call := recorder.Record(localcall.RecordedCall{AccountID: "acme", CallID: "c1", Port: port})
	defer call.End()

	call.Begin(pcmu())

	busy := audit.WithCaller(t.Context(), audit.Caller{Actor: "user:busy"})
	log := recorder.service.audit
	for spent := false; !spent; { // the minute may end meanwhile
		for range audit.DefaultSettings().UserEntriesPerMinute {
			_ = log.Record(busy, log.Entry(busy, audit.CallRecord, "acme", "other"))
		}

		err := recorder.Control(busy, Control{"acme", "c1", "start"})
		spent = fault.KindOf(err) == fault.KindLimited
		if !spent {
			check(t, recorder.Control(t.Context(), Control{"acme", "c1", "stop"}))
		}
	}

	if err := recorder.Control(t.Context(), Control{"acme", "c1", "pause"}); fault.KindOf(err) != fault.KindConflict {
		t.Errorf("it was started: %v", err)
	}
}

// With the format opus a recording is stored as Ogg Opus, sealed, of the same length.
func TestARecordingIsStoredAsOpus(t *testing.T) {
	h := newEnv(t, Settings{Format: "opus"}, testdb.SQLite(t))
	h.policies, h.liveDir = onePolicy{Mode: callrecording.ModeAll}, filepath.Join(t.TempDir(), "takes")
	h.configure(t, "acme", encryption.Change{Enabled: true, Key: new(firstKey)})
	took := openTake(t, h.newLiveRecording("acme", Call{CallID: "c1"}))
	took.useMedia(pcmu())
	caller := &voice{hz: 440, ssrc: 1}

	for n := range 250 { // five seconds
		took.at(time.Duration(n) * 20 * time.Millisecond)
		took.Received(caller.next())
	}

	took.flush(8000 * 5)
	check(t, took.journal.file.Close())
	check(t, h.storeJournalFile(t.Context(), took.journal.file.Name()))
	m := must(h.Metadata(t.Context(), "acme", "c1"))(t)
	if m.ContentType != "audio/ogg" || !m.Encrypted || m.DurationMS != 5000 || m.Channels != 2 || m.Size > 5*8000 {
		t.Errorf("%+v", m)
	}
	if audio := must(h.play("acme", "c1"))(t); !bytes.HasPrefix(audio, []byte("OggS")) || int64(len(audio)) != m.Size {
		t.Errorf("%d bytes: %.20q", len(audio), audio)
	}
}

// Before a call is recorded its parties hear the recording that the policy names, and a tone where it cannot be read.
func TestTheAnnouncementOfARecording(t *testing.T) {
	h, recorder := newLiveEnv(t, callrecording.ModeAll)
	h.configure(t, "head", encryption.Change{Enabled: true, Key: new(firstKey)})
	spoken := wavHeader(16000)

	for i := range 16000 {
		spoken = binary.LittleEndian.AppendUint16(spoken, uint16(1000+i%100))
		spoken = binary.LittleEndian.AppendUint16(spoken, uint16(3000+i%100))
	}

	must(h.Store(t.Context(), Upload{AccountID: "head", RecordingID: "greeting", Body: bytes.NewReader(spoken)}))(t)
	heard := func(mode callrecording.Mode, announce bool, id string) []int16 {
		h.policies = onePolicy{Mode: mode, Announce: announce, Announcement: id, PolicyAccount: "head"}
		recording := recorder.Record(localcall.RecordedCall{AccountID: "acme", CallID: "c1"})
		defer recording.End()
		return recording.Announcement()
	}

	pcm := heard(callrecording.ModeAll, true, "greeting")
	if len(pcm) != 16000 || pcm[0] != 2000 || pcm[99] != 2099 {
		t.Errorf("%d samples", len(pcm))
	}

	for _, id := range []string{"", "gone"} {
		if tone := heard(callrecording.ModeAll, true, id); len(tone) != 3200 || tone[0] != 0 || tone[5] < 2000 {
			t.Errorf("%q: %d samples", id, len(tone))
		}
	}

	if heard(callrecording.ModeAll, false, "") != nil || heard(callrecording.ModeOnDemand, true, "greeting") != nil {
		t.Error("an announcement without a recording")
	}

	check(t, recorder.CheckAnnouncement(t.Context(), "head", "greeting"))
	check(t, recorder.KeepAnnouncement(t.Context(), "head", "greeting"))
	if err := h.Delete(t.Context(), "head", "greeting"); fault.KindOf(err) != fault.KindConflict {
		t.Errorf("deleting it: %v", err)
	}

	must(h.Hold(t.Context(), "head", "greeting", "case 7"))(t)
	check(t, recorder.KeepAnnouncement(t.Context(), "head", "greeting"))
	if m := must(h.Metadata(t.Context(), "head", "greeting"))(t); m.Hold == nil || m.Hold.Reason != "case 7" {
		t.Errorf("another hold was changed: %+v", m.Hold)
	}
	if err := recorder.CheckAnnouncement(t.Context(), "acme", "greeting"); fault.KindOf(err) != fault.KindInvalid {
		t.Errorf("of another account: %v", err)
	}
}

// So many recordings as begin at once are written one after the other, and none waits for longer than that.
func TestRecordingsAreWrittenInTurn(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		turn := make(chan struct{}, 1)
		var takes []*liveRecording
		var ended atomic.Int32

		for i := range 3 {
			took := newLiveRecording(func(context.Context) (*journal, error) {
				return createJournal(filepath.Join(dir, fmt.Sprint(i)), liveRecordingDescription{}, nil,
					envelope.Params{})
			}, turn, slog.New(slog.DiscardHandler))
			took.useMedia(pcmu())
			takes = append(takes, took)

			go func() {
				check(t, took.run())
				ended.Add(1)
			}()
		}

		turn <- struct{}{} // somebody writes
		time.Sleep(3 * writeInterval)
		synctest.Wait()

		for _, took := range takes {
			if took.writtenSamples != 0 {
				t.Errorf("%d samples are written out of turn", took.writtenSamples)
			}
			took.stop()
		}

		<-turn
		synctest.Wait()
		if n := ended.Load(); n != 3 {
			t.Errorf("%d of 3 are written", n)
		}

		for _, took := range takes {
			if took.writtenSamples < samples(3*writeInterval) {
				t.Errorf("%d samples are written", took.writtenSamples)
			}
			check(t, took.journal.file.Close())
		}
	})
}

// openCounter counts how often objects are opened; while shut, opening fails.
type openCounter struct {
	Store
	opened atomic.Int32
	shut   atomic.Bool
}

func (o *openCounter) Open(ctx context.Context, name string) (io.ReadSeekCloser, error) {
	o.opened.Add(1)
	if o.shut.Load() {
		return nil, errors.New("the store is away")
	}
	return o.Store.Open(ctx, name)
}

// An announcement is read while the first call rings, and once for all calls, until another recording has its name.
func TestAnAnnouncementIsReadOnce(t *testing.T) {
	h, recorder := newLiveEnv(t, callrecording.ModeAll)
	h.configure(t, "head", encryption.Change{Enabled: true, Key: new(firstKey)})
	h.policies = onePolicy{Mode: callrecording.ModeAll, Announce: true, Announcement: "greeting", PolicyAccount: "head"}
	store := &openCounter{Store: h.Service.objects.store}
	h.Service.objects.store = store

	speak := func(level uint16) {
		spoken := wavHeader(8000)
		for range 16000 {
			spoken = binary.LittleEndian.AppendUint16(spoken, level)
		}
		must(h.Store(t.Context(), Upload{AccountID: "head", RecordingID: "greeting", Body: bytes.NewReader(spoken)}))(t)
	}

	heard := func() int16 {
		recording := recorder.Record(localcall.RecordedCall{AccountID: "acme", CallID: "c1"})
		defer recording.End()
		return recording.Announcement()[0]
	}

	speak(1000)
	store.shut.Store(true)
	if heard() != 0 {
		t.Error("no tone while the store is away")
	}

	store.shut.Store(false)

	store.opened.Store(0)
	for range 20 { // they ring at once
		recorder.PrepareRecording("acme")
	}

	recorder.storing.Wait()
	store.shut.Store(true)
	for range 3 {
		if level := heard(); level != 1000 {
			t.Errorf("heard %d", level)
		}
	}

	if n := store.opened.Load(); n != 1 {
		t.Errorf("opened %d times", n)
	}

	store.shut.Store(false)
	check(t, h.Delete(t.Context(), "head", "greeting"))
	if heard() != 0 {
		t.Error("a deleted announcement is heard")
	}

	speak(2000)
	if level := heard(); level != 2000 {
		t.Errorf("heard %d", level)
	}

	for i := range maxAnnouncements + 5 {
		recorder.announcements.find("head", fmt.Sprint(i), func() ([]int16, error) { return nil, nil })
	}

	if n := len(recorder.announcements.kept); n != maxAnnouncements {
		t.Errorf("%d announcements are kept", n)
	}
}
