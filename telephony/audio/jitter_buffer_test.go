package audio

import (
	"bytes"
	"slices"
	"testing"
)

var ulawFormat = Format{ULaw, 8000}

// frame returns 20 ms of mu-law whose bytes are all n.
func frame(n int) []byte { return bytes.Repeat([]byte{byte(n)}, 160) }

// played plays a jitter buffer and returns the number of each frame's packet, 0 for a frame of nothing.
func played(j *JitterBuffer, frames int) (numbers []int) {
	for range frames {
		payload, missing := j.Next(nil, 160)
		switch {
		case missing > 0:
			numbers = append(numbers, 0)
		default:
			numbers = append(numbers, int(payload[0]))
		}
	}

	return numbers
}

// equal fails the test unless the frames of played are those wanted.
func equal(t *testing.T, what string, got, want []int) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("%s: got %v, want %v", what, got, want)
		}
	}
}

// putPackets gives the packets of these numbers, each 20 ms after the one before.
func putPackets(j *JitterBuffer, numbers ...int) {
	for _, n := range numbers {
		j.Put(uint32(n)*160, frame(n))
	}
}

func TestPacketsComeOutInTheOrderOfTheirTimestamps(t *testing.T) {
	j := NewJitterBuffer(ulawFormat, true)
	putPackets(j, 1, 3, 2, 2, 4)
	equal(t, "played", played(j, 4), []int{1, 2, 3, 4})
	if s := j.Stats(); s.Repeated != 1 || s.Packets != 4 {
		t.Errorf("stats %+v", s)
	}
}

func TestAHoleInTheTimestampsIsAsLongAsItWas(t *testing.T) {
	j := NewJitterBuffer(ulawFormat, true)
	putPackets(j, 1, 4)
	equal(t, "played", played(j, 4), []int{1, 0, 0, 4})

	// A sender sends no audio during DTMF: its clock continues.
	equal(t, "quiet", played(j, 10), make([]int, 10))
	putPackets(j, 15, 16)
	equal(t, "after", played(j, 3), []int{15, 16, 0})

	if s := j.Stats(); s.Late != 0 || s.Lost != 13*160 {
		t.Errorf("stats %+v", s)
	}
}

func TestALatePacketIsDroppedWhenWhatFollowedWasPlayed(t *testing.T) {
	j := NewJitterBuffer(ulawFormat, true)
	putPackets(j, 1, 3)
	equal(t, "played", played(j, 3), []int{1, 0, 3})
	putPackets(j, 2)
	equal(t, "late", played(j, 1), []int{0})
	if s := j.Stats(); s.Late != 1 {
		t.Errorf("stats %+v", s)
	}
}

func TestALatePacketMakesRoomForTheJitterSeen(t *testing.T) {
	j := NewJitterBuffer(ulawFormat, true)
	putPackets(j, 1)
	equal(t, "before", played(j, 3), []int{1, 0, 0})
	putPackets(j, 2, 3, 4) // two ticks late, and what followed in time
	equal(t, "after", played(j, 4), []int{2, 3, 4, 0})
	if s := j.Stats(); s.Late != 0 {
		t.Errorf("stats %+v", s)
	}
}

func TestDelayThatIsNotNeededGoesAway(t *testing.T) {
	j := NewJitterBuffer(ulawFormat, true)
	putPackets(j, 1, 2, 3) // all more than needed
	n := 3

	for range 300 {
		n++
		j.Put(uint32(n)*160, frame(n%250+1))
		played(j, 1)
	}

	j.Put(uint32(n+1)*160, frame(99))
	equal(t, "played", played(j, 1), []int{99})
	if s := j.Stats(); s.Skipped != 480 || s.Lost != 0 {
		t.Errorf("stats %+v", s)
	}
}

// TestARecogniserHearsAllThatCame: the network stalls for most of a second, and brings all of it then. A
// conversation leaves out the beginning, and then more to be in time again.
func TestARecogniserHearsAllThatCame(t *testing.T) {
	for name, test := range map[string]struct {
		buffer   *JitterBuffer
		complete bool
	}{
		"conversation": {NewJitterBuffer(ulawFormat, true), false},
		"recogniser":   {NewPatientJitterBuffer(ulawFormat, true), true},
	} {
		t.Run(name, func(t *testing.T) {
			const stall, all = 45, 240
			var heard []int
			hear := func(frames int) {
				for _, n := range played(test.buffer, frames) {
					if n != 0 {
						heard = append(heard, n)
					}
				}
			}

			putPackets(test.buffer, 1)
			hear(1 + stall)
			for n := 2; n <= 2+stall; n++ {
				putPackets(test.buffer, n)
			}
			for n := 3 + stall; n <= all; n++ {
				hear(1)
				putPackets(test.buffer, n)
			}
			hear(2 * stall)

			if complete := len(heard) == all; complete != test.complete || !slices.IsSorted(heard) {
				t.Errorf("heard %d of %d frames, %+v", len(heard), all, test.buffer.Stats())
			}
		})
	}
}

