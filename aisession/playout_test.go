package aisession

import (
	"bytes"
	"testing"
	"time"

	"trunkline/telephony/audio"
)

var pcm = audio.Format{Encoding: audio.PCM16, Rate: 24000}

// rising returns n bytes that rise by one from from on.
func rising(n, from int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(from + i)
	}
	return b
}

// playAll takes frames until nothing comes for two turns.
func playAll(p *playout, now *time.Time, want int) (all []byte, frames int) {
	for idle := 0; idle < 4; {
		*now = now.Add(20 * time.Millisecond)
		piece, _ := p.takeAudio(nil, want, *now)
		if len(piece) == 0 {
			idle++
			continue
		}

		idle = 0
		all = append(all, piece...)
		frames++
	}

	return all, frames
}

func TestPiecesOfAnySizeBecomeFrames(t *testing.T) {
	for _, size := range []int{1, 7, 959, 960, 961, 5000} {
		p, now := newPlayout(pcm, Settings{PlayoutLimit: time.Minute, PlayoutLead: 40 * time.Millisecond}), time.Now()
		want := rising(48000, 0)
		for rest := want; len(rest) > 0; rest = rest[min(size, len(rest)):] {
			p.putAudio(rest[:min(size, len(rest))], now)
		}

		got, frames := playAll(p, &now, 480)
		if !bytes.Equal(got, want) || frames != 50 {
			t.Errorf("pieces of %d bytes: %d bytes in %d frames", size, len(got), frames)
		}
	}
}

// TestAudioThatDoesNotFitIsCutAtASample: what comes after it would be off by a byte, which is noise.
func TestAudioThatDoesNotFitIsCutAtASample(t *testing.T) {
	p, now := newPlayout(pcm, Settings{PlayoutLimit: 20 * time.Millisecond}), time.Now()
	stream := rising(3*960, 0) // the second byte of each sample is odd
	for rest := stream[:2*960]; len(rest) > 0; rest = rest[min(7, len(rest)):] {
		p.putAudio(rest[:min(7, len(rest))], now)
	}

	before, _ := playAll(p, &now, 480)
	p.putAudio(stream[2*960:], now)
	after, _ := playAll(p, &now, 480)
	if !bytes.Equal(before, stream[:960]) || !bytes.Equal(after, stream[2*960:]) {
		t.Errorf("%d bytes, and then %d from %v", len(before), len(after), after[:min(4, len(after))])
	}
}

func TestTheEndOfAnUtteranceIsPlayedThoughItIsNoFrame(t *testing.T) {
	p, now := newPlayout(pcm, Settings{PlayoutLimit: time.Minute}), time.Now()
	p.putAudio(rising(1001, 0), now) // a frame, 20 samples, and half of one
	got, _ := playAll(p, &now, 480)
	if len(got) != 1000 {
		t.Errorf("%d bytes were played", len(got))
	}

	p.putAudio(rising(959, 1001&0xff), now) // the other half and the rest of a frame
	got, _ = playAll(p, &now, 480)
	if len(got) != 960 || got[0] != byte(1000&0xff) {
		t.Errorf("%d bytes were played, the first %d", len(got), got[0])
	}
}

func TestTheLeadIsWaitedForButNotLongerThanItself(t *testing.T) {
	lead := 60 * time.Millisecond
	p, begun := newPlayout(pcm, Settings{PlayoutLimit: time.Minute, PlayoutLead: lead}), time.Now()
	p.putAudio(rising(960, 0), begun)

	if piece, _ := p.takeAudio(nil, 480, begun.Add(20*time.Millisecond)); len(piece) != 0 {
		t.Error("played before the lead was there")
	}
	if piece, seen := p.takeAudio(nil, 480, begun.Add(lead)); len(piece) != 960 || !seen.started || seen.afterGap ||
		!seen.ended {
		t.Errorf("%d bytes, %+v", len(piece), seen)
	}

	p.putAudio(rising(4800, 0), begun.Add(lead+20*time.Millisecond))
	if piece, seen := p.takeAudio(nil, 480, begun.Add(lead+40*time.Millisecond)); len(piece) != 960 || !seen.afterGap {
		t.Errorf("a hole: %d bytes, %+v", len(piece), seen)
	}
}

