package web

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"trunkline/event"
)

func newHandler(t *testing.T) *Handler {
	t.Helper()
	h, err := New()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func get(h http.Handler, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestPagesAndAssets(t *testing.T) {
	h := newHandler(t)
	for path, contentType := range map[string]string{
		"/":                "text/html; charset=utf-8",
		"/docs/http":       "text/html; charset=utf-8",
		"/docs/events":     "text/html; charset=utf-8",
		"/board/main.js":   "text/javascript; charset=utf-8",
		"/board/board.css": "text/css; charset=utf-8",
		"/board/icon.svg":  "image/svg+xml",
	} {
		w := get(h, path)
		if w.Code != 200 || w.Header().Get("Content-Type") != contentType || w.Body.Len() == 0 ||
			w.Header().Get("Content-Length") != fmt.Sprint(w.Body.Len()) {
			t.Errorf("%s: %d %v", path, w.Code, w.Header())
		}

		csp := w.Header().Get("Content-Security-Policy")
		for _, directive := range []string{
			"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "base-uri 'none'",
			"form-action 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'",
			"trusted-types 'none'",
		} {
			if !slices.Contains(strings.Split(csp, "; "), directive) {
				t.Errorf("%s: the policy has no %s: %s", path, directive, csp)
			}
		}

		if strings.Contains(csp, "unsafe") || strings.Contains(csp, "*") || strings.Contains(csp, "http") {
			t.Errorf("%s: the policy is too wide: %s", path, csp)
		}
	}

	for _, path := range []string{"/board/", "/board/none.js", "/board/board.html", "/board/../web.go", "/other"} {
		w := get(h, path)
		if w.Code != 404 || w.Body.String() != `{"success":false,"message":"Not found"}` {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

func TestWhatIsKeptIsAskedForAgain(t *testing.T) {
	h := newHandler(t)
	first := get(h, "/")
	etag := first.Header().Get("ETag")
	if first.Header().Get("Cache-Control") != "no-cache" || !strings.HasPrefix(etag, `"`) {
		t.Fatalf("%v", first.Header())
	}

	for header, status := range map[string]int{
		etag: 304, "W/" + etag: 304, `"other", ` + etag: 304, "*": 304, `"other"`: 200, "": 200,
	} {
		w := get(h, "/", "If-None-Match", header)
		if w.Code != status || w.Code == 304 && w.Body.Len() > 0 || w.Header().Get("Content-Security-Policy") == "" {
			t.Errorf("%q: %d, %d bytes", header, w.Code, w.Body.Len())
		}
	}

	if get(h, "/docs/http").Header().Get("ETag") == etag {
		t.Error("two files have one ETag")
	}
}

func sources(t *testing.T, ends ...string) map[string]string {
	t.Helper()
	all := map[string]string{}
	entries, err := fs.ReadDir(static, "static")
	if err != nil {
		t.Fatal(err)
	}

	for _, entry := range entries {
		if slices.Contains(ends, path.Ext(entry.Name())) {
			text, err := static.ReadFile("static/" + entry.Name())
			if err != nil {
				t.Fatal(err)
			}
			all[entry.Name()] = string(text)
		}
	}

	return all
}

var (
	attribute = regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	imported  = regexp.MustCompile(`(?:from |import\(?)"([^"]+)"`)
	inURL     = regexp.MustCompile(`url\(`)
)

// Every file that a page or module refers to exists, and every file is referred to.
func TestEveryReferenceLeadsSomewhere(t *testing.T) {
	h := newHandler(t)
	// served by package api, docs/site
	elsewhere := map[string]bool{"/openapi.yaml": true, "/asyncapi.yaml": true, "/auth/oidc/start": true, "/docs": true}
	used := map[string]bool{"/": true, "/docs/http": true, "/docs/events": true}

	for name, text := range sources(t, ".html") {
		for _, found := range attribute.FindAllStringSubmatch(text, -1) {
			to := found[1]
			if at, ok := strings.CutPrefix(to, "#"); ok {
				if !strings.Contains(text, `id="`+at+`"`) && at != "main" { // made by main.js
					t.Errorf("%s leads to %s, which is not on it", name, to)
				}
				continue
			}

			if _, ok := h.files[to]; !ok && !elsewhere[to] {
				t.Errorf("%s leads to %s, which is not there", name, to)
			}

			used[to] = true
		}
	}

	for name, text := range sources(t, ".js") {
		for _, found := range imported.FindAllStringSubmatch(text, -1) {
			file, ok := strings.CutPrefix(found[1], "./")
			if _, there := h.files[PathAssets+file]; !ok || !there {
				t.Errorf("%s imports %s, which is not there", name, found[1])
			}
			used[PathAssets+file] = true
		}
	}

	for at := range h.files {
		if !used[at] {
			t.Errorf("%s is used by nothing", at)
		}
	}

	for name, text := range sources(t, ".css") {
		if inURL.MatchString(text) {
			t.Errorf("%s names a URL", name)
		}
	}
}

const library = "preact.js" // preact, its hooks and htm, unchanged as npm has them

// The library is the one whose licence and version docs/decisions/0013 tells.
func TestLibraryIsUnchanged(t *testing.T) {
	sum := sha256.Sum256([]byte(sources(t, ".js")[library]))
	if got := hex.EncodeToString(sum[:]); got != "72284e8e9079c87817145df1110f74e8a2aa040b2fc384922e18dfcb46fc1fd7" {
		t.Errorf("%s has the digest %s", library, got)
	}
}

// Code that the content security policy would block, and code that would parse an event's text as
// HTML.
func TestNothingInlineAndNoHTMLFromStrings(t *testing.T) {
	for name, text := range sources(t, ".html") {
		for _, wrong := range []string{`<style`, ` style=`, ` onclick=`, ` onload=`, `javascript:`, `http://`,
			`https://`} {
			if strings.Contains(text, wrong) {
				t.Errorf("%s has %s", name, wrong)
			}
		}

		for _, script := range regexp.MustCompile(`(?s)<script[^>]*>(.*?)</script>`).FindAllStringSubmatch(text, -1) {
			if script[1] != "" {
				t.Errorf("%s has an inline script", name)
			}
		}
	}

	for name, text := range sources(t, ".js") {
		if name == library { // it sets innerHTML only where dangerouslySetInnerHTML asks for it
			continue
		}

		for _, wrong := range []string{
			"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "DOMParser",
			`setAttribute("style"`, "localStorage", "document.cookie", "console.", "dangerouslySetInnerHTML",
		} {
			if strings.Contains(text, wrong) && (wrong != "localStorage" || name != "preferences.js") {
				t.Errorf("%s has %s", name, wrong)
			}
		}
	}
}

// The board requests every event type by name.
func TestKindsAreTheTypes(t *testing.T) {
	var want []string
	for _, kind := range event.Types() {
		want = append(want, string(kind))
	}

	var got []string
	for _, found := range regexp.MustCompile(`(?m)^  "([^"]+)",$`).FindAllStringSubmatch(
		sources(t, ".js")["event_types.js"], -1) {
		got = append(got, found[1])
	}

	if !slices.Equal(got, want) {
		t.Errorf("event_types.js has %v\nthe types are %v", got, want)
	}
}

// The page has its language, a skip link and no text that a script has to replace.
func TestPagesAreWhole(t *testing.T) {
	for page, text := range sources(t, ".html") {
		if !strings.Contains(text, `<html lang="en">`) || !strings.Contains(text, `class="skip"`) {
			t.Errorf("%s lacks its language or its skip link", page)
		}
	}
}

// What Add adds is made once, at its first request, and has the headers of the board's files.
func TestAddedPages(t *testing.T) {
	h := newHandler(t)
	made := 0
	h.Add("/docs/install", func() ([]byte, error) {
		made++
		return []byte("<p>installed</p>"), nil
	})

	h.Add("/docs/search.json", func() ([]byte, error) { return nil, errors.New("no index") })
	for range 2 {
		w := get(h, "/docs/install")
		if w.Code != http.StatusOK || w.Body.String() != "<p>installed</p>" ||
			w.Header().Get("Content-Type") != "text/html; charset=utf-8" ||
			w.Header().Get("Content-Security-Policy") != policy || w.Header().Get("ETag") == "" {
			t.Errorf("%d %s %v", w.Code, w.Body, w.Header())
		}
	}

	if made != 1 {
		t.Errorf("the page was made %d times", made)
	}
	if w := get(h, "/docs/search.json"); w.Code != http.StatusInternalServerError {
		t.Errorf("a page that cannot be made: %d", w.Code)
	}
	if w := get(h, "/docs/nothing"); w.Code != http.StatusNotFound {
		t.Errorf("a page that is not there: %d", w.Code)
	}
}
