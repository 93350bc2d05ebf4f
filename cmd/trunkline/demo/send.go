package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"trunkline/cmd/internal/cli"
	"trunkline/cmd/trunkline/demo/callcenter"
	"trunkline/internal/retry"
)

// awaitServer waits until the server answers. It returns false if ctx ended first.
func (d *demo) awaitServer(ctx context.Context) (up bool, err error) {
	for began, reported := time.Now(), false; ; reported = true {
		// Anew at each try: a server creates its certificate at its first start.
		d.client, err = d.server.Client()
		if err != nil {
			return false, err
		}

		err = d.checkHealth(ctx)
		if err == nil {
			return true, nil
		}

		d.client.CloseIdleConnections()
		if time.Since(began) > d.wait {
			return false, fmt.Errorf("the server is not ready after %s: %w", d.wait, err)
		}
		if !reported {
			d.p.Printf("waiting for %s (%v)", d.url, err)
		}
		if !retry.Sleep(ctx, 250*time.Millisecond) {
			return false, nil
		}
	}
}

func (d *demo) checkHealth(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url+"/api/v2/cc_events_channel/health", nil)
	if err != nil {
		return err
	}
	_, err = cli.Fetch(d.client, request, http.StatusOK)
	return err
}

func (d *demo) post(ctx context.Context, e callcenter.Event) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, d.url+"/api/v2/ingest/"+e.Format,
		bytes.NewReader(e.JSON))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-API-Key", d.apiKey)
	_, err = cli.Fetch(d.client, request, http.StatusAccepted)
	return err
}

// send sends the events of the center until ctx ends or count is reached. It retries each event
// until it is accepted, before the next one.
func (d *demo) send(ctx context.Context, account string) (sent int, err error) {
	center := callcenter.New(account, d.seed)
	tick := time.NewTicker(time.Duration(float64(time.Second) / d.rate))
	defer tick.Stop()

	for d.count == 0 || sent < d.count {
		err := d.postWithRetry(ctx, center.Next(time.Now()))
		if err != nil || ctx.Err() != nil {
			return sent, err
		}

		sent++
		select {
		case <-ctx.Done():
			return sent, nil
		case <-tick.C:
		}
	}

	return sent, nil
}

// keyGrace is the time within which a server learns of a new API key: until then it answers 401.
const keyGrace = 5 * time.Second

// postWithRetry posts one event until it is accepted or permanently refused, or ctx ends.
func (d *demo) postWithRetry(ctx context.Context, e callcenter.Event) error {
	began, backoff := time.Now(), retry.Backoff{First: 250 * time.Millisecond, Max: 10 * time.Second}
	for {
		err := d.post(ctx, e)
		if err == nil || ctx.Err() != nil {
			return nil
		}

		delay := backoff.Next()
		var refused *cli.HTTPError
		if errors.As(err, &refused) {
			keyIsNew := refused.Status == http.StatusUnauthorized && time.Since(began) < keyGrace
			if refused.Status < 500 && refused.Status != http.StatusTooManyRequests && !keyIsNew {
				return fmt.Errorf("the server refused a %s event: %w", e.Format, err)
			}
			delay = max(delay, refused.RetryAfter)
		}

		if delay > time.Second {
			d.p.Printf("%v; retrying in %s", err, delay)
		}
		if !retry.Sleep(ctx, delay) {
			return nil
		}
	}
}
