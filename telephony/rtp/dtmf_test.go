package rtp

import (
	"encoding/binary"
	"slices"
	"testing"
	"time"
)

// event is a telephone-event packet.
type event struct {
	at        time.Duration // since the start
	timestamp uint32
	digit     byte // its number; nothing: no packet comes, only time passes
	end       bool
	duration  uint16 // ticks at 8 kHz
}

const nothing = 255

func TestDTMFReceiver(t *testing.T) {
	const ms = time.Millisecond
	cases := map[string]struct {
		events []event
		want   []DTMF
	}{
		"a press with its end three times": {
			[]event{{0, 100, 5, false, 160}, {20 * ms, 100, 5, false, 320}, {40 * ms, 100, 5, true, 480},
				{40 * ms, 100, 5, true, 480}, {40 * ms, 100, 5, true, 480}},
			[]DTMF{{'5', 60 * ms}},
		},
		"its beginning lost": {
			[]event{{40 * ms, 100, 11, true, 480}, {40 * ms, 100, 11, true, 480}}, []DTMF{{'#', 60 * ms}},
		},
		"its end lost": {
			[]event{{0, 100, 10, false, 160}, {20 * ms, 100, 10, false, 320}, {100 * ms, 0, nothing, false, 0},
				{141 * ms, 0, nothing, false, 0}, {161 * ms, 0, nothing, false, 0}},
			[]DTMF{{'*', 40 * ms}},
		},
		"its end lost and another key": {
			[]event{{0, 100, 1, false, 320}, {60 * ms, 900, 2, false, 160}, {80 * ms, 900, 2, true, 320}},
			[]DTMF{{'1', 40 * ms}, {'2', 40 * ms}},
		},
		"the same key twice": {
			[]event{{0, 100, 1, true, 160}, {60 * ms, 900, 1, true, 240}}, []DTMF{{'1', 20 * ms}, {'1', 30 * ms}},
		},
		"a late packet of the press before": {
			[]event{{0, 100, 1, true, 160}, {60 * ms, 900, 2, false, 160}, {61 * ms, 100, 1, true, 160},
				{80 * ms, 900, 2, true, 320}}, []DTMF{{'1', 20 * ms}, {'2', 40 * ms}},
		},
		"packets out of order": {
			[]event{{0, 100, 1, false, 320}, {20 * ms, 100, 1, false, 160}, {40 * ms, 100, 1, true, 480}},
			[]DTMF{{'1', 60 * ms}},
		},
		"a press of ten seconds, in segments": {
			[]event{{0, 100, 1, false, 0xFFFF}, {8200 * ms, 100 + 0xFFFF, 1, false, 160},
				{10 * time.Second, 100 + 0xFFFF, 1, true, 14465}},
			[]DTMF{{'1', 10 * time.Second}},
		},
		"an end right after a lost end": {
			[]event{{0, 100, 1, false, 320}, {60 * ms, 900, 2, true, 160}, {181 * ms, 0, nothing, false, 0}},
			[]DTMF{{'1', 40 * ms}, {'2', 20 * ms}},
		},
		"what is no key": {
			[]event{{0, 100, 16, true, 320}, {0, 200, 200, true, 320}}, nil,
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			receiver := DTMFReceiver{Clock: 8000}
			start := time.Now()
			var got []DTMF

			for _, e := range c.events {
				if e.digit == nothing {
					if p, ok := receiver.CheckTimeout(start.Add(e.at)); ok {
						got = append(got, p)
					}
					continue
				}

				payload := []byte{e.digit, 10, 0, 0}
				if e.end {
					payload[1] |= 0x80
				}

				binary.BigEndian.PutUint16(payload[2:], e.duration)
				packet := &Packet{Timestamp: e.timestamp, Payload: payload}
				if p, ok := receiver.HandleEvent(packet, start.Add(e.at)); ok {
					got = append(got, p)
				}
			}

			if !slices.Equal(got, c.want) {
				t.Errorf("presses %v, want %v", got, c.want)
			}
		})
	}
}

func FuzzDTMFReceiver(f *testing.F) {
	f.Add(uint32(100), []byte{5, 0x8A, 0, 160}, uint32(900), []byte{5, 10, 0, 160})
	f.Fuzz(func(t *testing.T, at1 uint32, payload1 []byte, at2 uint32, payload2 []byte) {
		receiver := DTMFReceiver{Clock: 8000}
		now := time.Now()
		presses := 0

		for range 3 { // repetitions are one press
			for _, p := range []Packet{{Timestamp: at1, Payload: payload1}, {Timestamp: at2, Payload: payload2}} {
				if press, ok := receiver.HandleEvent(&p, now); ok {
					presses++
					if press.Duration < 0 || !slices.Contains([]byte(digits), press.Digit) {
						t.Errorf("a press of %+v", press)
					}
				}
			}
		}

		if _, ok := receiver.CheckTimeout(now.Add(time.Second)); ok {
			presses++
		}
		if presses > 2 {
			t.Errorf("%d presses of two keys", presses)
		}
	})
}
