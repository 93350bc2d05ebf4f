package srtp_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"trunkline/telephony/srtp"
)

func packet(sequence uint16, ssrc uint32, payload string) []byte {
	b := make([]byte, 12, 200)
	b[0], b[1] = 0x80, 0
	binary.BigEndian.PutUint16(b[2:], sequence)
	binary.BigEndian.PutUint32(b[4:], uint32(sequence)*160)
	binary.BigEndian.PutUint32(b[8:], ssrc)
	return append(b, payload...)
}

func pair(t testing.TB, suite srtp.Suite) (*srtp.Sender, *srtp.Receiver) {
	t.Helper()
	key := srtp.NewKey(suite)
	sender, err := srtp.NewSender(key)
	if err != nil {
		t.Fatal(err)
	}

	receiver, err := srtp.NewReceiver(key)
	if err != nil {
		t.Fatal(err)
	}

	return sender, receiver
}

func protect(t *testing.T, s *srtp.Sender, plain []byte) []byte {
	t.Helper()
	protected, err := s.Protect(bytes.Clone(plain))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Clone(protected)
}

func TestPacketsPassAndForgedOrReplayedOnesDoNot(t *testing.T) {
	for _, suite := range srtp.Suites() {
		t.Run(string(suite), func(t *testing.T) {
			s, r := pair(t, suite)
			for i := range 70_000 { // past the end of the sequence numbers
				plain := packet(uint16(i+30_000), 7, fmt.Sprint("frame ", i))
				protected := protect(t, s, plain)
				if bytes.Contains(protected, []byte("frame")) || len(protected) > len(plain)+srtp.Overhead {
					t.Fatalf("packet %d is %x", i, protected)
				}

				again := bytes.Clone(protected)
				got, err := r.Unprotect(protected)
				if err != nil || !bytes.Equal(got, plain) {
					t.Fatalf("packet %d: %q, %v", i, got, err)
				}

				if i%10_000 == 0 {
					if _, err := r.Unprotect(again); err == nil {
						t.Fatalf("packet %d is accepted twice", i)
					}
				}
			}

			forged := protect(t, s, packet(40_000, 7, "forged"))

			forged[len(forged)-1] ^= 1
			other, _ := pair(t, suite)
			for name, b := range map[string][]byte{
				"a changed tag": forged, "another key": protect(t, other, packet(41_000, 7, "x")),
				"plain RTP": packet(42_000, 7, "plain"),
				"a header":  packet(43_000, 7, ""), "nothing": {},
			} {
				if _, err := r.Unprotect(b); err == nil {
					t.Errorf("%s is accepted", name)
				}
			}
		})
	}
}

func TestAPeersSourcesAreBounded(t *testing.T) {
	s, r := pair(t, srtp.AES128CM)
	accepted := 0
	for ssrc := range uint32(1000) {
		if _, err := r.Unprotect(protect(t, s, packet(1, ssrc, "x"))); err == nil {
			accepted++
		}
	}

	if accepted != 16 {
		t.Errorf("%d sources are accepted", accepted)
	}
	if _, err := r.Unprotect(protect(t, s, packet(2, 3, "x"))); err != nil {
		t.Errorf("a known source is refused: %v", err)
	}
}

// FuzzUnprotect: no datagram is accepted, or ends the process.
func FuzzUnprotect(f *testing.F) {
	_, r := pair(f, srtp.AES128CM)
	f.Add(packet(1, 2, "hello"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := r.Unprotect(b); err == nil {
			t.Error("accepted")
		}
	})
}

func BenchmarkProtect(b *testing.B) {
	for _, suite := range srtp.Suites() {
		b.Run(string(suite), func(b *testing.B) {
			s, r := pair(b, suite)
			plain, sequence := packet(0, 7, strings.Repeat("x", 160)), uint16(0)
			b.ReportAllocs()

			for b.Loop() {
				sequence++
				binary.BigEndian.PutUint16(plain[2:], sequence)
				protected, err := s.Protect(plain)
				if err != nil {
					b.Fatal(err)
				}

				if _, err := r.Unprotect(protected); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
