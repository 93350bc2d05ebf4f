package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"time"

	"trunkline/cmd/internal/cli"
	"trunkline/cmd/trunkline-bench/load"
	"trunkline/cmd/trunkline-bench/load/requests"
	"trunkline/identity"
)

// apiRun is the state of one run.
type apiRun struct {
	*apiBench
	run      string
	client   *http.Client
	observer observer
	accounts *benchAccounts
	token    string   // of the administrator
	callers  []string // their tokens
	calls    []callRecord
	load     *requests.Load
	report   apiReport
	cleanup  cleanups
}

// callRecord is a call record that can be looked up.
type callRecord struct {
	account, originationID string
	time                   time.Time
}

// run executes a run. Once the measurement has begun, it returns a report even after an error.
func (b *apiBench) run(ctx context.Context) error {
	if err := load.RaiseFileLimit(uint64(b.connections) + spareFiles); err != nil {
		return err
	}
	r := &apiRun{apiBench: b, run: rand.Text()[:load.RunLength]}
	defer r.cleanup.run()
	if err := r.prepare(ctx); err != nil {
		return unlessInterrupted(ctx, err)
	}
	err := r.measure(ctx)
	r.report.Interrupted = ctx.Err() != nil
	return b.printReport(&r.report, err)
}

// prepare creates the accounts, users and records of the run and sends each operation once. It
// returns an error if one fails.
func (r *apiRun) prepare(ctx context.Context) (err error) {
	r.client, err = r.clientWithConnections(r.connections)
	if err != nil {
		return err
	}
	observing, err := r.bench.client() // its own connections
	if err != nil {
		return err
	}
	r.observer = observer{pids: r.pids, metrics: r.metrics, client: observing}
	if err := r.checkServer(ctx, r.client); err != nil {
		return err
	}
	r.accounts, err = r.openAccounts(ctx, r.run, identity.RoleAdmin)
	if err != nil {
		return err
	}
	r.cleanup.add(r.accounts.delete)
	r.cleanup.add(func() {
		r.reportLeftovers(r.accounts,
			"the run's call records, on the topics and in the reports, and its recording encryption")
	})
	if err := r.login(ctx); err != nil {
		return err
	}
	if r.hasOperation(opCall) {
		if err := r.createCallers(ctx); err != nil {
			return fmt.Errorf("creating users for the calls: %w", err)
		}
	}
	if r.hasOperation(opLookup) || r.hasOperation(opReport) {
		if err := r.createCallRecords(ctx); err != nil {
			return err
		}
	}
	var operations []requests.Operation
	for _, name := range allOperations {
		if r.hasOperation(name) {
			operations = append(operations,
				requests.Operation{Name: name, Weight: r.weights[name], Do: r.operation(name)})
		}
	}
	if err := r.checkOperations(ctx, operations); err != nil {
		return err
	}
	r.report = apiReport{
		Scenario: "api", Transport: scheme(r.url), Loop: "open", Rate: r.rate, Connections: r.connections,
		Mix: r.weights, Accounts: len(r.accounts.ids), Users: len(r.callers),
	}
	if r.rate == 0 {
		r.report.Loop = "closed"
	}
	r.load, err = requests.New(operations, r.connections)
	return err
}

// login returns the administrator's token, which must be valid for the whole run.
func (r *apiRun) login(ctx context.Context) error {
	got, err := login(ctx, r.client, r.url+portalLogin, r.accounts.credentials())
	if err != nil {
		return fmt.Errorf("%w: does the server at %s have the role api, and do the settings name its database?", err,
			r.url)
	}
	r.token = got.AccessToken
	lasts := time.Duration(got.ExpiresIn) * time.Second
	if r.warmup+r.duration > lasts {
		return cli.Usagef("--duration must be shorter: the server's tokens last %s", lasts)
	}
	return nil
}

// checkOperations sends each operation once and returns the first error.
func (r *apiRun) checkOperations(ctx context.Context, operations []requests.Operation) error {
	for _, o := range operations {
		_, err := o.Do(ctx, 0)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var answer *requests.Unexpected
		switch {
		case errors.As(err, &answer) && answer.Status == http.StatusNotFound:
			return fmt.Errorf(
				"the server at %s is not ready for %s: %w: does it have the role? Else omit the operation from --mix",
				r.url, o.Name, err)
		case err != nil:
			return fmt.Errorf("the server at %s is not ready for %s: %w", r.url, o.Name, err)
		}
	}
	return nil
}

// maxCallers bounds the users that place calls: creating and logging in each costs a password
// hash.
const maxCallers = 1000

// callersNeeded returns the number of users needed to stay below the settings' limit of calls per
// minute and user.
func (r *apiRun) callersNeeded(perMinute int) int {
	switch {
	case r.users > 0:
		return r.users
	case perMinute == 0:
		return 10
	case r.rate == 0 || r.climb > 0:
		return 200
	}
	seconds := min(r.warmup+r.duration, time.Minute).Seconds()
	return min(int(r.rate*r.share(opCall)*seconds)/perMinute+2, maxCallers)
}
