package testservice

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"trunkline/internal/freeport"
)

// Credentials of the S3 server. The secret has characters that a URL must escape.
const (
	s3AccessKey     = "access"
	s3SecretKey     = "the/secret+of=the store"
	s3SecretEscaped = "the%2Fsecret%2Bof%3Dthe%20store"
)

const s3BuildTimeout = 8 * time.Minute // the first build compiles the server on a busy machine

func s3Kind() serviceKind {
	return serviceKind{name: "s3", variable: "TRUNKLINE_TEST_S3",
		methods: []startMethod{{"built from .ci/s3", localS3}}}
}

func localS3(ctx context.Context, _ stopPolicy) (*service, error) {
	return startShared(ctx, newS3, func(s *Server) string { return s.URL })
}

// S3 returns the s3://KEY:SECRET@host:port URL (with ?tls=false for plain HTTP) of a shared
// S3-compatible server. Create a bucket named with Prefix.
func S3(t testing.TB) string {
	t.Helper()
	return openShared(t, sharedS3).address
}

// OwnS3 starts an S3-compatible server for this test. It keeps its objects across a kill and a
// restart.
func OwnS3(t testing.TB) *Server {
	t.Helper()
	return startOwn(t, newS3)
}

func newS3(ctx context.Context) (*Server, error) {
	binary, err := buildS3(ctx)
	if err != nil {
		return nil, err
	}

	dir, err := newFolder("s3")
	if err != nil {
		return nil, err
	}

	ports, err := freeport.Find(1)
	objects := filepath.Join(dir, "objects")
	if err := errors.Join(err, os.Mkdir(objects, 0o700)); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}

	address := hostPort(ports[0])
	return &Server{
		Addr: address, dir: dir, origin: binary,
		URL: "s3://" + s3AccessKey + ":" + s3SecretEscaped + "@" + address + "?tls=false",
		command: command{
			name: "s3", dir: dir, stopSignal: syscall.SIGKILL,
			args: []string{binary, address, objects},
			env:  []string{"S3_ACCESS_KEY=" + s3AccessKey, "S3_SECRET_KEY=" + s3SecretKey},
		},
		probe: func(ctx context.Context) error { return probeS3(ctx, address) },
	}, nil
}

// probeS3 expects the refusal of an unsigned request.
func probeS3(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()

	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/", nil)
	if err != nil {
		return err
	}

	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}

	_, err = io.Copy(io.Discard, response.Body)
	if response.StatusCode != http.StatusForbidden {
		err = fmt.Errorf("it answers %s", response.Status)
	}

	return errors.Join(err, response.Body.Close())
}

// buildS3 compiles the module .ci/s3 into the cache folder; if that is up to date, it takes a
// second.
func buildS3(ctx context.Context) (binary string, err error) {
	module, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("%w: looking for Go: %w", errMissing, err)
	}

	source := filepath.Join(filepath.Dir(strings.TrimSpace(string(module))), ".ci", "s3")
	_, err = os.Stat(filepath.Join(source, "go.mod"))
	if err != nil {
		return "", fmt.Errorf("%w: looking for the S3 server's module: %w", errMissing, err)
	}

	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("looking for the cache folder: %w", err)
	}

	dir := filepath.Join(cache, "trunkline", "s3")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("making the folder of the S3 server: %w", err)
	}

	unlock, err := lockFile(filepath.Join(dir, "lock"))
	if err != nil {
		return "", err
	}
	defer unlock()

	ctx, cancel := context.WithTimeout(ctx, s3BuildTimeout)
	defer cancel()

	binary = filepath.Join(dir, "s3")
	_, err = os.Stat(binary)
	if err != nil {
		fmt.Fprintf(os.Stderr, "testservice: building an S3 server from Go modules into %s\n", dir)
	}

	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", binary, ".")
	build.Dir = source
	output, err := build.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: building the S3 server: %w: %s", errMissing, err, output)
	}

	return binary, nil
}
