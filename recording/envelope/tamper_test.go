package envelope

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
)

// wantRefused opens a bad recording both ways, checks that each returns one of the expected
// errors, and that the released audio is an authentic beginning that ends before the
// refused chunk.
func wantRefused(t *testing.T, name string, bad, audio []byte, want ...error) {
	t.Helper()
	is := func(err error) bool {
		return slices.ContainsFunc(want, func(w error) bool { return errors.Is(err, w) })
	}
	var out bytes.Buffer
	_, _, err := Open(&out, bytes.NewReader(bad), Expected{}, testRootFinder)
	if !is(err) {
		t.Errorf("%s: stream: %v, want %v", name, err, want)
	}

	wantReleased(t, name, out.Bytes(), audio, err)

	out.Reset()
	r, err := NewReader(bytes.NewReader(bad), Expected{}, testRootFinder)
	if err == nil {
		_, err = r.WriteTo(&out)
	}
	if !is(err) {
		t.Errorf("%s: reader: %v, want %v", name, err, want)
	}

	wantReleased(t, name, out.Bytes(), audio, err)
}

func wantReleased(t *testing.T, name string, got, audio []byte, err error) {
	t.Helper()
	limit := 0
	var chunk *ChunkError
	if errors.As(err, &chunk) {
		limit = int(chunk.Index) * ChunkSize
	}
	if len(got) > limit || !bytes.HasPrefix(audio, got) {
		t.Errorf("%s: released %d bytes, at most %d were proven", name, len(got), limit)
	}
}

func TestEveryTruncationIsRefused(t *testing.T) {
	for _, suite := range suites {
		for _, n := range []int{0, 100, ChunkSize, 2*ChunkSize + 100} {
			audio := randomAudio(n)
			whole := sealAudio(t, audio, testParams(suite))
			head := int(testHeader(t, whole).Len())
			full := ChunkSize + chunkOverhead(t, suite)

			for cut := range whole {
				inner := (cut - head) % full
				if cut > head+100 && inner > 70 && inner < full-70 && cut < len(whole)-70 {
					continue // the middle of a chunk is like its neighbours
				}
				wantRefused(t, fmt.Sprintf("%v, %d bytes cut to %d of %d", suite, n, cut, len(whole)),
					whole[:cut], audio, ErrFormat, ErrTruncated, ErrAltered)
			}
		}
	}
}

func TestLostChunksAreToldFromAlteredOnes(t *testing.T) {
	for _, suite := range suites {
		audio := randomAudio(3 * ChunkSize)
		whole := sealAudio(t, audio, testParams(suite))
		head, full := int(testHeader(t, whole).Len()), ChunkSize+chunkOverhead(t, suite)
		chunk := func(i int) []byte { return whole[head+i*full : head+(i+1)*full] }

		wantRefused(t, "last chunk lost", whole[:head+2*full], audio, ErrTruncated)
		wantRefused(t, "all chunks lost", whole[:head], audio, ErrTruncated)
		wantRefused(t, "a chunk repeated at the end", slices.Concat(whole, chunk(2)), audio, ErrTrailing, ErrAltered)
		wantRefused(t, "a byte appended", append(slices.Clone(whole), 0), audio, ErrTrailing, ErrTruncated)
		wantRefused(t, "two chunks swapped", slices.Concat(whole[:head], chunk(1), chunk(0), chunk(2)), audio,
			ErrAltered)
		wantRefused(t, "a chunk left out", slices.Concat(whole[:head], chunk(0), chunk(2)), audio, ErrAltered)
		wantRefused(t, "the first chunk left out", slices.Concat(whole[:head], chunk(1), chunk(2)), audio, ErrAltered)
	}
}

func TestEveryFlippedBitOfTheHeaderIsRefused(t *testing.T) {
	for _, suite := range suites {
		audio := randomAudio(1000)
		whole := sealAudio(t, audio, testParams(suite))

		head := int(testHeader(t, whole).Len())
		for bit := range head * 8 {
			bad := slices.Clone(whole)
			bad[bit/8] ^= 1 << (bit % 8)
			wantRefused(t, fmt.Sprintf("%v, bit %d", suite, bit), bad, audio, ErrFormat, ErrVersion, ErrHeader,
				ErrTruncated)

			// The same with a corrected checksum.
			corrected := fixChecksum(bad, head)
			if bit >= (head-digestSize)*8 {
				continue
			}

			wantRefused(t, fmt.Sprintf("%v, bit %d, checksum corrected", suite, bit), corrected, audio,
				ErrFormat, ErrVersion, ErrHeader, ErrTruncated, ErrSalt, ErrKey)
		}
	}
}

func fixChecksum(whole []byte, head int) []byte {
	sum := sha256.Sum256(whole[:head-digestSize])
	return slices.Concat(whole[:head-digestSize], sum[:], whole[head:])
}

