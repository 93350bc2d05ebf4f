package recording

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/rclone/gofakes3"
	"github.com/rclone/gofakes3/s3mem"
	"github.com/rclone/gofakes3/signature"

	"trunkline/config/encryption"
	"trunkline/internal/fault"
	"trunkline/internal/testservice"
	"trunkline/internal/testservice/testdb"
)

// bucket is a bucket on an S3 server, behind a proxy that counts requests and can fail
// them.
type bucket struct {
	*httptest.Server
	name, region, access, secret string

	parts  atomic.Int64 // that were uploaded
	served atomic.Int64 // bytes of objects
	broken atomic.Bool  // answers 500, or breaks off an answer
	alter  atomic.Bool  // changes a byte of every upload
	plain  atomic.Bool  // plain text was found in an upload that should be sealed

	atPart atomic.Pointer[func(n int64) (refuse bool)] // called before the n-th part is forwarded
}

// onEachBucket runs a test on a real S3 server and on a small one in the process.
func onEachBucket(t *testing.T, test func(t *testing.T, b *bucket)) {
	t.Run("real", func(t *testing.T) { test(t, newRealBucket(t, testservice.S3(t))) })
	t.Run("in process", func(t *testing.T) { test(t, newFakeBucket(t)) })
}

// newRealBucket creates a bucket on the server of an s3:// URL, for this test.
func newRealBucket(t testing.TB, server string) *bucket {
	t.Helper()
	at := must(url.Parse(server))(t)
	secret, _ := at.User.Password()
	b := &bucket{name: strings.TrimSuffix(testservice.Prefix(t), "-"), region: at.Query().Get("region"),
		access: at.User.Username(), secret: secret}
	b.region = cmp.Or(b.region, "eu-1")
	secure := at.Query().Get("tls") != "false"
	direct := must(minio.New(at.Host, &minio.Options{
		Creds: credentials.NewStaticV4(b.access, b.secret, ""), Secure: secure, Region: b.region,
	}))(t)
	check(t, direct.MakeBucket(t.Context(), b.name, minio.MakeBucketOptions{Region: b.region}))
	t.Cleanup(func() { emptyBucket(t, direct, b.name) })
	target := &url.URL{Scheme: "http", Host: at.Host}

	if secure {
		target.Scheme = "https"
	}

	b.serve(t, &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host // which is signed
		},
		ErrorLog: log.New(io.Discard, "", 0), // of clients that go away
	})

	return b
}

// emptyBucket removes a bucket with all its objects.
func emptyBucket(t testing.TB, client *minio.Client, bucket string) {
	ctx := context.Background() // the test's has ended
	for object := range client.ListObjectsIter(ctx, bucket, minio.ListObjectsOptions{Recursive: true}) {
		check(t, errors.Join(object.Err, client.RemoveObject(ctx, bucket, object.Key, minio.RemoveObjectOptions{})))
	}
	for upload := range client.ListIncompleteUploads(ctx, bucket, "", true) {
		check(t, errors.Join(upload.Err, client.RemoveIncompleteUpload(ctx, bucket, upload.Key)))
	}
	check(t, client.RemoveBucket(ctx, bucket))
}

// newFakeBucket returns a bucket of a server in this process that checks signatures.
func newFakeBucket(t testing.TB) *bucket {
	t.Helper()
	b := &bucket{name: "calls", region: "eu-1", access: "access", secret: "the/secret+of=the bucket"}
	memory := s3mem.New()
	check(t, memory.CreateBucket(t.Context(), b.name))

	handler := gofakes3.New(memory).Server()
	b.serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if code := signature.V4SignVerifyWithSecret(r, b.secret); code != signature.ErrNone {
			refusal := signature.GetAPIError(code)
			w.WriteHeader(refusal.HTTPStatusCode)
			_, _ = w.Write(signature.EncodeAPIErrorToResponse(refusal))
			return
		}

		// An empty delimiter is none; this server takes it for one.
		query := r.URL.Query()
		if query.Get("delimiter") == "" {
			query.Del("delimiter")
		}

		r.URL.RawQuery = query.Encode()
		handler.ServeHTTP(w, r)
	}))

	return b
}

func (b *bucket) serve(t testing.TB, handler http.Handler) {
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if b.broken.Load() {
			http.Error(w, "down", http.StatusInternalServerError)
			return
		}

		if r.Method == http.MethodPut && r.URL.Query().Has("partNumber") {
			n := b.parts.Add(1)
			if ask := b.atPart.Load(); ask != nil && (*ask)(n) {
				http.Error(w, "down", http.StatusInternalServerError)
				return
			}
		}

		r.Body = &watchedBody{r.Body, b}
		handler.ServeHTTP(&countingWriter{w, &b.served}, r)
	}))

	t.Cleanup(b.Close)
}

// watchedBody is a request's body on its way through the proxy.
type watchedBody struct {
	io.ReadCloser
	b *bucket
}

func (w *watchedBody) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	if bytes.Contains(p[:n], []byte("private")) {
		w.b.plain.Store(true)
	}
	if n > 0 && w.b.alter.Load() {
		p[n/2] ^= 1
	}
	return n, err
}

type countingWriter struct {
	http.ResponseWriter
	n *atomic.Int64
}

func (c *countingWriter) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return c.ResponseWriter.Write(p)
}

// Unwrap lets the proxy flush.
func (c *countingWriter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (b *bucket) url(secret string) string {
	return "s3://" + b.access + ":" +
		strings.NewReplacer("/", "%2F", "+", "%2B", "=", "%3D", " ", "%20").Replace(secret) +
		"@" + strings.TrimPrefix(b.URL, "http://") + "/" + b.name + "/of/ours?tls=false&region=" + b.region
}

func (b *bucket) openStore(t testing.TB) *S3 {
	t.Helper()
	cfg := must(ParseS3URL(b.url(b.secret)))(t)
	cfg.SpoolDir = t.TempDir()
	s := must(NewS3(cfg))(t)
	s.partSize = 5 << 20 // the minimum of S3
	return s
}

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

		// Ten seconds later in life: another key, then swept.
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
		cfg.CurrentURL = func() (string, error) { return current, nil }
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
