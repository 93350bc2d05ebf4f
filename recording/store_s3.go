package recording

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"trunkline/internal/fault"
	"trunkline/internal/retry"
)

// S3Config holds the address and credentials of an S3-compatible store.
type S3Config struct {
	Endpoint  string // host or host:port
	Plain     bool   // no TLS
	Region    string // "" to request it from the server
	AccessKey string
	SecretKey string
	Bucket    string // must exist
	Prefix    string // of every object name; "" or ending in a slash
	SpoolDir  string // for recordings being uploaded; "" for the system's temporary directory

	// ReadURL returns the URL with the keys that are valid now; nil: the keys do not change.
	ReadURL func() (string, error)
}

var errS3URL = errors.New("want s3://KEY:SECRET@host:port/bucket, with ?tls=false or &region=… where needed")

// ParseS3URL parses s3://KEY:SECRET@host:port/bucket/prefix?tls=true&region=R. Its error
// never contains a part of text, which has a secret.
func ParseS3URL(text string) (S3Config, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "s3" || u.Host == "" || u.User == nil || u.Fragment != "" {
		return S3Config{}, errS3URL
	}

	secret, _ := u.User.Password()
	bucket, prefix, _ := strings.Cut(strings.Trim(u.Path, "/"), "/")
	cfg := S3Config{Endpoint: u.Host, AccessKey: u.User.Username(), SecretKey: secret, Bucket: bucket}

	if prefix != "" {
		cfg.Prefix = prefix + "/"
	}

	for name, values := range u.Query() {
		switch value := values[len(values)-1]; {
		case name == "region":
			cfg.Region = value
		case name == "tls" && (value == "true" || value == "false"):
			cfg.Plain = value == "false"
		default:
			return S3Config{}, errS3URL
		}
	}

	if cfg.AccessKey == "" || cfg.SecretKey == "" || cfg.Bucket == "" {
		return S3Config{}, errS3URL
	}

	return cfg, nil
}

// S3 is a Store in a bucket. A recording is spooled to an unnamed file, sealed if required,
// before the upload, because the upload needs its length. An object becomes visible when
// its upload is complete.
type S3 struct {
	cfg          S3Config
	keys         *s3Keys
	client       *minio.Client
	uploadClient *minio.Client // without retries; uploadSpool retries instead
	partSize     uint64        // bytes
}

const (
	s3PartSize   = 16 << 20 // bytes; S3 allows 10,000 parts, so a recording has at most 156 GiB
	s3Threads    = 2        // parts uploaded at once
	s3Retries    = 4
	s3RetryDelay = 200 * time.Millisecond // before the second attempt of an upload; doubled before each further one
)

// NewS3 returns the store. It sends no request, so that it works while the server is
// unavailable.
func NewS3(cfg S3Config) (*S3, error) {
	keys := &s3Keys{cfg: cfg}
	options := minio.Options{
		Creds:  credentials.New(keys),
		Secure: !cfg.Plain, Region: cfg.Region, MaxRetries: s3Retries,
	}
	client, err := minio.New(cfg.Endpoint, &options)
	if err != nil {
		return nil, fmt.Errorf("recordings' S3 store: %w", err)
	}

	options.MaxRetries = 1
	uploads, err := minio.New(cfg.Endpoint, &options)
	if err != nil {
		return nil, fmt.Errorf("recordings' S3 store: %w", err)
	}

	return &S3{cfg: cfg, keys: keys, client: client, uploadClient: uploads, partSize: s3PartSize}, nil
}

// Ping returns an error if the store does not answer, refuses the keys or has no such bucket.
func (s *S3) Ping(ctx context.Context) error {
	exists, err := s.client.BucketExists(ctx, s.cfg.Bucket)
	if err != nil {
		return s3Error(err, "looking for the bucket of recordings")
	}
	if !exists {
		return fault.NotFound("the store has no bucket %q", s.cfg.Bucket)
	}
	return nil
}

// Put implements Store.
func (s *S3) Put(ctx context.Context, name string, write func(io.Writer) error) (size int64, err error) {
	spool, err := s.createSpool()
	if err != nil {
		return 0, fileError(err, "creating a recording's spool file")
	}
	defer func() { _ = spool.Close() }() // it has no name: closing deletes it

	if err := write(spool); err != nil {
		return 0, fileError(err, "spooling a recording")
	}

	size, err = spool.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, fileError(err, "reading a recording's spool file")
	}

	return size, s.uploadSpool(ctx, name, spool, size)
}

