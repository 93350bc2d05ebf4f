package aisession

import (
	"context"
	"encoding/binary"
	"math"
	"sync"
	"time"

	"github.com/google/uuid"

	"trunkline/config/aiprovider"
	"trunkline/internal/aiprotocol"
	"trunkline/internal/fault"
	"trunkline/telephony/audio"
)

const (
	testToneHz        = 440.0 // Hz
	testToneAmplitude = 9000
	testToneDuration  = time.Second
	testHangupDelay   = 500 * time.Millisecond // after the tone, for what the provider still sends
)

// TestProvider opens a session, sends a tone of one second and returns a report. The error is set only for
// failures on our side; failures of the provider are in the report.
func (s *Service) TestProvider(ctx context.Context, p aiprovider.Provider) (aiprovider.TestReport, error) {
	call := &testCall{events: []string{}}
	begun := time.Now()
	session, err := s.openSession(ctx, Request{
		Provider: p, Ingress: IngressTest, Call: aiprotocol.Call{CallID: "test-" + uuid.NewString()},
		Format: testToneFormat,
	}, call)
	if err != nil {
		switch f := fault.As(err); {
		// An error without a cause came before the provider was dialled.
		case ctx.Err() != nil, f.Kind == fault.KindLimited, f.Kind == fault.KindInternal, f.Cause == nil:
			return aiprovider.TestReport{}, err
		default:
			return aiprovider.TestReport{Events: call.eventNames(), Error: f.Message}, nil
		}
	}

	connected := time.Since(begun)
	call.session = session
	firstConnection := session.connection.Load()
	toneCtx, stop := context.WithCancel(ctx)
	defer stop()

	var toneSender sync.WaitGroup
	toneSender.Go(func() { call.sendTone(toneCtx) })
	ending := session.Run(ctx, call)
	stop()
	toneSender.Wait()

	report := aiprovider.TestReport{
		OK: ending.Reason == CallerHungUp, ConnectMS: float64(connected.Microseconds()) / 1000,
		Events: call.eventNames(),
	}

	cause := firstConnection.endError()
	if cause != nil {
		report.OK, report.Error = false, administratorMessage(cause)
	} else if !report.OK {
		report.Error = "the provider ended the session"
	}

	return report, nil
}

var testToneFormat = audio.Format{Encoding: audio.PCM16, Rate: 8000}

// testCall is a call that sends a tone and then hangs up.
type testCall struct {
	session *Session

	mu                     sync.Mutex
	events                 []string         // names, in the order in which they were sent and received
	lastSent, lastReceived aiprotocol.Event // the last message in each direction
}

// record records a message in the report. Consecutive media messages of one direction are recorded once.
func (p *testCall) record(event aiprotocol.Event, last *aiprotocol.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if event != aiprotocol.EventMedia || *last != event {
		p.events = append(p.events, string(event))
	}
	*last = event
}

func (p *testCall) eventNames() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string{}, p.events...)
}

func (p *testCall) sendTone(ctx context.Context) {
	ticker := time.NewTicker(audio.FrameDuration)
	defer ticker.Stop()

	samples := audio.FrameSamples(testToneFormat.Rate)
	frame := make([]byte, 0, testToneFormat.FrameBytes())
	for sent := 0; sent < int(testToneDuration/audio.FrameDuration)*samples; sent += samples {
		frame = frame[:0]
		for i := range samples {
			v := testToneAmplitude * math.Sin(2*math.Pi*testToneHz*float64(sent+i)/float64(testToneFormat.Rate))
			frame = binary.LittleEndian.AppendUint16(frame, uint16(int16(v)))
		}

		p.session.ReceiveAudio(uint32(sent), frame)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}

	timer := time.NewTimer(testHangupDelay)
	defer timer.Stop()

	select {
	case <-ctx.Done():
	case <-timer.C:
		p.session.CallEnded(aiprotocol.NormalClearing)
	}
}

// Play implements Call and discards the frame.
func (p *testCall) Play([]byte) {}

// SendDTMF implements Call.
func (p *testCall) SendDTMF(context.Context, byte, time.Duration) error { return nil }

// Transfer implements Call and refuses.
func (p *testCall) Transfer(context.Context, string) error {
	return fault.New(fault.KindUnsupported, "a test cannot be transferred")
}

// Release implements Call.
func (p *testCall) Release(Ending) {}
