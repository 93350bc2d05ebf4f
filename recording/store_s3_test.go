package recording

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"trunkline/config/encryption"
	"trunkline/internal/fault"
	"trunkline/internal/testservice/testdb"
)

func TestParseS3URL(t *testing.T) {
	cfg, err := ParseS3URL("s3://K:S%2F%40@s3.example.com/bucket")
	if want := (S3Config{Endpoint: "s3.example.com", AccessKey: "K", SecretKey: "S/@", Bucket: "bucket"}); err != nil ||
		!reflect.DeepEqual(cfg, want) {
		t.Errorf("%+v, %v", cfg, err)
	}

	cfg, err = ParseS3URL("s3://K:S@10.0.0.1:9000/bucket/some/folder/?tls=false&region=r")
	want := S3Config{Endpoint: "10.0.0.1:9000", AccessKey: "K", SecretKey: "S", Bucket: "bucket",
		Prefix: "some/folder/", Plain: true, Region: "r"}
	if err != nil || !reflect.DeepEqual(cfg, want) {
		t.Errorf("%+v, %v", cfg, err)
	}

	for _, wrong := range []string{
		"", "/bucket", "http://K:hush@h/bucket", "s3://h/bucket", "s3://K@h/bucket", "s3://K:hush@h", "s3://K:hush@h/",
		"s3://K:hush@h/b?tls=maybe", "s3://K:hush@h/b?tsl=true", "s3://:hush@h/b", "s3://K:hush%zz@h/b",
		"s3://K:hush@h/b#c",
	} {
		if _, err := ParseS3URL(wrong); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}

func TestALongObjectGoesInParts(t *testing.T) {
	onEachBucket(t, func(t *testing.T, b *bucket) {
		s := b.openStore(t)
		content := bytes.Repeat(testAudio(1<<20), 12)
		putObject(t, s, "acme/long", content)

		if n := b.parts.Load(); n != 3 {
			t.Errorf("%d parts", n)
		}

		object := must(s.Open(t.Context(), "acme/long"))(t)
		if got := must(io.ReadAll(object))(t); !bytes.Equal(got, content) {
			t.Errorf("%d bytes come back", len(got))
		}

		check(t, object.Close())
	})
}

func TestPlayingAPartReadsLittleMore(t *testing.T) {
	onEachBucket(t, func(t *testing.T, b *bucket) {
		h := newEnv(t, Settings{}, testdb.SQLite(t))
		h.Service.objects.store = b.openStore(t)
		h.configure(t, "acme", encryption.Change{Enabled: true, Key: new(firstKey)})
		audio := testAudio(8 << 20)
		checkError(t)(h.storeAudio("acme", "call", audio))
		b.served.Store(0)
		a := must(h.Open(t.Context(), "acme", "call"))(t)
		checkError(t)(a.Seek(5<<20, io.SeekStart))
		got := make([]byte, 1000)
		checkError(t)(io.ReadFull(a, got))
		check(t, a.Close())

		if !bytes.Equal(got, audio[5<<20:][:1000]) {
			t.Error("another part")
		}
		if n := b.served.Load(); n > 4*minWindowBytes {
			t.Errorf("%d bytes were read", n)
		}
		if whole := must(h.play("acme", "call"))(t); !bytes.Equal(whole, audio) {
			t.Error("the whole is another")
		}

		// Under another key the recording is another object, which plays as before.
		h.configure(t, "acme", encryption.Change{Enabled: true, Key: new(secondKey)})
		checkError(t)(h.Reseal(t.Context(), "", func(Progress) {}))
		check(t, h.Sweep(t.Context(), time.Now().Add(time.Hour)))

		if whole := must(h.play("acme", "call"))(t); !bytes.Equal(whole, audio) {
			t.Error("after resealing it is another")
		}

		check(t, h.Delete(t.Context(), "acme", "call"))
		if all := listNames(t, h.Service.objects.store); len(all) != 0 {
			t.Errorf("left: %v", all)
		}
	})
}

func TestUploadsThatWereNeverFinishedAreEnded(t *testing.T) {
	onEachBucket(t, func(t *testing.T, b *bucket) {
		s := b.openStore(t)
		check(t, s.RemoveUnfinished(t.Context(), time.Now().Add(time.Hour)))
		core := minio.Core{Client: s.client}

		begun := func() int {
			n := 0
			for range s.client.ListIncompleteUploads(t.Context(), s.cfg.Bucket, "", true) {
				n++
			}
			return n
		}

		for _, name := range []string{"of/ours/acme/a", "of/others/b"} { // as a server that died leaves behind
			checkError(t)(core.NewMultipartUpload(t.Context(), s.cfg.Bucket, name, minio.PutObjectOptions{}))
		}

		check(t, s.RemoveUnfinished(t.Context(), time.Now().Add(-time.Hour)))
		if n := begun(); n != 2 {
			t.Errorf("%d uploads are left, one may go on", n)
		}

		check(t, s.RemoveUnfinished(t.Context(), time.Now().Add(time.Hour)))
		if n := begun(); n != 1 {
			t.Errorf("%d uploads are left, want the other's alone", n)
		}
	})
}

func TestAnUploadThatIsBrokenOffLeavesNoObject(t *testing.T) {
	onEachBucket(t, func(t *testing.T, b *bucket) {
		s := b.openStore(t)
		ctx, cancel := context.WithCancel(t.Context())
		_, err := s.Put(ctx, "acme/a", func(w io.Writer) error {
			_, err := w.Write(make([]byte, 6<<20))
			cancel() // as a server that goes away while it sends
			return err
		})
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}

		if all := listNames(t, s); len(all) != 0 {
			t.Errorf("left: %v", all)
		}
		if spooled := must(os.ReadDir(s.cfg.SpoolDir))(t); len(spooled) != 0 {
			t.Errorf("spooled: %v", spooled)
		}
	})
}

