package envelope

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

var suites = []Suite{AES256GCM, AES256CBC}

// The lengths at which chunks begin, fill and end.
var lengths = []int{
	0, 1, 15, 16, 17, ChunkSize - 1, ChunkSize, ChunkSize + 1,
	2*ChunkSize - 1, 2 * ChunkSize, 2*ChunkSize + 1, 5*ChunkSize + 12345,
}

func onEachLength(t *testing.T, test func(t *testing.T, suite Suite, audio []byte)) {
	for _, suite := range suites {
		for _, n := range lengths {
			t.Run(fmt.Sprintf("%v/%d", suite, n), func(t *testing.T) { test(t, suite, randomAudio(n)) })
		}
	}
}

func TestOpenReturnsWhatWasSealed(t *testing.T) {
	onEachLength(t, func(t *testing.T, suite Suite, audio []byte) {
		whole := sealAudio(t, audio, testParams(suite))
		if len(audio) > 15 && bytes.Contains(whole, audio[:16]) {
			t.Error("audio lies in the sealed recording in plain")
		}

		var got bytes.Buffer
		// One byte at a time: how the bytes arrive must not matter.
		src := io.Reader(bytes.NewReader(whole))

		if len(whole) < 3*ChunkSize {
			src = iotest.OneByteReader(src)
		}

		h, size, err := Open(&got, src, Expected{AccountID: "acme", RecordingID: "call-7.leg_b"}, testRootFinder)
		if err != nil {
			t.Fatal(err)
		}

		if !bytes.Equal(got.Bytes(), audio) || size != int64(len(audio)) {
			t.Errorf("opened %d bytes, said %d, want %d", got.Len(), size, len(audio))
		}
		if h.Suite != suite || h.ContentType != "audio/x-wav" || !h.Created.Equal(testCreated) ||
			h.KeyID != "key_auto_acme" || h.KeyVersion != 3 || h.Iterations != Iterations {
			t.Errorf("header %+v", h)
		}
	})
}

func TestHowItIsWrittenDoesNotChangeTheChunks(t *testing.T) {
	onEachLength(t, func(t *testing.T, suite Suite, audio []byte) {
		want := len(sealAudio(t, audio, testParams(suite)))
		for name, write := range map[string]func(*Writer) error{
			"at once": func(w *Writer) error { _, err := w.Write(audio); return err },
			"in odd pieces": func(w *Writer) error {
				for rest := audio; len(rest) > 0; {
					n := min(len(rest), 1+rand.IntN(ChunkSize+5000))
					if _, err := w.Write(rest[:n]); err != nil {
						return err
					}
					rest = rest[n:]
				}

				return nil
			},
			"half written, half read": func(w *Writer) error {
				half := len(audio) / 2
				if _, err := w.Write(audio[:half]); err != nil {
					return err
				}
				_, err := w.ReadFrom(iotest.HalfReader(bytes.NewReader(audio[half:])))
				return err
			},
		} {
			var out, back bytes.Buffer
			w, err := NewWriter(&out, testParams(suite))
			if err != nil {
				t.Fatal(err)
			}

			if err := errors.Join(write(w), w.Close()); err != nil {
				t.Fatal(err)
			}
			if out.Len() != want {
				t.Errorf("%s: %d bytes sealed, want %d", name, out.Len(), want)
			}
			if _, _, err := Open(&back, &out, Expected{}, testRootFinder); err != nil ||
				!bytes.Equal(back.Bytes(), audio) {
				t.Errorf("%s: came back differently: %v", name, err)
			}
			if _, err := w.Write([]byte("more")); err == nil {
				t.Errorf("%s: written after Close", name)
			}
		}
	})
}

