package recording

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"trunkline/cmd/internal/cli"
	"trunkline/recording"
)

// refusedError is the refusal of one file, which says nothing about others.
type refusedError struct{ cause error }

func (e *refusedError) Error() string { return e.cause.Error() }
func (e *refusedError) Unwrap() error { return e.cause }

// retryAfter returns how long a server asked to wait.
func retryAfter(err error) time.Duration {
	var answer *cli.HTTPError
	if errors.As(err, &answer) {
		return answer.RetryAfter
	}
	return 0
}

// send stores a file. Nil means that the server has these bytes under the file's id. Returns
// *refusedError if the server does not want this file.
func (s *sender) send(ctx context.Context, root, path string) error {
	f := s.files[path]
	id, params, _ := s.describe(root, path)
	ctx, cancel := context.WithTimeout(ctx, responseWait+time.Duration(f.size/slowestUpload)*time.Second)
	defer cancel()

	digest, err := s.upload(ctx, root, path, id, params, f)
	var answer *cli.HTTPError
	switch {
	case err == nil:
		s.counts.sent++
		return nil
	case errors.As(err, &answer) && answer.Status == http.StatusConflict:
		return s.compareStored(ctx, root, path, id, digest)
	case errors.As(err, &answer) && isRefusal(answer.Status):
		return &refusedError{err}
	}

	return err
}

// openWithin opens a file of the folder, or the file that root is. It follows no link out of the
// folder: who may write there may replace a file by a link to one that only this program may read.
func openWithin(root, path string) (*os.File, error) {
	if path == root {
		root = filepath.Dir(path)
	}
	name, err := filepath.Rel(root, path)
	if err != nil {
		return nil, err
	}
	return os.OpenInRoot(root, name)
}

// isRefusal reports whether a status is about the file, and not about the server, the key or the
// way.
func isRefusal(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType:
		return true
	}
	return false
}

// upload sends a file and compares what the server has stored with what was read. It returns the
// digest of what was read, which is the whole file if the server read all of it.
func (s *sender) upload(ctx context.Context, root, path, id string, params map[string]string,
	f *pending) (hash.Hash, error) {
	file, err := openWithin(root, path)
	if err != nil {
		return nil, &refusedError{err}
	}
	defer func() { _ = file.Close() }() // opened for reading

	digest := sha256.New()
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, s.recordingURL(id),
		io.TeeReader(io.LimitReader(file, f.size), digest))
	if err != nil {
		return nil, err
	}

	query := url.Values{}
	for name, value := range params {
		query.Set(name, value)
	}

	request.URL.RawQuery = query.Encode()
	// The size that was seen: a file that grows meanwhile is found out below, and is not removed.
	request.ContentLength = f.size
	request.Header.Set("Content-Type", audioTypes[strings.ToLower(filepath.Ext(path))])
	s.authenticate(request)
	body, err := cli.Fetch(s.client, request, http.StatusCreated)
	if err != nil {
		return digest, err
	}

	stored, err := parseMetadata(body)
	if err != nil {
		return digest, err
	}

	want := formatSum(digest)
	if stored.Digest != want {
		return digest, &refusedError{fmt.Errorf("the server has stored %s, the file has %s", stored.Digest, want)}
	}

	info, err := file.Stat()
	if err == nil && (info.Size() != f.size || !info.ModTime().Equal(f.modifiedAt)) {
		return digest, &refusedError{errors.New(
			"it was changed while it was sent: set a longer --settle, and run as the switch's user")}
	}

	return digest, err
}

// compareStored returns nil if the recording that the server has under the id is the file.
func (s *sender) compareStored(ctx context.Context, root, path, id string, digest hash.Hash) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.recordingURL(id)+"/metadata", http.NoBody)
	if err != nil {
		return err
	}

	s.authenticate(request)
	body, err := cli.Fetch(s.client, request, http.StatusOK)
	if err != nil {
		return err
	}

	stored, err := parseMetadata(body)
	if err != nil {
		return err
	}

	// The server may have answered before it had read the file.
	file, err := openWithin(root, path)
	if err != nil {
		return &refusedError{err}
	}
	defer func() { _ = file.Close() }() // opened for reading

	// The digest of the upload has only what the server read before it answered.
	digest.Reset()
	_, err = io.Copy(digest, file)
	if err != nil {
		return &refusedError{err}
	}

	if stored.Digest != formatSum(digest) {
		return &refusedError{fmt.Errorf("the server has another recording %s", id)}
	}

	s.counts.repeated++
	return nil
}

func (s *sender) recordingURL(id string) string {
	return s.url + "/api/v2/recordings/" + url.PathEscape(id)
}

func (s *sender) authenticate(request *http.Request) { request.Header.Set("X-API-Key", s.apiKey) }

func parseMetadata(body []byte) (m recording.Metadata, err error) {
	err = json.Unmarshal(body, &m)
	if err != nil {
		return m, fmt.Errorf("reading the server's answer: %w", err)
	}
	return m, nil
}

func formatSum(h hash.Hash) string { return "sha256:" + hex.EncodeToString(h.Sum(nil)) }

// openFiles returns which of the files a process has open, of those whose files this one may see.
// It needs /proc; elsewhere none is known to be open.
func openFiles(paths []string) map[string]bool {
	wanted, open := make(map[string]string, len(paths)), make(map[string]bool)
	for _, path := range paths {
		absolute, err := filepath.Abs(path)
		if err != nil {
			continue
		}

		resolved, err := filepath.EvalSymlinks(absolute)
		if err == nil {
			wanted[resolved] = path
		}
	}

	links, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return open
	}

	for _, link := range links {
		target, err := os.Readlink(link)
		if err != nil {
			continue // of another user, or closed meanwhile
		}

		if path, ok := wanted[target]; ok {
			open[path] = true
		}
	}

	return open
}
