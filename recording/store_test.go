package recording

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"trunkline/internal/fault"
)

// onEachStore runs a test on every kind of store.
func onEachStore(t *testing.T, test func(t *testing.T, s Store)) {
	t.Run("directory", func(t *testing.T) {
		d := must(OpenDir(t.TempDir()))(t)
		t.Cleanup(func() { check(t, d.Close()) })
		test(t, d)
	})
	t.Run("S3", func(t *testing.T) { onEachBucket(t, func(t *testing.T, b *bucket) { test(t, b.openStore(t)) }) })
}

func putObject(t *testing.T, s Store, name string, content []byte) {
	t.Helper()
	size, err := s.Put(t.Context(), name, writeContent(content))
	if err != nil || size != int64(len(content)) {
		t.Fatalf("put %s: %d, %v", name, size, err)
	}
}

func writeContent(content []byte) func(io.Writer) error {
	return func(w io.Writer) error { _, err := w.Write(content); return err }
}

func listNames(t *testing.T, s Store) (all []string) {
	t.Helper()
	check(t, s.List(t.Context(), func(name string, modified time.Time) error {
		if age := time.Since(modified); age < -time.Minute || age > time.Minute {
			t.Errorf("%s is %v old", name, age)
		}
		all = append(all, name)
		return nil
	}))
	return all
}

func TestAnObjectIsWholeOrAbsent(t *testing.T) {
	onEachStore(t, func(t *testing.T, s Store) {
		broken := errors.New("broken")
		_, err := s.Put(t.Context(), "acme/a", func(w io.Writer) error {
			checkError(t)(w.Write(testAudio(1000)))
			return broken
		})
		if !errors.Is(err, broken) {
			t.Error(err)
		}

		if _, err := s.Open(t.Context(), "acme/a"); fault.KindOf(err) != fault.KindNotFound {
			t.Errorf("a broken one is there: %v", err)
		}
		if left := listNames(t, s); len(left) != 0 {
			t.Errorf("left behind: %v", left)
		}

		putObject(t, s, "acme/a", testAudio(1000))
		putObject(t, s, "other/b", nil)
		if all := listNames(t, s); len(all) != 2 {
			t.Errorf("listed %v", all)
		}

		stop := errors.New("stop")
		if err := s.List(t.Context(), func(string, time.Time) error { return stop }); !errors.Is(err, stop) {
			t.Errorf("listing goes on: %v", err)
		}

		check(t, s.Delete(t.Context(), "acme/a"))
		check(t, s.Delete(t.Context(), "acme/a"))
		if all := listNames(t, s); len(all) != 1 || all[0] != "other/b" {
			t.Errorf("listed %v", all)
		}
	})
}

func TestAnObjectIsReadAtAnyPlace(t *testing.T) {
	content := make([]byte, 3*minWindowBytes+17)
	for i := range content {
		content[i] = byte(i * i >> 8)
	}

	onEachStore(t, func(t *testing.T, s Store) {
		putObject(t, s, "acme/a", content)
		putObject(t, s, "acme/empty", nil)
		object := must(s.Open(t.Context(), "acme/a"))(t)
		defer func() { check(t, object.Close()) }()

		size := int64(len(content))
		for _, at := range []int64{size - 1, 0, minWindowBytes - 1, minWindowBytes, 5, size, 2*minWindowBytes + 3,
			size + 10} {
			if pos, err := object.Seek(at, io.SeekStart); err != nil || pos != at {
				t.Fatalf("seek to %d: %d, %v", at, pos, err)
			}

			got := must(io.ReadAll(object))(t)
			if !bytes.Equal(got, content[min(at, size):]) {
				t.Errorf("from %d: %d bytes, want %d", at, len(got), size-min(at, size))
			}
		}

		if pos := must(object.Seek(-3, io.SeekEnd))(t); pos != size-3 {
			t.Errorf("3 before the end is %d", pos)
		}
		if _, err := object.Seek(-1, io.SeekStart); err == nil {
			t.Error("sought before the start")
		}

		var three [3]byte
		if _, err := io.ReadFull(object, three[:]); err != nil || !bytes.Equal(three[:], content[size-3:]) {
			t.Errorf("%v, %v", three, err)
		}

		empty := must(s.Open(t.Context(), "acme/empty"))(t)
		if got := must(io.ReadAll(empty))(t); len(got) != 0 {
			t.Errorf("an empty one has %d bytes", len(got))
		}

		check(t, empty.Close())
	})
}
