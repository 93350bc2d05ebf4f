package recording

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"trunkline/config/encryption"
	"trunkline/internal/fault"
	"trunkline/internal/testservice/testdb"
)

// Recordings of six keys and two algorithms, one of them plain, open after the account has ended its encryption.
func TestEveryOldRecordingOpensAfterRotations(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, h *env) {
		algorithms := []string{encryption.AES256GCM, encryption.AES256CBC}
		want := map[string][]byte{}
		for i := range 6 {
			h.configure(t, "acme", encryption.Change{Enabled: i%5 != 4, Algorithm: &algorithms[i%2],
				Key: new(fmt.Sprintf("rotation number %d of this account's key", i))})
			id := fmt.Sprintf("call-%d", i)
			want[id] = testAudio(1000 * i)
			checkError(t)(h.storeAudio("acme", id, want[id]))
		}

		h.configure(t, "acme", encryption.Change{Enabled: false})
		for id, audio := range want {
			if got, err := h.play("acme", id); err != nil || !bytes.Equal(got, audio) {
				t.Errorf("%s: %v", id, err)
			}
		}
	})
}

func TestPlaybackServesRanges(t *testing.T) {
	h := newEnv(t, Settings{}, testdb.SQLite(t))
	h.configure(t, "acme", encryption.Change{Enabled: true, Key: new(firstKey)})
	audio := testAudio(300_000)
	checkError(t)(h.storeAudio("acme", "call-1", audio))
	a := must(h.Open(t.Context(), "acme", "call-1"))(t)
	defer func() { check(t, a.Close()) }()

	for range 30 {
		from := rand.IntN(len(audio))
		to := from + rand.IntN(len(audio)-from)
		request := httptest.NewRequest(http.MethodGet, "/", nil)
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", from, to))
		answer := httptest.NewRecorder()
		http.ServeContent(answer, request, "", time.Unix(a.CreatedAt, 0), a)

		if answer.Code != http.StatusPartialContent || !bytes.Equal(answer.Body.Bytes(), audio[from:to+1]) {
			t.Errorf("bytes %d-%d: status %d, %d bytes", from, to, answer.Code, answer.Body.Len())
		}
	}
}

func TestAnAlteredObjectIsNotPlayed(t *testing.T) {
	alter := map[string]func(t *testing.T, h *env, file string){
		"a byte of the last chunk": func(t *testing.T, h *env, file string) {
			editFile(t, file, func(b []byte) []byte { b[len(b)-50] ^= 1; return b })
		},
		"a byte of the first chunk": func(t *testing.T, h *env, file string) {
			editFile(t, file, func(b []byte) []byte { b[1000] ^= 1; return b })
		},
		"cut short": func(t *testing.T, h *env, file string) {
			editFile(t, file, func(b []byte) []byte { return b[:len(b)-70_000] })
		},
		"emptied": func(t *testing.T, h *env, file string) { editFile(t, file, func([]byte) []byte { return nil }) },
		"gone":    func(t *testing.T, h *env, file string) { check(t, os.Remove(file)) },
		"another recording's": func(t *testing.T, h *env, file string) {
			checkError(t)(h.storeAudio("acme", "call-2", testAudio(200_000)))
			editFile(t, file, func([]byte) []byte { return must(os.ReadFile(otherObject(t, h, file)))(t) })
		},
		"an earlier one of that id": func(t *testing.T, h *env, file string) {
			before := must(os.ReadFile(file))(t)
			check(t, h.Delete(t.Context(), "acme", "call-1"))
			checkError(t)(h.storeAudio("acme", "call-1", testAudio(100)))
			editFile(t, h.objects(t)[0], func([]byte) []byte { return before })
		},
	}

	for name, change := range alter {
		t.Run(name, func(t *testing.T) {
			h := newEnv(t, Settings{}, testdb.SQLite(t))
			h.configure(t, "acme", encryption.Change{Enabled: true, Key: new(firstKey)})
			checkError(t)(h.storeAudio("acme", "call-1", testAudio(200_000)))
			change(t, h, h.objects(t)[0])
			got, err := h.play("acme", "call-1")
			if f := fault.As(err); err == nil || f.Kind != fault.KindInternal ||
				f.Message != "the recording is damaged" || len(got) != 0 {
				t.Errorf("released %d bytes: %v", len(got), err)
			}
			if testutil.ToFloat64(h.metrics.damaged) != 1 {
				t.Error("not counted")
			}
		})
	}
}

func editFile(t *testing.T, file string, change func([]byte) []byte) {
	t.Helper()
	check(t, os.WriteFile(file, change(must(os.ReadFile(file))(t)), 0o600))
}

func otherObject(t *testing.T, h *env, file string) string {
	for _, object := range h.objects(t) {
		if object != file {
			return object
		}
	}
	t.Fatal("there is no other")
	return ""
}

func TestAPlainRecordingIsCheckedAgainstItsDigest(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, h *env) {
		audio := testAudio(3 << 20)
		must(h.storeAudio("plain", "call-1", audio))(t)
		file := h.objects(t)[0]

		for _, at := range []int{0, 1 << 20, len(audio) - 1} {
			changed := bytes.Clone(audio)
			changed[at] ^= 1
			check(t, os.WriteFile(file, changed, 0o600))
			if audio, err := h.Open(t.Context(), "plain", "call-1"); fault.KindOf(err) != fault.KindInternal {
				t.Errorf("bit %d changed: opened %v, %v", at, audio, err)
			}
		}

		if n := testutil.ToFloat64(h.metrics.damaged); n != 3 {
			t.Errorf("%v times damaged", n)
		}

		check(t, os.WriteFile(file, audio, 0o600))
		if got, err := h.play("plain", "call-1"); err != nil || !bytes.Equal(got, audio) {
			t.Errorf("restored: %v", err)
		}
	})
}
