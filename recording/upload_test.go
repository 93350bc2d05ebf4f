package recording

import (
	"bytes"
	"errors"
	"io"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"trunkline/config/encryption"
	"trunkline/internal/fault"
	"trunkline/internal/setting"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

// A recording is stored sealed or plain as its account is configured, and played back unchanged.
func TestARecordingLiesAsItsAccountSays(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, h *env) {
		h.configure(t, "sealing",
			encryption.Change{Enabled: true, Key: new(firstKey), Algorithm: new(encryption.AES256CBC)})
		h.configure(t, "plain", encryption.Change{Enabled: false})
		audio := testAudio(200_000)

		for account, sealed := range map[string]bool{"sealing": true, "plain": false, "never": false} {
			m, err := h.storeAudio(account, "call-1", audio)
			check(t, err)
			if m.Encrypted != sealed || m.Size != 200_000 || (m.KeyVersion == 1) != sealed ||
				(m.Salt != "") != sealed ||
				m.ContentType != "audio/x-wav" || time.Since(time.Unix(m.CreatedAt, 0)) > time.Minute ||
				!strings.HasPrefix(m.Digest, "sha256:") {
				t.Errorf("%s: %+v", account, m)
			}

			if got := must(h.Metadata(t.Context(), account, "call-1"))(t); !reflect.DeepEqual(got, m) {
				t.Errorf("%s: metadata %+v, want %+v", account, got, m)
			}
			if got, err := h.play(account, "call-1"); err != nil || !bytes.Equal(got, audio) {
				t.Errorf("%s: %v", account, err)
			}
		}

		for _, file := range h.objects(t) {
			data := must(os.ReadFile(file))(t)
			if sealed := strings.Contains(file, "/sealing/"); bytes.Contains(data, []byte("private")) == sealed {
				t.Errorf("%s: wrongly kept", file)
			}
		}

		if len(h.objects(t)) != 3 {
			t.Errorf("objects %v", h.objects(t))
		}
	})
}

func TestNothingIsStoredInPlainThatShouldBeSealed(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, h *env) {
		h.configure(t, "acme", encryption.Change{Enabled: true, Key: new(firstKey)})
		h.keys.off = errors.New("the master key is away")
		_, err := h.storeAudio("acme", "call-1", testAudio(100))
		if f := fault.As(err); f.Kind != fault.KindUnavailable || f.RetryAfter <= 0 ||
			strings.Contains(f.Message, "master") {
			t.Errorf("%v", err)
		}
		if n := testutil.ToFloat64(h.metrics.refused); n != 1 || len(h.objects(t)) != 0 {
			t.Errorf("counted %v, stored %v", n, h.objects(t))
		}

		h.keys.off = nil
		checkError(t)(h.storeAudio("acme", "call-1", testAudio(100)))
	})
}

func TestUploadRefusals(t *testing.T) {
	h := newEnv(t, Settings{MaxBytes: 1000}, testdb.SQLite(t))
	checkError(t)(h.storeAudio("acme", "taken", testAudio(10)))

	broken := io.MultiReader(bytes.NewReader(testAudio(500)), iotest.ErrReader(io.ErrUnexpectedEOF))
	for _, c := range []struct {
		name string
		u    Upload
		want fault.Kind
	}{
		{"a taken id", Upload{RecordingID: "taken", Body: strings.NewReader("x")}, fault.KindConflict},
		{"no id", Upload{Body: strings.NewReader("x")}, fault.KindInvalid},
		{"a path", Upload{RecordingID: "../../etc/passwd", Body: strings.NewReader("x")}, fault.KindInvalid},
		{"a hidden name", Upload{RecordingID: ".unfinished", Body: strings.NewReader("x")}, fault.KindInvalid},
		{"an endless id", Upload{RecordingID: strings.Repeat("a", 129), Body: strings.NewReader("x")},
			fault.KindInvalid},
		{"an odd content type", Upload{RecordingID: "b", ContentType: "a\nb", Body: strings.NewReader("x")},
			fault.KindInvalid},
		{"too large", Upload{RecordingID: "b", Body: bytes.NewReader(testAudio(1001))}, fault.KindTooLarge},
		{"a caller who hangs up", Upload{RecordingID: "b", Body: broken}, fault.KindInvalid},
	} {
		c.u.AccountID = "acme"
		if _, err := h.Store(t.Context(), c.u); fault.KindOf(err) != c.want {
			t.Errorf("%s: %v", c.name, err)
		}
	}

	if objects := h.objects(t); len(objects) != 1 {
		t.Errorf("left behind: %v", objects)
	}

	checkError(t)(h.storeAudio("acme", "exactly", testAudio(1000)))
	checkError(t)(h.storeAudio("another", "taken", testAudio(10))) // ids are an account's own
}

func TestOneOfManyUploadsOfAnIDWins(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, h *env) {
		var wg sync.WaitGroup
		var mu sync.Mutex
		stored, refused := 0, 0

		for range 8 {
			wg.Go(func() {
				_, err := h.storeAudio("acme", "call-1", testAudio(50_000))
				mu.Lock()
				defer mu.Unlock()

				switch fault.KindOf(err) {
				case "":
					stored++
				case fault.KindConflict:
					refused++
				default:
					t.Error(err)
				}
			})
		}

		wg.Wait()
		if stored != 1 || refused != 7 || len(h.objects(t)) != 1 {
			t.Errorf("%d stored, %d refused, objects %v", stored, refused, h.objects(t))
		}
	})
}

func TestWithoutADatabaseNothingIsClaimedToBeStored(t *testing.T) {
	h := newEnv(t, Settings{}, testdb.SQLite(t))
	checkError(t)(h.rows.db.ExecContext(t.Context(), `DROP TABLE recordings`))
	if _, err := h.storeAudio("acme", "call-1", testAudio(10)); err == nil {
		t.Error("stored")
	}
	if err := setting.Validate("recordings", Settings{MaxBytes: -1}); err == nil {
		t.Error("a negative size was accepted")
	}

	var none sqldb.Config
	if none.Validate() == nil {
		t.Error("no database was accepted")
	}
}

// Too little free space refuses an upload before its body is read, and interrupts one
// that is being read.
func TestUploadsNeedFreeDisk(t *testing.T) {
	h := newEnv(t, DefaultSettings(), testdb.SQLite(t))
	var room error
	checks := 0
	h.checkFreeSpace = func() error { checks++; return room }

	refused := func(id string, body []byte) {
		t.Helper()
		_, err := h.storeAudio("acme", id, body)
		if f := fault.As(err); f.Kind != fault.KindUnavailable || f.RetryAfter <= 0 ||
			!strings.Contains(f.Message, "free disk space") {
			t.Errorf("%s: %v", id, err)
		}
	}

	room = errors.New("1 of 100 MiB are free")
	refused("at-once", testAudio(10))

	room, checks = nil, 0
	h.checkFreeSpace = func() error {
		checks++
		if checks > 1 {
			return errors.New("1 of 100 MiB are free")
		}
		return nil
	}

	refused("while-it-comes", testAudio(diskCheckInterval+1<<20))
	h.checkFreeSpace = func() error { return nil }
	if _, err := h.storeAudio("acme", "while-it-comes", testAudio(10)); err != nil {
		t.Errorf("with room again: %v", err)
	}
}

func TestDefaultSizeOfARecording(t *testing.T) {
	if got := DefaultSettings().MaxBytes; got != 1<<30 {
		t.Errorf("%s", got)
	}
}
