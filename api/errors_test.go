package api

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"trunkline/internal/fault"
)

func TestEveryKindHasItsStatus(t *testing.T) {
	e := newEnv(t)
	for kind, status := range map[fault.Kind]int{
		fault.KindInvalid: 400, fault.KindUnauthenticated: 401, fault.KindForbidden: 403, fault.KindNotFound: 404,
		kindMethod: 405, kindClientClosed: 499, fault.KindConflict: 409, fault.KindGone: 410,
		fault.KindPrecondition: 412,
		fault.KindTooLarge:     413, fault.KindUnsupported: 415, fault.KindRange: 416, fault.KindUnprocessable: 422,
		fault.KindUpgrade: 426, fault.KindLimited: 429, fault.KindInternal: 500, fault.KindRefused: 502,
		fault.KindUnavailable: 503, "a kind of tomorrow": 500,
	} {
		err := fmt.Errorf("reading x: %w", &fault.Error{
			Kind: kind, Message: "in words", Fields: []fault.Field{{Field: "f", Code: "c", Message: "m"}},
			Cause: errors.New("secret"), RetryAfter: 61 * time.Second / 60,
		})
		w := e.through(httptest.NewRequest("GET", "/"+strconv.Itoa(status)+string(kind[0]), nil),
			func(echo.Context) error { return err })
		if w.Code != status ||
			w.Body.String() != `{"success":false,"message":"in words","errors":[{"field":"f","code":"c","message":"m"}]}` {
			t.Errorf("%s: %d %s", kind, w.Code, w.Body)
		}
		if got := w.Header().Get("Retry-After"); (got == "2") != (status == 429 || status == 503) {
			t.Errorf("%s: Retry-After %q", kind, got)
		}

		if got := w.Header().Get("WWW-Authenticate"); (got == "Bearer") != (status == 401) {
			t.Errorf("%s: WWW-Authenticate %q", kind, got)
		}
	}
}

func TestWhatIsNotThere(t *testing.T) {
	e := newEnv(t)
	for _, path := range []string{"/nope", "/ucp/v2", "/ucp/v2/login/", "/api/v2/ingest/", "/api/v2/ingest/a/b", "/%00",
		"/../etc/passwd", "/schemas/nope", "/schemas/..%2fopenapi.yaml", "/"} {
		w := e.do("GET", path, nil, "")
		if w.Code != 404 && w.Code != 405 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}

	w := e.ask(405, "DELETE", "/ucp/v2/login", nil, "", nil)
	if allow := w.Header().Get("Allow"); !strings.Contains(allow, "POST") {
		t.Errorf("Allow %q", allow)
	}

	e.ask(405, "GET", "/api/v2/ingest/generic", nil, "", nil)
}
