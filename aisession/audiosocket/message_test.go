package audiosocket

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

func TestMessagesComeOutAsTheyWentIn(t *testing.T) {
	wire := appendMessage(nil, kindUUID, make([]byte, 16))
	wire = appendMessage(wire, kindDTMF, []byte("5"))
	wire = appendMessage(wire, kindSlin8, bytes.Repeat([]byte{1, 2}, 160))
	wire = appendMessage(wire, kindHangup, nil)
	r := &reader{input: iotest.OneByteReader(bytes.NewReader(wire))}

	for _, want := range []struct {
		kind   byte
		length int
	}{{kindUUID, 16}, {kindDTMF, 1}, {kindSlin8, 320}, {kindHangup, 0}} {
		m, err := r.next()
		if err != nil || m.kind != want.kind || len(m.payload) != want.length {
			t.Fatalf("got kind %#x of %d bytes, %v", m.kind, len(m.payload), err)
		}
	}

	if _, err := r.next(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

func TestAMessageCutShort(t *testing.T) {
	whole := appendMessage(nil, kindSlin8, make([]byte, 320))
	for _, n := range []int{1, 2, 3, 100, len(whole) - 1} {
		r := &reader{input: bytes.NewReader(whole[:n])}
		if _, err := r.next(); err == nil {
			t.Errorf("%d bytes of %d were taken for a message", n, len(whole))
		}
	}
}

func FuzzReader(f *testing.F) {
	f.Add(appendMessage(appendMessage(nil, kindUUID, make([]byte, 16)), kindSlin8, make([]byte, 320)))
	f.Add([]byte{0x10, 0xff, 0xff, 0})
	f.Fuzz(func(t *testing.T, wire []byte) {
		r := &reader{input: bytes.NewReader(wire)}
		var again []byte
		for {
			m, err := r.next()
			if err != nil {
				break
			}
			again = appendMessage(again, m.kind, m.payload)
		}

		if !bytes.HasPrefix(wire, again) {
			t.Error("the message read is not the message written")
		}
	})
}