// uploadSpool retries failed uploads instead of the client. After an early response the client
// would rewind the reader while the failed request may still be reading from it, and could
// store mixed content. Here every attempt has its own reader.
func (s *S3) uploadSpool(ctx context.Context, name string, spool io.ReaderAt, size int64) error {
	wait := retry.Backoff{First: s3RetryDelay, Max: time.Minute}
	for try := 1; ; try++ {
		_, err := s.uploadClient.PutObject(ctx, s.cfg.Bucket, s.cfg.Prefix+name, io.NewSectionReader(spool, 0, size),
			size, minio.PutObjectOptions{
				ContentType: defaultContentType, PartSize: s.partSize, NumThreads: s3Threads,
				// Without TLS the client signs a body in chunks, which it cannot do
				// with an empty one.
				DisableContentSha256: size == 0,
			})
		err = s3Error(err, "storing a recording")
		if try == s3Retries || fault.KindOf(err) != fault.KindUnavailable {
			return err
		}

		if !wait.Wait(ctx) {
			return err
		}
	}
}

// createSpool returns an unnamed file, which the system deletes when it is closed or the
// process ends.
func (s *S3) createSpool() (*os.File, error) {
	f, err := os.CreateTemp(s.cfg.SpoolDir, ".recording-*") // mode 0600
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Open implements Store. The returned reader uses ctx.
func (s *S3) Open(ctx context.Context, name string) (io.ReadSeekCloser, error) {
	info, err := s.client.StatObject(ctx, s.cfg.Bucket, s.cfg.Prefix+name, minio.StatObjectOptions{})
	if err != nil {
		return nil, s3Error(err, "opening a recording")
	}
	return &s3Reader{ctx: ctx, store: s, name: s.cfg.Prefix + name, size: info.Size}, nil
}

// Delete implements Store: S3 reports no error for an object that does not exist.
func (s *S3) Delete(ctx context.Context, name string) error {
	err := s.client.RemoveObject(ctx, s.cfg.Bucket, s.cfg.Prefix+name, minio.RemoveObjectOptions{})
	return s3Error(err, "deleting a recording")
}

// List implements Store.
func (s *S3) List(ctx context.Context, each func(name string, modified time.Time) error) error {
	options := minio.ListObjectsOptions{Prefix: s.cfg.Prefix, Recursive: true}
	for object := range s.client.ListObjectsIter(ctx, s.cfg.Bucket, options) {
		if object.Err != nil {
			return s3Error(object.Err, "listing recordings")
		}
		if err := each(strings.TrimPrefix(object.Key, s.cfg.Prefix), object.LastModified); err != nil {
			return err
		}
	}

	return s3Error(ctx.Err(), "listing recordings")
}

// RemoveUnfinished aborts multipart uploads that began before the time and never finished. They are
// not visible as objects, but use space.
func (s *S3) RemoveUnfinished(ctx context.Context, before time.Time) error {
	ctx, cancel := context.WithCancel(ctx) // ends the listing if the loop returns early
	defer cancel()

	core := minio.Core{Client: s.client}
	for upload := range s.client.ListIncompleteUploads(ctx, s.cfg.Bucket, s.cfg.Prefix, true) {
		if minio.ToErrorResponse(upload.Err).Code == minio.NoSuchUpload {
			return nil // the response of some servers if there are none
		}
		if upload.Err != nil {
			return s3Error(upload.Err, "listing unfinished recordings")
		}
		if upload.Initiated.After(before) {
			continue
		}
		if err := core.AbortMultipartUpload(ctx, s.cfg.Bucket, upload.Key, upload.UploadID); err != nil {
			return s3Error(err, "removing an unfinished recording")
		}
	}

	return nil
}

// s3Error returns an error of the server, or of the connection to it, with a fault kind.
func s3Error(err error, operation string) error {
	var f *fault.Error
	var response minio.ErrorResponse
	switch {
	case err == nil:
		return nil
	case errors.As(err, &f):
		return fmt.Errorf("%s: %w", operation, err)
	// Without an answer of the server, the connection failed.
	case !errors.As(err, &response), response.StatusCode >= http.StatusInternalServerError,
		response.StatusCode == http.StatusTooManyRequests:
		return fault.Unavailable(err, retryAfter, operation+" failed: the store is not available")
	case response.Code == minio.NoSuchKey:
		return &fault.Error{Kind: fault.KindNotFound, Message: "the recording's object is missing", Cause: err}
	}

	return fault.Internal(err, operation+" failed")
}
