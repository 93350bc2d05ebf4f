package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"trunkline/internal/cli"
	"trunkline/internal/cli/demo/callcenter"
	"trunkline/internal/retry"
)

// awaitServer waits until the server answers; nil when ctx ended first.
func (d *demo) awaitServer(ctx context.Context) (*sender, error) {
	for began, told := time.Now(), false; ; told = true {
		client, err := d.server.Client()
		if err != nil {
			return nil, err
		}
		sender := &sender{url: d.url, http: client}
		err = sender.healthy(ctx)
		if err == nil {
			return sender, nil
		}
		sender.close()
		if time.Since(began) > d.wait {
			return nil, fmt.Errorf("the server is not ready after %s: %w", d.wait, err)
		}
		if !told {
			d.say("waiting for %s (%v)", d.url, err)
		}
		if !retry.Sleep(ctx, 250*time.Millisecond) {
			return nil, nil
		}
	}
}

// send plays the center until ctx ends or count is reached. An event is sent
// until it is accepted; the next one waits.
func (d *demo) send(ctx context.Context, s *sender, account string) (sent int, err error) {
	center := callcenter.New(account, d.seed)
	tick := time.NewTicker(time.Duration(float64(time.Second) / d.rate))
	defer tick.Stop()
	for d.count == 0 || sent < d.count {
		if err := d.deliver(ctx, s, center.Next(time.Now())); err != nil || ctx.Err() != nil {
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

// keyGrace is the time for which a new key may be unknown to the server.
const keyGrace = 5 * time.Second

// deliver sends one event until it is accepted, refused for good, or ctx ends.
func (d *demo) deliver(ctx context.Context, s *sender, e callcenter.Event) error {
	began, backoff := time.Now(), retry.Backoff{First: 250 * time.Millisecond, Max: 10 * time.Second}
	for {
		err := s.post(ctx, e)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		after := backoff.Next()
		if refused := (*cli.HTTPError)(nil); errors.As(err, &refused) {
			young := refused.Status == http.StatusUnauthorized && time.Since(began) < keyGrace
			if refused.Status < 500 && refused.Status != http.StatusTooManyRequests && !young {
				return fmt.Errorf("the server refused a %s event: %w", e.Format, err)
			}
			after = max(after, refused.RetryAfter)
		}
		if after > time.Second {
			d.say("%v; again in %s", err, after)
		}
		if !retry.Sleep(ctx, after) {
			return nil
		}
	}
}
