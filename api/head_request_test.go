package api

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestHeadIsGetWithoutTheBody(t *testing.T) {
	e := newEnv(t)
	server := httptest.NewServer(e.api)
	defer server.Close()

	r, err := http.Head(server.URL + "/openapi.yaml")
	must(t, err)
	body, err := io.ReadAll(r.Body)
	if r.StatusCode != 200 || len(body) != 0 || err != nil || r.ContentLength < 1000 {
		t.Errorf("%d, %d of %d bytes, %v", r.StatusCode, len(body), r.ContentLength, err)
	}

	_ = r.Body.Close()
}
