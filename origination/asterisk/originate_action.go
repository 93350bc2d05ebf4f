package asterisk

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"trunkline/internal/fault"
	"trunkline/origination"
	"trunkline/origination/dialtext"
	"trunkline/telephony/ami"
)

// Suffixes of the ids that are derived from a call's id.
const (
	ownerSuffix     = "-owner"     // unique id of the owner's channel
	otherSuffix     = "-owner-2"   // unique id of the second channel if the owner is dialled through a Local channel
	originateSuffix = "-originate" // ActionID of the Originate and its OriginateResponse
)

func ownerChannel(callID string) string { return callID + ownerSuffix }

// originateAction returns the action that places the order. It returns fault.Invalid for a value that cannot
// be sent.
func (c Config) originateAction(order origination.Order) (ami.Action, error) {
	if err := dialtext.Check(dialtext.Safe,
		dialtext.Value{Field: "destination", Text: order.Destination, AlsoAllowed: numberChars,
			MaxBytes: maxNumberBytes},
		dialtext.Value{Field: "presence_id", Text: order.Extension, AlsoAllowed: numberChars,
			MaxBytes: maxNumberBytes},
		dialtext.Value{Field: "id", Text: order.ID, MaxBytes: maxIDBytes},
		dialtext.Value{Field: "interaction_id", Text: order.InteractionID, MaxBytes: maxIDBytes},
		dialtext.Value{Field: "account_id", Text: order.AccountID, MaxBytes: maxNumberBytes}); err != nil {
		return ami.Action{}, err
	}

	b := dialtext.Placeholders{"extension": order.Extension, "destination": order.Destination,
		"account": order.AccountID}
	if order.Domain != "" {
		if err := dialtext.Check(dialtext.Safe,
			dialtext.Value{Field: "domain", Text: order.Domain, MaxBytes: maxDomainBytes}); err != nil {
			return ami.Action{}, err
		}
		b["domain"] = order.Domain
	}

	var err error
	fill := func(template string) string {
		text, e := b.Fill(template)
		if e != nil && err == nil {
			err = fault.Invalid("the call cannot be dialled: " + e.Error())
		}
		return text
	}

	b["context"] = fill(c.Context)
	fields := []ami.Field{
		{Key: "Channel", Value: dialString(fill(c.Owner))},
		{Key: "Application", Value: "Dial"},
		{Key: "Data", Value: fmt.Sprintf("%s,%d", dialString(fill(c.Destination)),
			int(c.RingDestination.Round(time.Second)/time.Second))},
		{Key: "Timeout", Value: strconv.FormatInt(c.RingUser.Milliseconds(), 10)},
		{Key: "Async", Value: "true"},
		{Key: "ChannelId", Value: ownerChannel(order.ID)},
		{Key: "OtherChannelId", Value: order.ID + otherSuffix},
		{Key: "Variable", Value: "__origination_call_id=" + order.ID},
		{Key: "Variable", Value: "__interaction_id=" + order.InteractionID},
		// The owner's phone displays the connected line of its channel; the destination's phone
		// displays the channel's caller. The field CallerID would set both to the same value.
		{Key: "Variable", Value: "CONNECTEDLINE(name,i)=" + ownerCallerName},
		{Key: "Variable", Value: "CONNECTEDLINE(num,i)=" + order.Destination},
		{Key: "Variable", Value: "CALLERID(name)=" + fill(c.CallerName)},
		{Key: "Variable", Value: "CALLERID(num)=" + fill(c.CallerID)},
	}

	if c.AccountCode != "-" {
		fields = append(fields, ami.Field{Key: "Account", Value: fill(c.AccountCode)})
	}

	return ami.Action{Name: "Originate", ID: order.ID + originateSuffix, Fields: fields}, err
}

// dialString returns a dial string. It adds the option /n to a Local channel without it.
func dialString(dial string) string {
	technology, rest, _ := strings.Cut(dial, "/")
	if technology == "Local" && !strings.Contains(rest, "/") {
		return dial + "/n"
	}
	return dial
}
