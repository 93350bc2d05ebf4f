package origination

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/google/uuid"

	"trunkline/event"
	"trunkline/identity"
	"trunkline/internal/fault"
)

// Originate rings the caller's own extension and dials the destination once it is answered. callID is
// the origination_call_id, or "" if the platform gave none. Requests of a user with the same
// idempotencyKey ("" for none) within a day place one call and get the same response.
func (s *Service) Originate(ctx context.Context, caller *identity.Principal,
	destination, idempotencyKey string) (callID string, err error) {
	callID, err = s.placeOrder(ctx, caller, destination, idempotencyKey)
	if err != nil {
		s.metrics.refused.WithLabelValues(kindLabel(err)).Inc()
	}
	return callID, err
}

func (s *Service) placeOrder(ctx context.Context, caller *identity.Principal, destination, key string) (string, error) {
	if caller.IsKey() {
		return "", fault.Forbidden("API keys have no extension to ring")
	}
	if err := ValidateDestination(destination); err != nil {
		return "", err
	}
	if err := checkKey(key); err != nil {
		return "", err
	}
	if !s.Ready() {
		return "", fault.Unavailable(nil, time.Second, "Click to call is not ready")
	}
	if key != "" {
		return s.placeOnce(ctx, caller, destination, key)
	}

	order, err := s.admit(ctx, caller, destination)
	if err != nil {
		return "", err
	}

	return s.place(ctx, order)
}

// admit returns the order of a caller who may place it, and counts it against the limit.
func (s *Service) admit(ctx context.Context, caller *identity.Principal, destination string) (Order, error) {
	order, err := s.newOrder(ctx, caller, destination)
	if err == nil {
		err = s.admission.CountAttempt(ctx, order.newAttempt())
	}
	return order, err
}

// newOrder checks the request and returns its order.
func (s *Service) newOrder(ctx context.Context, caller *identity.Principal, destination string) (Order, error) {
	user, err := s.users.FindUser(ctx, caller.UserID)
	if err != nil {
		return Order{}, fault.Internal(err, "The user document could not be read")
	}

	account, known := s.users.Tree().Account(user.AccountID)
	switch {
	case !known:
		return Order{}, fault.Internal(nil, "The user document could not be read")
	case user.PresenceID == "":
		return Order{}, fault.New(fault.KindUnprocessable, "The user has no extension to ring: presence_id is not set")
	}

	attempt := Attempt{Origin: OriginREST, AccountID: account.ID, UserID: user.ID}
	if err := s.admission.CheckDestination(ctx, attempt, destination); err != nil {
		return Order{}, err
	}

	order := Order{
		ID: uuid.Must(uuid.NewV7()).String(), InteractionID: newInteraction(time.Now()), AccountID: account.ID,
		Domain: account.Domain,
		UserID: user.ID, Extension: user.PresenceID, Destination: destination, ClickToCallID: user.ClickToCallID,
	}
	order.ID, err = nameCall(ctx, s.driver, order)

	return order, err
}

// Namer is a Driver that chooses the ids of its calls.
type Namer interface {
	// Name returns the Order.ID to use, which contains the order's current unique id. It places
	// nothing.
	Name(ctx context.Context, order Order) (id string, err error)
}

func nameCall(ctx context.Context, driver Driver, order Order) (id string, err error) {
	namer, ok := driver.(Namer)
	if !ok {
		return order.ID, nil
	}
	return namer.Name(ctx, order)
}

// newInteraction returns an interaction id in Kazoo's form: 11 digits of Gregorian seconds and 8
// hexadecimal digits.
func newInteraction(now time.Time) string {
	var b [4]byte
	rand.Read(b[:]) // never fails
	return fmt.Sprintf("%011d-%x", now.Unix()+event.GregorianEpoch, b)
}

func (o Order) newAttempt() Attempt {
	return Attempt{Origin: OriginREST, CallID: o.ID, AccountID: o.AccountID, UserID: o.UserID}
}
