package recording

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"trunkline/audit/audittest"
	"trunkline/config/encryption"
	"trunkline/internal/fault"
	"trunkline/internal/report"
	"trunkline/internal/setting"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

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

func checkError(t testing.TB) func(any, error) {
	return func(_ any, err error) { t.Helper(); check(t, err) }
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

func TestListGivesEveryRecordingOnceNewestFirst(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, h *env) {
		for i := range 25 {
			checkError(t)(h.storeAudio("acme", fmt.Sprintf("call-%02d", i), testAudio(i)))
		}

		checkError(t)(h.storeAudio("other", "call-99", testAudio(1)))
		seen := map[string]bool{}
		var at int64 = 1 << 60
		start, pages := "", 0

		for {
			page := must(h.List(t.Context(), Filter{Account: "acme", PageSize: 10, StartKey: start}))(t)
			for _, m := range page.Data {
				if seen[m.RecordingID] || m.CreatedAt > at || m.AccountID != "acme" {
					t.Errorf("%+v is out of place", m)
				}
				seen[m.RecordingID], at = true, m.CreatedAt
			}

			pages++
			start = page.NextStartKey
			if start == "" {
				break
			}
		}

		if len(seen) != 25 || pages != 3 {
			t.Errorf("%d recordings on %d pages", len(seen), pages)
		}

		for _, bad := range []struct {
			size  int
			start string
		}{{-1, ""}, {1001, ""}, {10, "x"}, {10, "MTIz"}, {10, strings.Repeat("A", 400)}} {
			if _, err := h.List(t.Context(),
				Filter{Account: "acme", PageSize: bad.size, StartKey: bad.start}); fault.KindOf(
				err) != fault.KindInvalid {
				t.Errorf("%+v: %v", bad, err)
			}
		}

		if page := must(h.List(t.Context(), Filter{Account: "nobody"}))(t); len(page.Data) != 0 || page.Data == nil ||
			page.PageSize != report.DefaultPage {
			t.Errorf("%+v", page)
		}
	})
}

func TestADeletedRecordingIsGone(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, h *env) {
		checkError(t)(h.storeAudio("acme", "call-1", testAudio(10)))
		if err := h.Delete(t.Context(), "other", "call-1"); fault.KindOf(err) != fault.KindNotFound {
			t.Errorf("another account's: %v", err)
		}

		check(t, h.Delete(t.Context(), "acme", "call-1"))
		if _, err := h.play("acme", "call-1"); fault.KindOf(err) != fault.KindNotFound || len(h.objects(t)) != 0 {
			t.Errorf("%v, objects %v", err, h.objects(t))
		}
		if err := h.Delete(t.Context(), "acme", "call-1"); fault.KindOf(err) != fault.KindNotFound {
			t.Errorf("twice: %v", err)
		}

		checkError(t)(h.storeAudio("acme", "call-1", testAudio(10)))
	})
}

func TestSweepTakesOnlyWhatNoRowNames(t *testing.T) {
	h := newEnv(t, Settings{}, testdb.SQLite(t))
	checkError(t)(h.storeAudio("acme", "call-1", testAudio(10)))
	checkError(t)(h.storeAudio(".dots", "call-1", testAudio(10)))

	orphan := h.dir + "/acme/call-1.abcdefghijklmnop.trkrec"
	strange := h.dir + "/acme/notes.txt"
	for _, file := range []string{orphan, strange} {
		check(t, os.WriteFile(file, []byte("x"), 0o600))
	}

	check(t, h.Sweep(t.Context(), time.Now().Add(-time.Hour)))
	if n := len(h.objects(t)); n != 4 {
		t.Errorf("%d objects: what is young may belong to an upload that is not done", n)
	}

	check(t, h.Sweep(t.Context(), time.Now().Add(time.Minute)))
	if _, err := os.Stat(orphan); err == nil {
		t.Error("the orphan is still there")
	}
	if n := len(h.objects(t)); n != 3 {
		t.Errorf("left: %v", h.objects(t))
	}
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

func TestStoringReadingAndDeletingARecordingIsAudited(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, h *env) {
		ctx := audittest.CallerContext(t, "apikey:k")
		upload := func(id string) error {
			_, err := h.Store(ctx, Upload{AccountID: "acme", RecordingID: id, Body: bytes.NewReader(testAudio(1000))})
			return err
		}

		check(t, upload("call-1"))
		if err := upload("call-1"); fault.KindOf(err) != fault.KindConflict {
			t.Errorf("stored twice: %v", err)
		}

		check(t, must(h.Open(ctx, "acme", "call-1"))(t).Close())
		if _, err := h.Open(ctx, "acme", "call-2"); fault.KindOf(err) != fault.KindNotFound {
			t.Errorf("opened what is not there: %v", err)
		}

		check(t, h.Delete(ctx, "acme", "call-1"))
		want := []string{
			"recording.delete apikey:k recording:call-1 ok", "recording.read apikey:k recording:call-1 ok",
			"recording.store apikey:k recording:call-1 ok",
		}
		if got := audittest.Entries(t, h.audited, "acme", ""); !slices.Equal(got, want) {
			t.Errorf("audit log has %q, want %q", got, want)
		}

		check(t, upload("call-3"))
		_, err := h.rows.db.ExecContext(ctx, `DROP TABLE audit_pending`)
		check(t, err)

		if audio, err := h.Open(ctx, "acme", "call-3"); err == nil {
			t.Errorf("opened %v without an entry", audio.RecordingID)
		}
		if err := h.Delete(ctx, "acme", "call-3"); err == nil {
			t.Error("deleted without an entry")
		}
		if err := upload("call-4"); err == nil {
			t.Error("stored without an entry")
		}
		if _, err := h.Metadata(ctx, "acme", "call-4"); fault.KindOf(err) != fault.KindNotFound {
			t.Errorf("call-4: %v", err)
		}
	})
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

func TestPurgingAnAccountDeletesItsRecordings(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, h *env) {
		for i := range purgePageSize + 5 {
			must(h.storeAudio("gone", fmt.Sprint("call-", i), []byte("audio")))(t)
		}

		must(h.storeAudio("stays", "call-1", []byte("audio")))(t)
		for _, want := range []int{purgePageSize, 5, 0} {
			if n, err := h.PurgeAccount(t.Context(), "gone"); n != want || err != nil {
				t.Errorf("purged %d, %v; want %d", n, err, want)
			}
		}

		if files := h.objects(t); len(files) != 1 || !strings.Contains(files[0], "/stays/") {
			t.Errorf("left are %v", files)
		}
	})
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
