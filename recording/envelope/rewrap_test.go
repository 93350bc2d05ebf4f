package envelope

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

func TestRewrapMovesARecordingToAnotherKey(t *testing.T) {
	next, err := NewRoot("the next key, also long enough to pass", testSalt, Iterations)
	if err != nil {
		t.Fatal(err)
	}

	nextOf := func(*Header) (*Root, error) { c := *next; return &c, nil }
	for _, suite := range suites {
		audio := randomAudio(ChunkSize + 99)
		before := sealAudio(t, audio, testParams(suite))
		var after bytes.Buffer
		old := testHeader(t, before)
		h, err := Rewrap(&after, bytes.NewReader(before), Expected{AccountID: "acme"}, testRootFinder,
			Key{"key_auto_acme", 4, next})
		if err != nil {
			t.Fatal(err)
		}

		if h.KeyVersion != 4 || h.Salt == old.Salt {
			t.Errorf("version %d, or the own salt stayed", h.KeyVersion)
		}
		if !bytes.Equal(after.Bytes()[h.Len():], before[old.Len():]) {
			t.Error("the body changed")
		}

		var got bytes.Buffer
		if _, _, err := Open(&got, bytes.NewReader(after.Bytes()), Expected{}, nextOf); err != nil ||
			!bytes.Equal(got.Bytes(), audio) {
			t.Errorf("under the new key: %v", err)
		}

		wantRefused(t, "under the old key", after.Bytes(), nil, ErrKey)
		if _, err := Rewrap(io.Discard, bytes.NewReader(before), Expected{AccountID: "other"}, testRootFinder,
			Key{"k", 4, next}); !errors.Is(err, ErrAccount) {
			t.Errorf("another account's: %v", err)
		}
	}
}
