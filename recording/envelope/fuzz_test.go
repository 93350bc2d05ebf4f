package envelope

import (
	"bytes"
	"io"
	"testing"
)

// Reading arbitrary bytes as a header ends without a panic and within the header's
// bound, and an accepted header is written back byte for byte.
func FuzzInspect(f *testing.F) {
	for _, suite := range suites {
		f.Add(sealAudio(f, []byte("audio"), testParams(suite)))
	}

	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, data []byte) {
		src := bytes.NewReader(data)
		h, err := Inspect(src)
		read := len(data) - src.Len()
		if read > MaxHeader {
			t.Fatalf("read %d bytes of a header", read)
		}
		if err == nil && !bytes.Equal(h.encode(), data[:read]) {
			t.Fatal("an accepted header is not what it was read from")
		}
	})
}

// If a part of a recording is replaced by arbitrary bytes, only sealed audio is
// released, and only the original recording is opened to its end.
func FuzzOpen(f *testing.F) {
	audio := randomAudio(2*ChunkSize + 1000)
	var whole [2][]byte
	for i, suite := range suites {
		whole[i] = sealAudio(f, audio, testParams(suite))
	}

	f.Add(false, uint32(0), uint32(0), []byte{})
	f.Add(true, uint32(400), uint32(1), []byte{1})
	f.Add(false, uint32(ChunkSize), uint32(100), bytes.Repeat([]byte{7}, 200))

	f.Fuzz(func(t *testing.T, cbc bool, at, drop uint32, insert []byte) {
		good := whole[0]
		if cbc {
			good = whole[1]
		}

		from := int(at) % (len(good) + 1)
		to := min(from+int(drop%(3*ChunkSize)), len(good))
		bad := append(append(bytes.Clone(good[:from]), insert...), good[to:]...)

		var out bytes.Buffer
		_, _, err := Open(&out, bytes.NewReader(bad), Expected{}, testRootFinder)
		if !bytes.HasPrefix(audio, out.Bytes()) {
			t.Fatal("released what was never sealed")
		}

		r, seekErr := NewReader(bytes.NewReader(bad), Expected{}, testRootFinder)
		if seekErr == nil {
			_, seekErr = io.Copy(io.Discard, r)
		}
		if same := bytes.Equal(good, bad); same != (err == nil) || same != (seekErr == nil) {
			t.Fatalf("the same bytes: %v; opened as a stream: %v; by place: %v", same, err, seekErr)
		}
	})
}
