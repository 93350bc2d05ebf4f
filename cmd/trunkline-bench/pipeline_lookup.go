package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"trunkline/cmd/internal/cli"
	"trunkline/cmd/trunkline-bench/load"
	"trunkline/internal/retry"
)

const reportPath = "/api/v2/reports/cdrs"

// lookups finds call records in the report API, one at a time: after each, the newest
// acknowledged one.
type lookups struct {
	load.Sink   // takes the call records; Publish is this type's own
	pipeline    *pipelineRun
	accounts    []string
	credentials credentials
	token       string
	newest      chan ackedRecord // capacity 1

	mu         sync.Mutex
	foundAfter load.Histogram
	notFound   int
}

// ackedRecord is an acknowledged call record.
type ackedRecord struct {
	stream  int
	seq     uint64
	ackedAt time.Time
}

// lookupReport is the result of the look-ups. FoundMS counts from the acknowledgement; its
// resolution is the pause between two requests.
type lookupReport struct {
	Found    uint64    `json:"found"`
	NotFound int       `json:"not_found"`
	FoundMS  latencies `json:"found_ms"`
}

const (
	lookupInterval = 5 * time.Millisecond
	lookupTimeout  = 10 * time.Second
)

func newLookups(r *pipelineRun, a *benchAccounts, sink load.Sink) *lookups {
	return &lookups{Sink: sink, pipeline: r, accounts: a.ids, newest: make(chan ackedRecord, 1),
		credentials: a.credentials()}
}

func (l *lookups) login(ctx context.Context) error {
	got, err := login(ctx, l.pipeline.client, l.pipeline.url+portalLoginPath, l.credentials)
	l.token = got.AccessToken
	return err
}

// Publish publishes the events and stores the last one as the newest sample.
func (l *lookups) Publish(ctx context.Context, events []load.Event) error {
	last := events[len(events)-1]
	sample := ackedRecord{stream: last.Stream, seq: last.Seq} // copied first: the source reuses the events' memory
	err := l.Sink.Publish(ctx, events)
	if err != nil || sample.seq == 0 {
		return err
	}

	sample.ackedAt = time.Now()
	select {
	case <-l.newest:
	default:
	}

	select {
	case l.newest <- sample:
	default: // another publisher has stored a sample
	}

	return nil
}

// run looks up records until ctx ends, and finishes the current one.
func (l *lookups) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case s := <-l.newest:
			if err := l.awaitRecord(context.WithoutCancel(ctx), s); err != nil {
				return fmt.Errorf("looking up a call record: %w", err)
			}
		}
	}
}

// awaitRecord repeats the request until the report has the record.
func (l *lookups) awaitRecord(ctx context.Context, s ackedRecord) error {
	id := load.CallID(l.pipeline.runID, s.stream, s.seq)
	for {
		request, err := newLookupRequest(ctx, l.pipeline.url, l.token, l.accounts[s.stream], id, s.ackedAt)
		if err != nil {
			return err
		}

		_, err = cli.Fetch(l.pipeline.client, request, http.StatusOK)
		took := time.Since(s.ackedAt)
		var refused *cli.HTTPError

		switch {
		case err == nil:
			l.mu.Lock()
			l.foundAfter.Record(took)
			l.mu.Unlock()
			return nil
		case errors.As(err, &refused) && refused.Status == http.StatusUnauthorized: // the token has expired
			if err := l.login(ctx); err != nil {
				return err
			}
		case refused == nil || refused.Status != http.StatusNotFound:
			return err
		case took > lookupTimeout:
			l.mu.Lock()
			l.notFound++
			l.mu.Unlock()
			return nil
		}

		retry.Sleep(ctx, lookupInterval)
	}
}

func (l *lookups) report() *lookupReport {
	l.mu.Lock()
	defer l.mu.Unlock()
	return &lookupReport{Found: l.foundAfter.Count(), NotFound: l.notFound, FoundMS: newLatencies(&l.foundAfter)}
}

// newLookupRequest returns a request for the call record with an origination id, of a call at about the
// given time.
func newLookupRequest(ctx context.Context, base, token, account, id string, at time.Time) (*http.Request, error) {
	query := url.Values{
		"startDate": {strconv.FormatInt(at.Add(-time.Hour).Unix(), 10)},
		"endDate":   {strconv.FormatInt(at.Add(time.Hour).Unix(), 10)},
	}
	if id != "" {
		query.Set("origination_call_id", id)
	}
	return newReportRequest(ctx, base, token, account, query)
}

func newReportRequest(ctx context.Context, base, token, account string, query url.Values) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base+reportPath+"?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("X-Account-ID", account)
	return request, nil
}
