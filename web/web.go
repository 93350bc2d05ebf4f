package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"sync"

	"trunkline/internal/entitytag"
)

//go:embed static
var static embed.FS

// Paths of the pages and their assets.
const (
	PathBoard   = "/"
	PathAssets  = "/board/" // followed by the name of a file
	PathHTTP    = "/docs/http"
	PathChannel = "/docs/events"
)

// policy allows only what the pages need. connect-src 'self' includes the WebSocket of the same
// origin.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

// mediaTypes maps file name extensions to media types.
var mediaTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
	".json": "application/json",
}

// file is one prepared response.
type file struct {
	body              []byte
	contentType, etag string
}

// Handler serves the board, the references of the API under /docs, and what Add adds.
type Handler struct {
	files map[string]file                  // by path
	added map[string]func() (*file, error) // likewise, those of Add
}

// New reads the embedded files.
func New() (*Handler, error) {
	h := &Handler{files: make(map[string]file), added: make(map[string]func() (*file, error))}
	entries, err := fs.ReadDir(static, "static")
	if err != nil {
		return nil, fmt.Errorf("reading the board: %w", err)
	}

	for _, entry := range entries {
		body, err := static.ReadFile("static/" + entry.Name())
		if err != nil {
			return nil, fmt.Errorf("reading the board: %w", err)
		}

		contentType, ok := mediaTypes[path.Ext(entry.Name())]
		if !ok {
			return nil, fmt.Errorf("reading the board: %s has no known type", entry.Name())
		}

		one := newFile(body, contentType)
		for _, at := range paths(entry.Name()) {
			h.files[at] = one
		}
	}

	return h, nil
}

func newFile(body []byte, contentType string) file {
	sum := sha256.Sum256(body)
	return file{body, contentType, `"` + hex.EncodeToString(sum[:16]) + `"`}
}

// Add serves content at a path, which is called once, at its first request. A path without a known extension
// is a page. Add must not be called once requests arrive.
func (h *Handler) Add(at string, content func() ([]byte, error)) {
	contentType, ok := mediaTypes[path.Ext(at)]
	if !ok {
		contentType = mediaTypes[".html"]
	}

	h.added[at] = sync.OnceValues(func() (*file, error) {
		body, err := content()
		if err != nil {
			return nil, err
		}
		file := newFile(body, contentType)
		return &file, nil
	})
}

// find returns the file at a path.
func (h *Handler) find(at string) (_ file, ok bool, _ error) {
	f, ok := h.files[at]
	if ok {
		return f, true, nil
	}

	added, ok := h.added[at]
	if !ok {
		return file{}, false, nil
	}

	found, err := added()
	if err != nil {
		return file{}, false, err
	}

	return *found, true, nil
}

// paths returns the URL paths of a file: a page has only its own.
func paths(name string) []string {
	switch name {
	case "board.html":
		return []string{PathBoard}
	case "docs.html":
		return []string{PathHTTP, PathChannel}
	}
	return []string{PathAssets + name}
}

// ServeHTTP sends a file, or 404, or 500 for a page that cannot be made.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	f, ok, err := h.find(r.URL.Path)
	if err != nil {
		header.Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = w.Write([]byte(`{"success":false,"message":"The page cannot be shown"}`))
		return
	}

	if !ok {
		header.Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"success":false,"message":"Not found"}`))
		return
	}

	header.Set("Content-Security-Policy", policy)
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")

	// cached, but revalidated with the ETag, so that an upgrade is visible at once
	header.Set("Cache-Control", "no-cache")
	header.Set("ETag", f.etag)
	header.Set("Content-Type", f.contentType)

	if entitytag.NotModified(r.Header.Get("If-None-Match"), f.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}

	header.Set("Content-Length", strconv.Itoa(len(f.body)))
	_, _ = w.Write(f.body) // the client may have disconnected
}