func TestReaderPlaysAnyPart(t *testing.T) {
	onEachLength(t, func(t *testing.T, suite Suite, audio []byte) {
		r, err := NewReader(bytes.NewReader(sealAudio(t, audio, testParams(suite))), Expected{}, testRootFinder)
		if err != nil {
			t.Fatal(err)
		}

		if r.Size() != int64(len(audio)) {
			t.Fatalf("size %d, want %d", r.Size(), len(audio))
		}
		if err := iotest.TestReader(r, audio); err != nil {
			t.Fatal(err)
		}

		for range 50 {
			from := rand.IntN(len(audio) + 1)
			to := from + rand.IntN(len(audio)-from+1)
			if _, err := r.Seek(int64(from), io.SeekStart); err != nil {
				t.Fatal(err)
			}

			got := make([]byte, to-from)
			if _, err := io.ReadFull(r, got); err != nil || !bytes.Equal(got, audio[from:to]) {
				t.Fatalf("bytes %d-%d: %v", from, to, err)
			}
		}

		from := rand.IntN(len(audio) + 1)
		var rest bytes.Buffer
		if _, err := r.Seek(int64(from), io.SeekStart); err != nil {
			t.Fatal(err)
		}
		if n, err := r.WriteTo(&rest); err != nil || n != int64(len(audio)-from) ||
			!bytes.Equal(rest.Bytes(), audio[from:]) {
			t.Fatalf("from %d to the end: %d bytes, %v", from, n, err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Seek(0, io.SeekStart); err != nil {
			t.Fatal(err)
		}

		if n, err := r.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Errorf("read after Close: %v", err)
		}
	})
}

func TestSealRefusesWhatAHeaderCannotHold(t *testing.T) {
	for name, change := range map[string]func(*Params){
		"no account":              func(p *Params) { p.AccountID = "" },
		"a path as account":       func(p *Params) { p.AccountID = "../x" },
		"a long account":          func(p *Params) { p.AccountID = strings.Repeat("a", 65) },
		"no recording":            func(p *Params) { p.RecordingID = "" },
		"a hidden file":           func(p *Params) { p.RecordingID = ".rec" },
		"a long recording":        func(p *Params) { p.RecordingID = strings.Repeat("a", 129) },
		"a line in content type":  func(p *Params) { p.ContentType = "audio/wav\r\nX: y" },
		"a long content type":     func(p *Params) { p.ContentType = strings.Repeat("a", 128) },
		"no suite":                func(p *Params) { p.Suite = 0 },
		"version 0":               func(p *Params) { p.Key.Version = 0 },
		"no key id":               func(p *Params) { p.Key.ID = "" },
		"no root":                 func(p *Params) { p.Key.Root = nil },
		"a time before all calls": func(p *Params) { p.Created = time.Time{} },
	} {
		p := testParams(AES256GCM)
		change(&p)
		var out bytes.Buffer
		if _, _, err := Seal(&out, strings.NewReader("audio"), p); !errors.Is(err, ErrParams) {
			t.Errorf("%s: %v", name, err)
		}
		if out.Len() != 0 {
			t.Errorf("%s: %d bytes written", name, out.Len())
		}
	}
}

func TestSealStopsAtTheFirstError(t *testing.T) {
	broken := errors.New("broken")
	for _, after := range []int{0, 100, ChunkSize, 3 * ChunkSize} {
		src := io.MultiReader(bytes.NewReader(randomAudio(after)), iotest.ErrReader(broken))
		var out bytes.Buffer
		if _, _, err := Seal(&out, src, testParams(AES256GCM)); !errors.Is(err, broken) {
			t.Errorf("source broken after %d: %v", after, err)
		}
		if _, _, err := Open(io.Discard, &out, Expected{}, testRootFinder); !errors.Is(err, ErrTruncated) {
			t.Errorf("what was written before the break: %v", err)
		}
	}

	_, _, err := Seal(&fullDisk{room: 2 * ChunkSize, err: broken}, bytes.NewReader(randomAudio(9*ChunkSize)),
		testParams(AES256CBC))
	if !errors.Is(err, broken) {
		t.Errorf("full disk: %v", err)
	}
}

type fullDisk struct {
	room int
	err  error
}

func (d *fullDisk) Write(p []byte) (int, error) {
	d.room -= len(p)
	if d.room < 0 {
		return 0, d.err
	}
	return len(p), nil
}

// The memory of a stream does not depend on its length: the goal is 1 MB.
func TestMemoryIsConstant(t *testing.T) {
	const long = 200 << 20
	for _, suite := range suites {
		pr, pw := io.Pipe()
		go func() {
			_, _, err := Seal(pw, io.LimitReader(zeros{}, long), testParams(suite))
			pw.CloseWithError(err)
		}()

		var before, after runtime.MemStats
		testRoot()
		runtime.ReadMemStats(&before)
		_, size, err := Open(io.Discard, pr, Expected{}, testRootFinder)
		runtime.ReadMemStats(&after)
		if err != nil || size != long {
			t.Fatalf("%v: %d bytes, %v", suite, size, err)
		}

		// Everything both ends ever allocate; CBC makes two small ciphers per
		// chunk, which do not stay.
		limit := uint64(1 << 20)
		if suite == AES256CBC {
			limit += long / ChunkSize * 2048
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > limit {
			t.Errorf("%v: %d bytes were allocated for %d", suite, used, long)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