func TestMoreThanTheLimitIsDropped(t *testing.T) {
	for _, format := range []audio.Format{pcm, {Encoding: audio.ULaw, Rate: 8000}} {
		p, now := newPlayout(format, Settings{PlayoutLimit: time.Second}), time.Now()
		whole := format.FrameBytes() * 50
		if dropped := p.putAudio(make([]byte, whole*3), now); dropped != 2*time.Second {
			t.Errorf("%v: %v were dropped", format, dropped)
		}
		if dropped := p.putAudio(make([]byte, format.FrameBytes()), now); dropped != audio.FrameDuration {
			t.Errorf("%v: %v of a frame were dropped", format, dropped)
		}
	}
}

func TestMarksAndClears(t *testing.T) {
	p, now := newPlayout(pcm, Settings{PlayoutLimit: time.Minute}), time.Now()
	p.addMark("at once", nil)
	if m, _, ok := p.nextMark(); !ok || m.Name != "at once" || m.Played != 0 {
		t.Errorf("%+v, %v", m, ok)
	}

	p.putAudio(rising(96000, 0), now) // 2 s
	p.addMark("later", nil)
	for range 50 {
		now = now.Add(20 * time.Millisecond)
		p.takeAudio(nil, 480, now)
	}

	if m, _, ok := p.nextMark(); ok {
		t.Errorf("too early: %+v", m)
	}
	if c := p.clear(); c.Played != time.Second || c.Dropped != time.Second {
		t.Errorf("%+v", c)
	}
	if m, _, ok := p.nextMark(); !ok || m.Name != "later" || m.Played != time.Second {
		t.Errorf("%+v, %v", m, ok)
	}

	p.putAudio(rising(48000, 0), now)
	playAll(p, &now, 480)
	if c := p.clear(); c.Played != 2*time.Second || c.Dropped != 0 {
		t.Errorf("%+v", c)
	}

	for range maxMarks {
		p.addMark("x", nil)
	}

	if p.addMark("y", nil) {
		t.Error("marks without end are kept")
	}
}

func TestAnHourOfAudioLeavesNoMemoryBehind(t *testing.T) {
	p, now := newPlayout(pcm, Settings{PlayoutLimit: 5 * time.Minute}), time.Now()
	p.putAudio(make([]byte, 48000*60), now)
	playAll(p, &now, 480)

	if cap(p.bytes) > maxKeptBytes {
		t.Errorf("%d bytes are kept", cap(p.bytes))
	}

	for range 1000 { // a stream that is never quite empty
		p.putAudio(make([]byte, 960), now)
		now = now.Add(20 * time.Millisecond)
		p.takeAudio(nil, 400, now)
	}

	if p.head > 2*maxKeptBytes+len(p.bytes)-p.head {
		t.Errorf("%d of %d bytes are over", p.head, len(p.bytes))
	}
}

// FuzzPlayout: received audio is played once, in order.
func FuzzPlayout(f *testing.F) {
	f.Add([]byte{10, 0, 255, 1, 0, 0, 3})
	f.Fuzz(func(t *testing.T, steps []byte) {
		p, now := newPlayout(pcm, Settings{PlayoutLimit: 100 * time.Millisecond}), time.Now()
		var in, out []byte
		for _, step := range steps {
			now = now.Add(20 * time.Millisecond)
			if step%3 == 0 {
				piece, _ := p.takeAudio(nil, 480, now)
				if len(piece) > 960 || len(piece)%2 != 0 {
					t.Fatalf("a frame of %d bytes", len(piece))
				}
				out = append(out, piece...)
				continue
			}

			piece := rising(int(step)*9, len(in))
			room := 4800 - (len(in) - len(out)) // what fits; half samples make no difference
			p.putAudio(piece, now)

			if len(piece) > room {
				return // what was dropped is another test's
			}

			in = append(in, piece...)
		}

		if !bytes.HasPrefix(in, out) {
			t.Fatal("the played audio is not the received audio")
		}
	})
}
