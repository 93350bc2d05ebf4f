package aisession

import "testing"

func TestTheOutboxDropsTheOldestAudioAndNothingElse(t *testing.T) {
	o := newOutbox()
	put := func(name byte, audio bool) int {
		return o.put(frame{memory: append(o.begin()[:0], name), audio: audio})
	}
	put('s', false)
	for i := range maxMedia + 10 {
		want := 0
		if i >= maxMedia {
			want = 1
		}
		if got := put(byte(i), true); got != want {
			t.Fatalf("frame %d: %d dropped", i, got)
		}
	}
	for range maxOther - 1 {
		put('d', false)
	}
	if put('d', false) != 1 {
		t.Error("messages without end wait")
	}
	o.put(frame{memory: []byte{'c'}, last: true})
	if put('x', true) != 1 {
		t.Error("something comes after the last")
	}
	var got []byte
	for f, waiting := o.next(); waiting; f, waiting = o.next() {
		got = append(got, f.bytes()...)
	}
	if got[0] != 's' || got[1] != 10 || got[maxMedia] != maxMedia+9 || got[len(got)-1] != 'c' {
		t.Errorf("in order: %v … %v", got[:3], got[len(got)-3:])
	}
}
