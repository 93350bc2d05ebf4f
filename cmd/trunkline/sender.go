package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"trunkline/cmd/trunkline/callcenter"
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

// answer is an HTTP answer that was not wanted.
type answer struct {
	status int
	body   string
	after  time.Duration // Retry-After, 0: none
}

func (a *answer) Error() string {
	return strings.TrimSpace(fmt.Sprintf("%d %s %s", a.status, http.StatusText(a.status), printable(a.body)))
}

func (s *sender) do(request *http.Request, want int) error {
	_, err := fetch(s.http, request, want)
	return err
}

// longestAnswer bounds what is read of an answer: a page of 1,000 call records
// is smaller.
const longestAnswer = 4 << 20

// fetch is the body of the answer that is wanted; any other is an *answer.
func fetch(client *http.Client, request *http.Request, want int) ([]byte, error) {
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, longestAnswer))
	if err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	if response.StatusCode == want {
		return body, nil
	}
	seconds, _ := strconv.ParseUint(response.Header.Get("Retry-After"), 10, 16) // absent: 0
	return nil, &answer{response.StatusCode, string(body[:min(len(body), 4<<10)]), time.Duration(seconds) * time.Second}
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
