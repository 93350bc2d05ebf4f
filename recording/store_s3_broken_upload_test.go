package recording

import (
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"trunkline/config/encryption"
	"trunkline/internal/fault"
	"trunkline/internal/testservice"
	"trunkline/internal/testservice/testdb"
)

// newSealingEnv returns an environment that stores acme's recordings sealed in the bucket.
func newSealingEnv(t *testing.T, b *bucket) *env {
	t.Helper()
	h := newEnv(t, Settings{}, testdb.SQLite(t))
	h.Service.objects.store = b.openStore(t)
	h.configure(t, "acme", encryption.Change{Enabled: true, Key: new(firstKey)})
	return h
}

// checkNothingOf checks that nothing of call-1 remains in the bucket after a sweep, and
// that the recording can then be stored.
func (h *env) checkNothingOf(t *testing.T, b *bucket) {
	t.Helper()
	s := h.Service.objects.store.(*S3)
	if all := listNames(t, s); len(all) != 0 {
		t.Errorf("objects are left: %v", all)
	}
	if _, err := h.play("acme", "call-1"); fault.KindOf(err) != fault.KindNotFound {
		t.Error(err)
	}

	check(t, h.Sweep(t.Context(), time.Now().Add(time.Hour)))
	for upload := range s.client.ListIncompleteUploads(t.Context(), b.name, "", true) {
		if minio.ToErrorResponse(upload.Err).Code != minio.NoSuchUpload {
			t.Errorf("an unfinished upload is left: %s, %v", upload.Key, upload.Err)
		}
	}

	if b.plain.Load() {
		t.Error("something was sent in plain")
	}

	audio := testAudio(7 << 20)
	checkError(t)(h.storeAudio("acme", "call-1", audio))
	if got := must(h.play("acme", "call-1"))(t); string(got) != string(audio) {
		t.Error("stored again, it is another")
	}
}

func TestAnS3ServerKilledInTheMiddleLeavesNoHalfObject(t *testing.T) {
	server := testservice.OwnS3(t)
	b := newRealBucket(t, server.URL)
	h := newSealingEnv(t, b)

	var once sync.Once
	b.atPart.Store(new(func(n int64) bool {
		if n == 2 { // one has arrived
			once.Do(func() { server.Kill(t) })
		}
		return false
	}))

	if _, err := h.storeAudio("acme", "call-1", testAudio(12<<20)); fault.KindOf(err) != fault.KindUnavailable {
		t.Errorf("stored on a server that is gone: %v", err)
	}
	if _, err := h.storeAudio("acme", "call-2", testAudio(10)); fault.KindOf(err) != fault.KindUnavailable {
		t.Errorf("stored on a server that is gone: %v", err)
	}

	server.Start(t)
	h.checkNothingOf(t, b)
}

func TestACrashInTheMiddleOfAnS3UploadLeavesNoHalfObjectAndNoPlaintext(t *testing.T) {
	onEachBucket(t, func(t *testing.T, b *bucket) {
		h := newSealingEnv(t, b)
		sealing := must(h.config.Current(t.Context(), "acme"))(t)
		spool := t.TempDir()
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestACrashLeaves")
		child.Env = append(os.Environ(), "RECORDING_CRASH_DB=-", "RECORDING_CRASH_S3="+b.url(b.secret), "TMPDIR="+spool,
			"RECORDING_CRASH_KEY="+sealing.Key.Key+" "+sealing.Key.Salt)

		halfway, killed := make(chan struct{}), make(chan struct{})
		var once sync.Once
		b.atPart.Store(new(func(n int64) bool {
			if n == 2 {
				once.Do(func() { close(halfway) })
			}
			if n > 1 {
				<-killed
			}

			return false
		}))

		check(t, child.Start())
		<-halfway
		check(t, child.Process.Kill())

		if child.Wait() == nil {
			t.Fatal("the child was not killed")
		}

		close(killed)
		// the child's own test folder
		if spooled := must(os.ReadDir(spool))(t); len(spooled) > 1 || len(spooled) == 1 && !spooled[0].IsDir() {
			t.Errorf("spooled: %v", spooled)
		}

		h.checkNothingOf(t, b)
	})
}

// crashingS3 returns the store of the child process in crash.
func crashingS3(t *testing.T, at string) *S3 {
	cfg := must(ParseS3URL(at))(t)
	cfg.SpoolDir = os.TempDir()
	s := must(NewS3(cfg))(t)
	s.partSize = 5 << 20
	return s
}

// The signature includes the audio: an attacker on a connection without TLS cannot
// change it unseen.
func TestAnUploadAlteredOnItsWayIsRefused(t *testing.T) {
	b := newRealBucket(t, testservice.S3(t))
	s := b.openStore(t)
	b.alter.Store(true)

	for _, size := range []int{1000, 6 << 20} {
		_, err := s.Put(t.Context(), "acme/a", writeContent(testAudio(size)))
		if err == nil {
			t.Errorf("%d bytes: it was stored", size)
		}
	}

	b.alter.Store(false)
	if all := listNames(t, s); len(all) != 0 {
		t.Errorf("left: %v", all)
	}
}

// If the server responds while a part is still being sent, a retry could read the same
// part twice at once.
func TestAPartThatFailsOnceIsSentAgainWhole(t *testing.T) {
	onEachBucket(t, func(t *testing.T, b *bucket) {
		h := newSealingEnv(t, b)
		b.atPart.Store(new(func(n int64) bool { return n <= 2 }))
		audio := testAudio(12 << 20)
		checkError(t)(h.storeAudio("acme", "call-1", audio))
		if got := must(h.play("acme", "call-1"))(t); string(got) != string(audio) {
			t.Error("another one was stored")
		}
	})
}
