package load

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"trunkline/internal/wsframe"
)

// transcript returns a receiver's results for bytes received in pieces.
func transcript(wire []byte, piece func(left int) int) (said []string, err error) {
	r := receiver{clock: NewClock(), resume: ResumeByID, stamps: newStampReader(testRun)}
	r.reply = func(_ *subscriber, frame []byte) error {
		said = append(said, fmt.Sprintf("answer %x", frame[0]))
		return nil
	}

	c := &subscriber{group: &Group{Streams: 2}, checks: make([]sequence, 2)}
	for len(wire) > 0 && err == nil {
		n := min(max(piece(len(wire)), 1), len(wire))
		b := append(bytes.Clone(c.partial), wire[:n]...)
		wire = wire[n:]
		var rest []byte
		rest, _, err = r.receive(c, b)
		c.keepPartial(rest)
	}

	t := &r.tally
	return append(said, fmt.Sprintf("%d events, %d bytes, %d lost, %d late, %d again, %d foreign, proven %v, since %s",
		t.Deliveries, t.Bytes, t.Lost, t.Disordered, t.Duplicated, t.Foreign, c.gotProbe, c.resumeFrom)), err
}

func sameText(a, b error) bool {
	return (a == nil) == (b == nil) && (a == nil || a.Error() == b.Error())
}

func conversation() (wire []byte) {
	for seq := uint64(0); seq < 5; seq++ {
		wire = append(wire, text(message(int(seq)+1, Stamp{Stream: int(seq % 2), Seq: seq / 2}))...)
	}

	half := []byte(message(9, Stamp{Stream: 1, Seq: 2}))
	wire = append(wire, serverFrame(wsframe.Text, false, half[:20])...)
	wire = append(wire, serverFrame(wsframe.Ping, true, []byte("now"))...)
	wire = append(wire, serverFrame(wsframe.Continuation, false, half[20:90])...)
	wire = append(wire, serverFrame(wsframe.Continuation, true, half[90:])...)
	wire = append(wire, text(`{"hello":"`+strings.Repeat("x", 70_000)+`"}`)...)
	wire = append(wire, serverFrame(wsframe.Pong, true, nil)...)

	return append(wire, serverFrame(wsframe.Close, true, websocket.FormatCloseMessage(1012, "bye"))...)
}

func TestFramesMaySplitAnywhere(t *testing.T) {
	wire := conversation()
	want, wantErr := transcript(wire, func(left int) int { return left })
	if got := want[len(want)-1]; got != "4 events, "+fmt.Sprint(4*len(message(1, Stamp{})))+
		" bytes, 0 lost, 0 late, 0 again, 1 foreign, proven true, since cc_evt_0000000000000000009" || wantErr == nil {
		t.Errorf("whole: %q, %v", want, wantErr)
	}

	for at := range 1500 { // more bytes than all headers

		got, err := transcript(wire, func(left int) int {
			if left == len(wire) {
				return at
			}
			return left
		})
		if fmt.Sprint(got) != fmt.Sprint(want) || !sameText(err, wantErr) {
			t.Fatalf("split at %d: %q, %v", at, got, err)
		}
	}

	if got, err := transcript(wire, func(int) int { return 1 }); fmt.Sprint(got) != fmt.Sprint(want) ||
		!sameText(err, wantErr) {
		t.Errorf("byte by byte: %q, %v", got, err)
	}
}

// FuzzReceive checks that the results do not depend on how the bytes are divided.
func FuzzReceive(f *testing.F) {
	f.Add(conversation()[:1200], byte(3))
	f.Add(text(`{"cursor":"x"}`), byte(0))
	f.Add([]byte{0x01, 0, 0x80, 0}, byte(1))

	f.Fuzz(func(t *testing.T, wire []byte, step byte) {
		whole, err1 := transcript(wire, func(left int) int { return left })
		cut, err2 := transcript(wire, func(int) int { return int(step) + 1 })
		if fmt.Sprint(whole) != fmt.Sprint(cut) || !sameText(err1, err2) {
			t.Fatalf("whole %q %v, cut %q %v", whole, err1, cut, err2)
		}
	})
}

func BenchmarkReceive(b *testing.B) {
	r := receiver{clock: NewClock(), resume: ResumeByID, stamps: newStampReader(testRun)}
	c := &subscriber{group: &Group{Streams: 1}, checks: make([]sequence, 1)}
	padding := string(bytes.Repeat([]byte("x"), 900))
	var wire []byte

	const frames = 32
	for range frames {
		wire = append(wire, text(message(1, Stamp{Seq: 1})+padding)...)
	}

	b.SetBytes(int64(len(wire)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := r.receive(c, wire); err != nil {
			b.Fatal(err)
		}
	}

	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/frames, "ns/event")
}