// TestARecogniserIsBehindUpToItsPatience: it takes no packet that is later, and a pause of the sender ends the delay.
func TestARecogniserIsBehindUpToItsPatience(t *testing.T) {
	j := NewPatientJitterBuffer(ulawFormat, true)
	putPackets(j, 1)
	played(j, 60)
	putPackets(j, 2, 20, 21)
	equal(t, "played", played(j, 3), []int{20, 21, 0})
	if s := j.Stats(); s.Late != 1 {
		t.Errorf("stats %+v", s)
	}

	played(j, 50)
	putPackets(j, 114)
	equal(t, "played after a pause", played(j, 1), []int{114})
}

func TestASendersNewClockIsTaken(t *testing.T) {
	for name, jump := range map[string]uint32{"ahead": 1 << 30, "back": 1 << 31,
		"back a little": 0xffffffff - 8000*10} {
		t.Run(name, func(t *testing.T) {
			j := NewJitterBuffer(ulawFormat, true)
			putPackets(j, 1, 2)
			played(j, 2)
			heard := 0

			for i := range uint32(20) {
				j.Put(jump+i*160, frame(7))
				if played(j, 1)[0] == 7 {
					heard++
				}
			}

			if heard < 8 {
				t.Errorf("heard %d of 20 frames", heard)
			}
		})
	}
}

func TestTimestampsMayWrap(t *testing.T) {
	j := NewJitterBuffer(ulawFormat, true)
	first := uint32(0xffffffff - 159)
	j.Put(first, frame(1))
	j.Put(first+160, frame(2))
	equal(t, "played", played(j, 2), []int{1, 2})
}

func TestAStreamWithoutAClockContinuesWhereItStopped(t *testing.T) {
	j := NewJitterBuffer(ulawFormat, false)
	putPackets(j, 1)
	equal(t, "stalled", played(j, 4), []int{1, 0, 0, 0})
	putPackets(j, 2, 3)
	equal(t, "after", played(j, 3), []int{2, 3, 0})
}

func TestTheBufferIsBounded(t *testing.T) {
	j := NewJitterBuffer(ulawFormat, true)
	for n := range 10 * maxPackets {
		j.Put(uint32(n)*160, frame(n%250+1))
	}

	if s := j.Stats(); s.Overrun != 9*maxPackets || len(j.queue) != maxPackets {
		t.Errorf("stats %+v, %d packets wait", s, len(j.queue))
	}
	if got := played(j, 1)[0]; got != (9*maxPackets)%250+1 {
		t.Errorf("the oldest went: played %d", got)
	}
}

func TestNothingIsAllocatedForAPacket(t *testing.T) {
	j := NewJitterBuffer(ulawFormat, true)

	into, n := make([]byte, 0, 320), uint32(0)
	payload := frame(5)
	run := func() {
		j.Put(n*160, payload)
		n++
		into, _ = j.Next(into[:0], 160)
	}

	run()
	if got := testing.AllocsPerRun(200, run); got != 0 {
		t.Errorf("%g allocations a packet", got)
	}
}

// FuzzJitter takes any timestamps and sizes.
func FuzzJitter(f *testing.F) {
	f.Add([]byte{0, 0, 0, 160, 0, 1, 64, 160})
	f.Fuzz(func(t *testing.T, in []byte) {
		j := NewJitterBuffer(ulawFormat, len(in)%2 == 0)
		for i := 0; i+4 <= len(in); i += 4 {
			j.Put(uint32(in[i])<<24|uint32(in[i+1])<<16|uint32(in[i+2])*16, make([]byte, int(in[i+3])))
			if in[i]%3 == 0 {
				payload, missing := j.Next(nil, 160)
				if len(payload) == 0 && (missing < 1 || missing > 160) {
					t.Fatalf("neither audio nor a hole: %d", missing)
				}
			}

			if len(j.queue) > maxPackets {
				t.Fatal("too many wait")
			}

			for k := 1; k < len(j.queue); k++ {
				if timestampDiff(j.queue[k].timestamp, j.queue[k-1].timestamp) < j.queue[k-1].samples {
					t.Fatal("packets overlap or are out of order")
				}
			}
		}
	})
}

func TestSkippingBecomesRareWherePacketsThenAreLate(t *testing.T) {
	j := NewJitterBuffer(ulawFormat, true)
	n := 0
	for range 3000 { // each second one packet comes 30 ms late, with two behind it
		n++
		if phase := n % 50; phase != 0 && phase != 1 {
			putPackets(j, n)
		} else if phase == 1 {
			putPackets(j, n-1, n)
		}

		played(j, 1)
	}

	if s := j.Stats(); s.Skipped > 6*160 || s.Late > 6 {
		t.Errorf("stats %+v", s)
	}
}
