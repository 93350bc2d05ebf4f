package aisession

import "testing"

func TestTheSendQueueDropsTheOldestAudioAndNothingElse(t *testing.T) {
	q := &sendQueue{}
	put := func(name byte, audio bool) int {
		return q.enqueue(frame{buffer: append(q.getBuffer()[:0], name), isAudio: audio})
	}
	put('s', false)

	for i := range maxAudioFrames + 10 {
		want := 0
		if i >= maxAudioFrames {
			want = 1
		}
		if got := put(byte(i), true); got != want {
			t.Fatalf("frame %d: %d dropped", i, got)
		}
	}

	for range maxControlFrames - 1 {
		put('d', false)
	}

	if put('d', false) != 1 {
		t.Error("messages without end wait")
	}

	q.enqueue(frame{buffer: []byte{'c'}, isClose: true})
	if put('x', true) != 1 {
		t.Error("something comes after the last")
	}

	var got []byte
	for f, waiting := q.pop(); waiting; f, waiting = q.pop() {
		got = append(got, f.bytes()...)
	}

	if got[0] != 's' || got[1] != 10 || got[maxAudioFrames] != maxAudioFrames+9 || got[len(got)-1] != 'c' {
		t.Errorf("in order: %v … %v", got[:3], got[len(got)-3:])
	}
}
