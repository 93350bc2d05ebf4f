package rtp_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	pion "github.com/pion/rtp"

	"trunkline/internal/fault"
	"trunkline/telephony/rtp"
)

// numberedFrames supplies frames that begin with their number.
type numberedFrames struct {
	mu sync.Mutex
	n  byte
}

// Next is rtp.Source's: every tenth frame is silence.
func (f *numberedFrames) Next(buffer []byte) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n++
	if f.n%10 == 0 {
		return 0
	}
	return copy(buffer, []byte{f.n, 1, 2})
}

func TestStreamKeepsItsPace(t *testing.T) {
	phone, _, port, _ := twoPhones(t, 25220)
	stream := rtp.NewStream(port, rtp.Format{PayloadType: 8, Clock: 8000, Frame: 20 * time.Millisecond})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	start := time.Now()
	running.Go(func() { stream.Run(ctx, &numberedFrames{}) })
	var heard []pion.Packet

	for range 15 {
		heard = append(heard, phone.hear())
	}

	passed := time.Since(start)
	cancel()

	running.Wait()
	if passed < 290*time.Millisecond {
		t.Errorf("15 frames and one of silence took %v", passed)
	}

	for i, p := range heard[1:] {
		before := heard[i]
		step, marker := uint32(160), false
		if p.Payload[0] == 11 {
			step, marker = 320, true
		}
		if surplus := p.Timestamp - before.Timestamp - step; surplus%160 == 0 && surplus < 160*50*60 && surplus > 0 {
			step, marker = step+surplus, true // a slow machine missed frames
		}
		if p.SequenceNumber != before.SequenceNumber+1 || p.Timestamp != before.Timestamp+step || p.Marker != marker ||
			p.SSRC != before.SSRC {
			t.Errorf("%v came after %v", p, before)
		}
	}
}

// timed records the time of each frame that it supplies; all are silence.
type timed []time.Duration

// Next is rtp.Source's.
func (s *timed) Next([]byte) int {
	*s = append(*s, time.Duration(time.Now().UnixNano()))
	return 0
}

func TestStreamTakesFramesAtTheirDeadlines(t *testing.T) {
	port := open(t, newPorts(t, 25230, 25234))
	synctest.Test(t, func(t *testing.T) {
		stream := rtp.NewStream(port, rtp.Format{PayloadType: 8, Clock: 8000, Frame: 20 * time.Millisecond})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second-1)
		defer cancel()

		var source timed
		stream.Run(ctx, &source)
		if len(source) != 500 {
			t.Fatalf("%d frames in 10 s", len(source))
		}

		for i := range source[1:] {
			if gap := source[i+1] - source[i]; gap != 20*time.Millisecond {
				t.Errorf("frame %d came %v after the one before", i+1, gap)
			}
		}
	})
}

func TestPressIsOnePress(t *testing.T) {
	phone, _, port, _ := twoPhones(t, 25240)
	stream := rtp.NewStream(port,
		rtp.Format{PayloadType: 0, Clock: 8000, Frame: 20 * time.Millisecond, TelephoneEventType: 101})
	if err := stream.Send([]byte("before")); err != nil {
		t.Fatal(err)
	}

	before := phone.hear()
	if err := stream.SendDTMF(t.Context(), '#', 70*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if err := stream.Send([]byte("after")); err != nil {
		t.Fatal(err)
	}

	receiver := rtp.DTMFReceiver{Clock: 8000}
	var presses []rtp.DTMF
	packets := 0

	for p := phone.hear(); p.PayloadType == 101; p = phone.hear() {
		packets++
		if p.Timestamp != before.Timestamp+160 {
			t.Errorf("an event's timestamp is %d after audio at %d", p.Timestamp, before.Timestamp)
		}
		if press, ok := receiver.HandleEvent(&rtp.Packet{Timestamp: p.Timestamp, Payload: p.Payload}, time.Now()); ok {
			presses = append(presses, press)
		}
	}

	if want := []rtp.DTMF{{Digit: '#', Duration: 70 * time.Millisecond}}; !slices.Equal(presses, want) || packets != 6 {
		t.Errorf("%d packets made %v, want %v of 6", packets, presses, want)
	}
	if err := stream.SendDTMF(t.Context(), 'x', time.Second); fault.KindOf(err) != fault.KindUnsupported {
		t.Errorf("pressing an invalid key: %v", err)
	}
}
