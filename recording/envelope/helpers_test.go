package envelope

import (
	"bytes"
	"iter"
	"sync"
	"testing"
	"time"
)

// The account's key material of most tests and of the test vectors.
const (
	testKey  = "correct horse battery staple, twice"
	testSalt = "c2FsdCBmb3IgdGhlIHRlc3Q="
)

// testRoot stretches once per process.
var testRoot = sync.OnceValue(func() Root {
	r, err := NewRoot(testKey, testSalt, Iterations)
	if err != nil {
		panic(err) // a test's set-up
	}
	return *r
})

func testRootFinder(*Header) (*Root, error) {
	r := testRoot()
	return &r, nil
}

var testCreated = time.UnixMilli(1_795_000_000_123).UTC()

func testParams(suite Suite) Params {
	root := testRoot()
	return Params{
		Suite: suite, AccountID: "acme", RecordingID: "call-7.leg_b", ContentType: "audio/x-wav",
		Created: testCreated, Key: Key{ID: "key_auto_acme", Version: 3, Root: &root},
	}
}

// randomAudio is n bytes that differ everywhere, so that swapped chunks show.
func randomAudio(n int) []byte {
	out := make([]byte, n)
	x := uint32(n) + 2463534242
	for i := range out {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		out[i] = byte(x)
	}
	return out
}

func sealAudio(t testing.TB, audio []byte, p Params) []byte {
	t.Helper()
	var out bytes.Buffer
	_, size, err := Seal(&out, bytes.NewReader(audio), p)
	if err != nil {
		t.Fatal(err)
	}

	if size != int64(len(audio)) {
		t.Fatalf("sealed %d bytes of %d", size, len(audio))
	}

	return out.Bytes()
}

func chunksOf(b []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for len(b) > 0 {
			n := min(len(b), ChunkSize)
			if !yield(b[:n]) {
				return
			}
			b = b[n:]
		}
	}
}

func testHeader(t testing.TB, whole []byte) *Header {
	t.Helper()
	h, err := Inspect(bytes.NewReader(whole))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func chunkOverhead(t testing.TB, suite Suite) int {
	t.Helper()
	c, err := suite.newCipher(new([keySize]byte))
	if err != nil {
		t.Fatal(err)
	}
	return c.overhead()
}