func TestEveryFlippedBitOfAChunkIsRefused(t *testing.T) {
	for _, suite := range suites {
		audio := randomAudio(300)
		whole := sealAudio(t, audio, testParams(suite))
		for bit := int(testHeader(t, whole).Len()) * 8; bit < len(whole)*8; bit++ {
			bad := slices.Clone(whole)
			bad[bit/8] ^= 1 << (bit % 8)
			wantRefused(t, fmt.Sprintf("%v, bit %d", suite, bit), bad, audio, ErrAltered)
		}
	}
}

func TestAnAlteredChunkLeavesTheOthersPlayable(t *testing.T) {
	for _, suite := range suites {
		audio := randomAudio(3*ChunkSize + 50)
		whole := sealAudio(t, audio, testParams(suite))
		head, full := int(testHeader(t, whole).Len()), ChunkSize+chunkOverhead(t, suite)
		whole[head+full+777] ^= 1
		wantRefused(t, "chunk 1", whole, audio, ErrAltered)

		r, err := NewReader(bytes.NewReader(whole), Expected{}, testRootFinder)
		if err != nil {
			t.Fatal(err)
		}

		if _, err := r.Seek(2*ChunkSize, io.SeekStart); err != nil {
			t.Fatal(err)
		}

		rest, err := io.ReadAll(r)
		if err != nil || !bytes.Equal(rest, audio[2*ChunkSize:]) {
			t.Errorf("%v: chunks after the altered one: %v", suite, err)
		}

		if _, err := r.Seek(ChunkSize+5, io.SeekStart); err != nil {
			t.Fatal(err)
		}

		n, err := r.Read(make([]byte, 10))
		var bad *ChunkError
		if n != 0 || !errors.As(err, &bad) || bad.Index != 1 {
			t.Errorf("%v: the altered chunk: %d bytes, %v", suite, n, err)
		}
	}
}

func TestSplicesAreRefused(t *testing.T) {
	for _, suite := range suites {
		audio := randomAudio(2*ChunkSize + 9)
		params := testParams(suite)
		one, two := sealAudio(t, audio, params), sealAudio(t, audio, params)
		params.RecordingID = "call-8.leg_b"
		three := sealAudio(t, audio, params)
		head, full := int(testHeader(t, one).Len()), ChunkSize+chunkOverhead(t, suite)
		core := coreFixedSize + len("acme") + len("call-7.leg_b") + len("audio/x-wav")

		wantRefused(t, "the body of a twin", slices.Concat(one[:head], two[head:]), audio, ErrAltered)
		wantRefused(t, "a chunk of a twin", slices.Concat(one[:head+full], two[head+full:]), audio, ErrAltered)
		wantRefused(t, "the body of another", slices.Concat(one[:head], three[head:]), audio, ErrAltered)
		wantRefused(t, "the core of another", fixChecksum(slices.Concat(three[:core], one[core:]), head), audio, ErrKey)
		wantRefused(t, "the key block of another",
			fixChecksum(slices.Concat(one[:core], three[core:head], one[head:]), head), audio, ErrKey)
	}
}

func TestTheSuiteCannotBeDowngraded(t *testing.T) {
	whole := sealAudio(t, randomAudio(500), testParams(AES256GCM))
	whole[len(magic)+1] = byte(AES256CBC)
	wantRefused(t, "suite changed",
		fixChecksum(whole, int(testHeader(t, sealAudio(t, nil, testParams(AES256GCM))).Len())), nil, ErrKey)
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	whole := sealAudio(t, []byte("audio"), testParams(AES256GCM))
	otherKey, err := NewRoot(testKey+"x", testSalt, Iterations)
	if err != nil {
		t.Fatal(err)
	}

	otherSalt, err := NewRoot(testKey, testSalt+"x", Iterations)
	if err != nil {
		t.Fatal(err)
	}

	gone := errors.New("no such key version")
	rootOf := func(r *Root) RootFinder {
		return func(*Header) (*Root, error) { c := *r; return &c, nil }
	}
	for _, c := range []struct {
		name   string
		want   Expected
		rootOf RootFinder
		err    error
	}{
		{"another account", Expected{AccountID: "other"}, testRootFinder, ErrAccount},
		{"another recording", Expected{RecordingID: "call-8"}, testRootFinder, ErrRecording},
		{"another key", Expected{}, rootOf(otherKey), ErrKey},
		{"another salt", Expected{}, rootOf(otherSalt), ErrSalt},
		{"no key", Expected{}, func(*Header) (*Root, error) { return nil, gone }, gone},
		{"other iterations", Expected{}, rootOf(&Root{iterations: Iterations + 1}), ErrKey},
	} {
		var out bytes.Buffer
		if _, _, err := Open(&out, bytes.NewReader(whole), c.want, c.rootOf); !errors.Is(err, c.err) || out.Len() > 0 {
			t.Errorf("%s: %v", c.name, err)
		}
		if _, err := NewReader(bytes.NewReader(whole), c.want, c.rootOf); !errors.Is(err, c.err) {
			t.Errorf("%s: reader: %v", c.name, err)
		}
	}
}
