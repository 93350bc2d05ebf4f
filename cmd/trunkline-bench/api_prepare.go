package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"trunkline/cmd/internal/cli"
	"trunkline/cmd/trunkline-bench/load"
	"trunkline/event"
	"trunkline/identity"
	"trunkline/internal/retry"
)

// createCallers creates users with an extension and logs them in.
func (r *apiRun) createCallers(ctx context.Context) error {
	s, err := r.p.Settings()
	if err != nil {
		return err
	}
	n := r.callersNeeded(s.Origination.UserPerMinute)
	maxCalls := s.Origination.AccountCalls
	if maxCalls > 0 && r.share(opCall) > 0 {
		r.printf("origination.account_calls is %d: above about %.0f calls a second the server refuses more; set it to 0 to measure them",
			maxCalls, float64(maxCalls)/simulatedCallDuration.Seconds())
	}
	created := 0
	err = r.p.WithDirectory(ctx, func(directory *identity.Directory) error {
		for last := time.Now(); created < n; created++ {
			_, err := directory.CreateUser(ctx, identity.NewUser{
				Account: r.accounts.root, Username: callerName(created), Password: r.accounts.password,
				Role: identity.RoleUser, PresenceID: strconv.Itoa(firstExtension + created),
			})
			if err != nil {
				return err
			}
			if time.Since(last) > time.Second {
				last = time.Now()
				r.printf("created %d of %d users", created+1, n)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	// their records name the account
	r.cleanup.add(func() { retry.Sleep(context.WithoutCancel(ctx), simulatedCallDuration) })
	retry.Sleep(ctx, accountPropagation)
	return r.loginCallers(ctx, n)
}

const firstExtension = 10_000

// simulatedCallDuration is the time until a simulated call has ended and its records are stored.
const simulatedCallDuration = 4 * time.Second

func callerName(i int) string { return fmt.Sprintf("caller-%d", i+1) }

// loginCallers logs in a few users at a time, because the server hashes each password.
func (r *apiRun) loginCallers(ctx context.Context, n int) error {
	r.callers = make([]string, n)
	errs := make([]error, 4)
	var running sync.WaitGroup
	for worker := range errs {
		running.Go(func() {
			for i := worker; i < n && errs[worker] == nil; i += len(errs) {
				who := r.accounts.credentials()
				who.Username = callerName(i)
				var got tokenResponse
				got, errs[worker] = login(ctx, r.client, r.url+portalLogin, who)
				r.callers[i] = got.AccessToken
			}
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

func (a *benchAccounts) credentials() credentials {
	return credentials{Username: a.username, Password: a.password, Domain: a.domain}
}

// createCallRecords posts call records to look up and waits until the report returns them. In accounts
// that the run did not create, it uses the existing records.
func (r *apiRun) createCallRecords(ctx context.Context) error {
	if r.username != "" {
		return r.findCallRecords(ctx)
	}
	sink, err := r.httpSink(ctx, r.client, r.accounts)
	if err != nil {
		return err
	}
	sink.format = rawCallRecords.format
	var events []load.Event
	for i := range r.records {
		stream := i % len(r.accounts.ids)
		stamp := load.Stamp{Stream: stream, Seq: uint64(i/len(r.accounts.ids) + 1)}
		at := time.Now().Add(-time.Duration(i%3600) * time.Second)
		stamp.At = at.UnixNano()
		account := r.accounts.ids[stream]
		events = append(events, load.Event{JSON: load.CallRecord(nil, stamp, r.run, account, nil)})
		r.calls = append(r.calls, callRecord{account, load.CallID(r.run, stream, stamp.Seq), at})
		if len(events) == 500 || i == r.records-1 {
			if err := sink.Publish(ctx, events); err != nil {
				return fmt.Errorf("posting call records to look up: %w", err)
			}
			events = events[:0]
		}
	}
	for i := max(0, len(r.calls)-len(r.accounts.ids)); i < len(r.calls); i++ { // the last of each account
		if err := r.awaitCallRecord(ctx, uint64(i)); err != nil {
			return err
		}
	}
	return nil
}

func (r *apiRun) awaitCallRecord(ctx context.Context, i uint64) error {
	lookup := r.operation(opLookup)
	for began := time.Now(); ; {
		status, err := lookup(ctx, i)
		if err == nil {
			return nil
		}
		if status != http.StatusNotFound || time.Since(began) > firstEventTimeout {
			return fmt.Errorf("a posted call record does not appear in the reports: %w: "+
				"does the server have the roles normalizer, cdrindex and api?", err)
		}
		if !retry.Sleep(ctx, 100*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// findCallRecords finds calls with an origination id in the last month.
func (r *apiRun) findCallRecords(ctx context.Context) error {
	const month = 30 * 24 * time.Hour
	for _, account := range r.accounts.ids {
		request, err := newReportPageRequest(ctx, r.url, r.token, account, time.Now().Add(-month), 1000)
		if err != nil {
			return err
		}
		text, err := cli.Fetch(r.client, request, http.StatusOK)
		if err != nil {
			return fmt.Errorf("looking for call records of account %s: %w", account, err)
		}
		var page struct {
			Data []event.CDR `json:"data"`
		}
		if err := json.Unmarshal(text, &page); err != nil {
			return fmt.Errorf("looking for call records of account %s: %w", account, err)
		}
		for _, row := range page.Data {
			if row.OriginationCallID != "" {
				r.calls = append(r.calls, callRecord{account, row.OriginationCallID, time.Unix(row.Timestamp, 0)})
			}
		}
	}
	if len(r.calls) == 0 && r.hasOperation(opLookup) {
		return errors.New(
			"--mix: lookup has nothing to find: the accounts have no call records with an origination id in the last 30 days")
	}
	return nil
}
