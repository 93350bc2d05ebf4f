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
	"strings"
	"sync/atomic"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/rclone/gofakes3"
	"github.com/rclone/gofakes3/s3mem"
	"github.com/rclone/gofakes3/signature"

	"trunkline/internal/testservice"
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
