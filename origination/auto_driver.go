package origination

import (
	"context"
	"errors"
	"sync"
	"time"

	"trunkline/internal/fault"
)

// AutoDriver is a driver for demonstrations: it calls real phones if the owner has one registered, and
// simulates the call otherwise.
type AutoDriver struct {
	Phones    Driver
	Simulator Driver
	// Registered reports whether a phone is registered as the extension.
	Registered func(ctx context.Context, accountID, extension string) (bool, error)
	// Simulated reports whether an id is one of the Simulator's.
	Simulated func(callID string) bool
}

// Name implements Namer. The id shows which of the two drivers has the call.
func (a *AutoDriver) Name(ctx context.Context, order Order) (id string, err error) {
	registered, err := a.Registered(ctx, order.AccountID, order.Extension)
	if err != nil {
		return "", fault.Unavailable(err, time.Second, "The registered phones could not be asked")
	}
	if registered {
		return nameCall(ctx, a.Phones, order)
	}
	return nameCall(ctx, a.Simulator, order)
}

// Originate implements Driver.
func (a *AutoDriver) Originate(ctx context.Context, order Order) (Placed, error) {
	return a.driverOf(order.ID).Originate(ctx, order)
}

// Cancel implements Driver.
func (a *AutoDriver) Cancel(ctx context.Context, callID string) error {
	return a.driverOf(callID).Cancel(ctx, callID)
}

func (a *AutoDriver) driverOf(callID string) Driver {
	if a.Simulated(callID) {
		return a.Simulator
	}
	return a.Phones
}

// Follow implements Driver. It ends when either driver has ended.
func (a *AutoDriver) Follow(ctx context.Context, open []OpenCall, report func(Progress)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	phones, simulated := a.split(open)
	var failed [2]error
	var wg sync.WaitGroup
	wg.Go(func() { defer cancel(); failed[0] = a.Phones.Follow(ctx, phones, report) })
	wg.Go(func() { defer cancel(); failed[1] = a.Simulator.Follow(ctx, simulated, report) })
	wg.Wait()
	return errors.Join(failed[:]...)
}

func (a *AutoDriver) split(open []OpenCall) (phones, simulated []OpenCall) {
	for _, call := range open {
		if a.Simulated(call.CallID) {
			simulated = append(simulated, call)
		} else {
			phones = append(phones, call)
		}
	}
	return phones, simulated
}

// Adopt implements Adopter for those of the two drivers that implement it.
func (a *AutoDriver) Adopt(ctx context.Context, open []OpenCall) (rest []OpenCall) {
	phones, simulated := a.split(open)
	return append(adoptCalls(ctx, a.Phones, phones), adoptCalls(ctx, a.Simulator, simulated)...)
}

// adoptCalls calls the driver's Adopt. A driver without Adopt takes over no calls.
func adoptCalls(ctx context.Context, driver Driver, open []OpenCall) (rest []OpenCall) {
	adopter, ok := driver.(Adopter)
	if !ok || len(open) == 0 {
		return open
	}
	return adopter.Adopt(ctx, open)
}
