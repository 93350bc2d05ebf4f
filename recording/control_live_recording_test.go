package recording

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"trunkline/audit"
	"trunkline/config/callrecording"
	"trunkline/internal/fault"
	"trunkline/internal/redisclient"
	"trunkline/telephony/localcall"
	"trunkline/telephony/rtp"
)

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

// The pause keys count when one channel presses all of them in a row.
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
