package demo

import (
	"bytes"
	"context"
	"net/http"

	"trunkline/internal/cli"
	"trunkline/internal/cli/demo/callcenter"
)

// sender posts to the public HTTP API.
type sender struct {
	url, key string
	http     *http.Client
}

func (s *sender) close() { s.http.CloseIdleConnections() }

func (s *sender) healthy(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/api/v2/cc_events_channel/health", nil)
	if err != nil {
		return err
	}
	return s.do(request, http.StatusOK)
}

func (s *sender) do(request *http.Request, want int) error {
	_, err := cli.Fetch(s.http, request, want)
	return err
}

func (s *sender) post(ctx context.Context, e callcenter.Event) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/api/v2/ingest/"+e.Format, bytes.NewReader(e.JSON))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-API-Key", s.key)
	return s.do(request, http.StatusAccepted)
}
