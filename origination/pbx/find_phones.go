package pbx

import (
	"cmp"
	"context"
	"net"
	"strconv"
	"strings"

	"trunkline/internal/fault"
	"trunkline/origination"
	"trunkline/telephony/sip"
)

// callingParty is the calling party of a destination.
type callingParty struct {
	user   string // the extension, or the trunk's caller number
	name   string
	domain string // the account's
	// fromTrunk means that the call came from a trunk and must not leave by one.
	fromTrunk bool
	attempt   origination.Attempt // for the limits of numbers outside
}

// findPhones returns the phones of a destination, each with a cdrBuilder. The error is a *sip.Failure with
// the cause if there are none.
func (c *call) findPhones(ctx context.Context, caller callingParty, destination string) ([]phone, error) {
	d := c.driver
	user, err := d.directory.SIPUser(ctx, caller.domain, destination)
	switch {
	case err == nil && user.AccountID == c.accountID:
		phones, err := c.registeredPhones(ctx, user, caller, legNumbers{caller.user, destination})
		if err != nil {
			d.log.Warn("looking up a destination's phones failed", "error", err)
			return nil, &sip.Failure{Cause: sip.NormalTemporaryFailure}
		}

		if len(phones) == 0 {
			return nil, &sip.Failure{Cause: sip.SubscriberAbsent}
		}

		return phones, nil
	case err != nil && fault.KindOf(err) != fault.KindNotFound:
		d.log.Warn("looking up a destination failed", "error", err)
		return nil, &sip.Failure{Cause: sip.NormalTemporaryFailure}
	case d.config.Trunk.Address == "" || caller.fromTrunk:
		return nil, &sip.Failure{Cause: sip.UnallocatedNumber}
	}

	if d.admission.CheckDestination(ctx, caller.attempt, destination) != nil {
		return nil, &sip.Failure{Cause: sip.FacilityRejected} // 403
	}

	return []phone{c.trunkPhone(caller, destination)}, nil
}

// registeredPhones returns a user's registered phones.
func (c *call) registeredPhones(ctx context.Context, user sip.User, caller callingParty,
	numbers legNumbers) ([]phone, error) {
	bindings, err := c.driver.server.Registrations.List(ctx, user.AccountID, user.Extension)
	if err != nil {
		return nil, err
	}

	phones := make([]phone, 0, len(bindings))
	for _, b := range bindings {
		callID := sip.NewCallID()
		cdr := c.newCDR(callID, outbound, numbers)
		cdr.setUser(user)
		phones = append(phones, phone{cdr: cdr, encryption: c.driver.config.Encryption, OutgoingCall: sip.OutgoingCall{
			Target: b.Target(), CallID: callID,
			From: sip.Party{Name: caller.name, User: caller.user, Host: caller.domain},
			To:   sip.Party{User: user.Extension, Host: user.Domain},
		}})
	}

	return phones, nil
}

// trunkPhone returns the trunk as a target for a number.
func (c *call) trunkPhone(caller callingParty, number string) phone {
	t := c.driver.config.Trunk
	shown := cmp.Or(t.CallerID, caller.user)
	host, port, err := net.SplitHostPort(t.Address)
	if err != nil {
		host, port = t.Address, strconv.Itoa(sip.DefaultPort(t.Transport))
	}

	callID := sip.NewCallID()
	dialled := strings.TrimPrefix(number, t.StripPrefix)
	return phone{cdr: c.newCDR(callID, outbound, legNumbers{shown, number}),
		encryption: cmp.Or(sip.Encryption(t.SRTP), c.driver.config.Encryption), OutgoingCall: sip.OutgoingCall{
			Target: sip.Target{
				URI: "sip:" + sip.EscapeUser(dialled) + "@" + t.Address, Transport: strings.ToUpper(t.Transport),
				Destination: net.JoinHostPort(strings.Trim(host, "[]"), port),
			},
			CallID: callID,
			From:   sip.Party{Name: caller.name, User: shown, Host: c.driver.server.Host()},
			To:     sip.Party{User: dialled, Host: host}, Username: t.Username, Password: string(t.Password),
		}}
}
