package recording

import (
	"bytes"
	"encoding/binary"
	"os"
	"testing"
	"time"

	"trunkline/config/callrecording"
	"trunkline/config/encryption"
)

// Both voices stand on one clock: a lost packet is silence of its length, and a pause is silence
// of which nothing is stored.
func TestTwoVoicesStandOnOneClock(t *testing.T) {
	h, _ := newLiveEnv(t, callrecording.ModeAll)
	for _, sealed := range []bool{false, true} {
		h.configure(t, "acme", encryption.Change{Enabled: sealed, Key: new(firstKey)})
		live := openLive(t, h.newLiveRecording("acme", Call{CallID: "call@1"}))
		live.useMedia(pcmu())
		caller, callee := &voice{hz: 440, ssrc: 1, timestamp: 4_294_967_000}, &voice{hz: 1000, ssrc: 2, timestamp: 7}

		for n := range 250 { // five seconds
			at := time.Duration(n) * 20 * time.Millisecond
			live.setPresent(at)
			switch n {
			case 100:
				live.beginPause()
			case 150:
				live.resume()
			}

			if packet := caller.next(); n < 50 || n >= 60 { // 200 ms are lost
				live.Received(packet)
			}
			if packet := callee.next(); n >= 25 { // it begins after half a second
				live.Sent(packet)
			}
			if n%25 == 0 {
				live.flush(live.now() - samples(maxPacketDelay))
			}
		}

		live.setPresent(5 * time.Second)
		live.flush(live.now())
		name := live.journal.file.Name()
		check(t, live.journal.file.Close())

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
