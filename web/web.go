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
	"strings"
)

//go:embed static
var static embed.FS

// Where the pages and what they are made of lie.
const (
	PathBoard   = "/"
	PathAssets  = "/board/" // and a file's name
	PathDocs    = "/docs"
	PathChannel = "/docs/events"
)

// policy allows what the pages need and nothing else. connect-src 'self' covers
// the WebSocket of the same origin.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

// types are those of the files there are, by their names' ends.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// file is one answer, ready to be given.
type file struct {
	body              []byte
	contentType, etag string
}

// Handler answers for the board and the pages under /docs.
type Handler struct {
	files map[string]file // by path
}

// New reads the embedded files.
func New() (*Handler, error) {
	h := &Handler{files: make(map[string]file)}
	entries, err := fs.ReadDir(static, "static")
	if err != nil {
		return nil, fmt.Errorf("reading the board: %w", err)
	}
	for _, entry := range entries {
		body, err := static.ReadFile("static/" + entry.Name())
		if err != nil {
			return nil, fmt.Errorf("reading the board: %w", err)
		}
		contentType, ok := types[path.Ext(entry.Name())]
		if !ok {
			return nil, fmt.Errorf("reading the board: %s has no known type", entry.Name())
		}
		sum := sha256.Sum256(body)
		one := file{body, contentType, `"` + hex.EncodeToString(sum[:16]) + `"`}
		for _, at := range paths(entry.Name()) {
			h.files[at] = one
		}
	}
	return h, nil
}

// paths are where a file is found: a page at its own place only.
func paths(name string) []string {
	switch name {
	case "board.html":
		return []string{PathBoard}
	case "docs.html":
		return []string{PathDocs, PathChannel}
	}
	return []string{PathAssets + name}
}

// ServeHTTP answers with a file, or 404.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	f, ok := h.files[r.URL.Path]
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
	header.Set("Cache-Control", "no-cache") // kept, and asked for with the ETag each time: an upgrade is seen at once
	header.Set("ETag", f.etag)
	header.Set("Content-Type", f.contentType)
	if names(r.Header.Get("If-None-Match"), f.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	header.Set("Content-Length", strconv.Itoa(len(f.body)))
	_, _ = w.Write(f.body) // who has gone needs no answer
}

// names reports whether a list of entity tags has the one; compared weakly, as
// RFC 9110 wants it of If-None-Match.
func names(list, etag string) bool {
	for one := range strings.SplitSeq(list, ",") {
		one = strings.TrimSpace(one)
		if one == "*" || strings.TrimPrefix(one, "W/") == etag {
			return true
		}
	}
	return false
}
