package main

import (
	"net/url"
	"strings"

	"trunkline/cmd/internal/cli"
	"trunkline/cmd/trunkline-bench/load"
)

// The ways to publish events.
const (
	throughAuto  = "auto"
	throughKafka = "kafka"
	throughHTTP  = "http"
)

// maxRate is the highest --rate, per second.
const maxRate = 1e6

// validateShared checks the flags of addFlags and completes the URL. allowUnpaced allows --rate 0,
// as fast as possible.
func (b *bench) validateShared(allowUnpaced bool) error {
	switch {
	case b.rate < 0 || b.rate == 0 && !allowUnpaced || !(b.rate <= maxRate):
		least := map[bool]string{true: "at least", false: "above"}[allowUnpaced]
		return cli.Usagef("--rate must be %s 0 and at most %.0f, is %v", least, maxRate, b.rate)
	case b.duration <= 0:
		return cli.Usagef("--duration must be above 0, is %v", b.duration)
	case b.warmup < 0:
		return cli.Usagef("--warmup must not be below 0, is %v", b.warmup)
	case b.climb < 0:
		return cli.Usagef("--climb must not be below 0, is %v", b.climb)
	case b.climb > 0 && b.rate == 0:
		return cli.Usagef("--climb needs a --rate to begin with")
	}

	for _, pid := range b.pids {
		if pid < 1 {
			return cli.Usagef("--server-pid is the number of a process, not %d", pid)
		}
	}

	for _, base := range b.metrics {
		u, err := url.Parse(base)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return cli.Usagef("--metrics is such as http://127.0.0.1:9464, not %q", base)
		}
	}

	return b.completeURL()
}

// maxEventBytes is the size of the largest record, in bytes.
const maxEventBytes = 1 << 20

// validateAccounts checks the flags of addAccountFlags.
func (b *bench) validateAccounts() error {
	if len(b.accountIDs) > 0 {
		b.accounts = len(b.accountIDs)
	}

	switch {
	case b.username != "" && (b.domain == "" || len(b.accountIDs) == 0):
		return cli.Usagef("--username needs --domain and --account")
	case b.username == "" && len(b.accountIDs) > 0:
		return cli.Usagef("--account needs --username")
	case b.accounts < 1 || b.accounts > load.MaxStreams:
		return cli.Usagef("--accounts must be from 1 to %d, is %d", load.MaxStreams, b.accounts)
	}

	return nil
}

// validateEvents checks the flags of addEventFlags.
func (b *bench) validateEvents() error {
	if err := b.validateAccounts(); err != nil {
		return err
	}

	switch minSize := load.MinEventSize(b.longestAccount()); {
	case b.username == "" && b.apiKey != "":
		return cli.Usagef("--api-key needs --username")
	case b.size > maxEventBytes:
		return cli.Usagef("--size must be at most %d, is %d", maxEventBytes, b.size)
	case b.size < minSize:
		return cli.Usagef("--size must be at least %d, is %d", minSize, b.size)
	}

	return nil
}

// completeURL completes the server's URL.
func (b *bench) completeURL() error {
	s, err := b.p.Settings()
	if err != nil {
		return err
	}

	if b.url == "" {
		b.url = cli.ServerURL(s)
	}

	b.url = strings.TrimRight(b.url, "/")
	u, err := url.Parse(b.url)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http" {
		return cli.Usagef("--url must be https://host:port, without a user")
	}

	return nil
}