func TestPingNamesAMissingBucket(t *testing.T) {
	onEachBucket(t, func(t *testing.T, b *bucket) {
		s := b.openStore(t)
		check(t, s.Ping(t.Context()))

		s.cfg.Bucket = "nobodys"
		if err := s.Ping(t.Context()); fault.KindOf(err) != fault.KindNotFound ||
			!strings.Contains(err.Error(), `"nobodys"`) {
			t.Errorf("without its bucket: %v", err)
		}
	})
}

func TestKeysOfTheStoreAreReadAgain(t *testing.T) {
	onEachBucket(t, func(t *testing.T, b *bucket) {
		cfg := must(ParseS3URL(b.url("wrong")))(t)
		current := b.url("wrong")
		cfg.ReadURL = func() (string, error) { return current, nil }
		s := must(NewS3(cfg))(t)
		if err := s.Ping(t.Context()); err == nil {
			t.Error("a wrong secret is let in")
		}

		current = b.url(b.secret)
		s.keys.expire()
		check(t, s.Ping(t.Context()))
	})
}

func TestAStoreThatIsAwayIsNoDamage(t *testing.T) {
	onEachBucket(t, func(t *testing.T, b *bucket) {
		h := newEnv(t, Settings{}, testdb.SQLite(t))
		s := b.openStore(t)
		h.Service.objects.store = s
		checkError(t)(h.storeAudio("acme", "call", testAudio(3*minWindowBytes)))
		a := must(h.Open(t.Context(), "acme", "call"))(t)
		b.broken.Store(true)

		if _, err := a.Read(make([]byte, 10)); fault.KindOf(err) != fault.KindUnavailable {
			t.Errorf("reading: %v", err)
		}
		if _, err := h.Open(t.Context(), "acme", "call"); fault.KindOf(err) != fault.KindUnavailable {
			t.Errorf("opening: %v", err)
		}
		if _, err := h.storeAudio("acme", "other", testAudio(10)); fault.KindOf(err) != fault.KindUnavailable {
			t.Errorf("storing: %v", err)
		}

		check(t, a.Close())
		b.broken.Store(false)
		s.cfg.Bucket = "nobodys"

		if _, err := h.storeAudio("acme", "other", testAudio(10)); fault.KindOf(err) != fault.KindInternal {
			t.Errorf("storing in a bucket that is not there: %v", err)
		}

		wrong := must(ParseS3URL(b.url("wrong")))(t)
		h.Service.objects.store = must(NewS3(wrong))(t)
		if _, err := h.storeAudio("acme", "other", testAudio(10)); fault.KindOf(err) != fault.KindInternal {
			t.Errorf("storing with a wrong secret: %v", err)
		}
	})
}
