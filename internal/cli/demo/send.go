package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"trunkline/internal/cli"
	"trunkline/internal/cli/demo/callcenter"
)

// whichServer settles the URL.
func (d *demo) whichServer() error {
	s, err := d.p.Settings()
	if err != nil {
		return err
	}
	if d.url == "" {
		d.url = cli.ServerURL(s)
	}
	d.url = strings.TrimRight(d.url, "/")
	parsed, err := url.Parse(d.url)
	if err != nil || parsed.Host == "" || parsed.User != nil || parsed.Scheme != "https" && parsed.Scheme != "http" {
		return cli.Usagef("--url must be https://host:port, without a user")
	}
	return nil
}

// newSender trusts what there is to trust now: a server's own certificate is
// made at its first start.
func (d *demo) newSender() (*sender, error) {
	s, err := d.p.Settings()
	if err != nil {
		return nil, err
	}
	tlsConfig, err := cli.Trust(s, d.insecure, d.ca).Config()
	if err != nil {
		return nil, cli.UsageError(err)
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: tlsConfig, ForceAttemptHTTP2: true}
	return &sender{url: d.url, http: &http.Client{Transport: transport, Timeout: 30 * time.Second}}, nil
}

// awaitServer waits until the server answers; nil when ctx ended first.
func (d *demo) awaitServer(ctx context.Context) (*sender, error) {
	for began, told := time.Now(), false; ; told = true {
		sender, err := d.newSender()
		if err != nil {
			return nil, err
		}
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
		if !cli.Sleep(ctx, 250*time.Millisecond) {
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

// keyGrace is how long a new key may be unknown to the server.
const keyGrace = 5 * time.Second

// deliver sends one event until it is accepted, refused for good, or ctx ends.
func (d *demo) deliver(ctx context.Context, s *sender, e callcenter.Event) error {
	began, wait := time.Now(), 250*time.Millisecond
	for {
		err := s.post(ctx, e)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		after := wait
		if refused := (*cli.HTTPError)(nil); errors.As(err, &refused) {
			young := refused.Status == http.StatusUnauthorized && time.Since(began) < keyGrace
			if refused.Status < 500 && refused.Status != http.StatusTooManyRequests && !young {
				return fmt.Errorf("the server refused a %s event: %w", e.Format, err)
			}
			after = max(after, refused.RetryAfter)
		}
		if wait > time.Second || after > time.Second { // worth a word
			d.say("%v; again in %s", err, after)
		}
		if !cli.Sleep(ctx, after) {
			return nil
		}
		wait = min(2*wait, 10*time.Second)
	}
}
