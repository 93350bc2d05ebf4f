package freeswitch

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"trunkline/event"
	"trunkline/internal/fault"
	"trunkline/origination"
	"trunkline/origination/dialtext"
)

// The parts of a channel's tag in presence_data, which identifies the leg's side and its job.
const (
	tagPrefix      = "trunkline:"
	tagOwner       = "owner"
	tagDestination = "destination"
)

// jobOf returns the Job-UUID of a call. It is derived from the call's id, so that a process finds the
// calls of an earlier one.
func jobOf(callID string) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("trunkline:freeswitch:"+callID)).String()
}

func tag(side, job string) string { return tagPrefix + side + ":" + job }

// readTag parses a tag. ok is false if text is not a tag.
func readTag(text string) (side, job string, ok bool) {
	rest, ok := strings.CutPrefix(text, tagPrefix)
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, ":")
}

// exportedVariables lists the variables that are exported through the loopback to the destination's leg.
const exportedVariables = "origination_call_id,interaction_id,account_id,presence_data," + callTypeVariable

// callTypeVariable sends event.SIPHeaderCallType as a header of the INVITE.
const callTypeVariable = "sip_h_X-" + event.SIPHeaderCallType

// Limits of values in bytes.
const (
	maxNumberBytes = 64
	maxDomainBytes = 253
)

// originateCommand returns the command that places the order, whose Domain is the switch's. It returns
// fault.Invalid for a value that cannot be sent.
func (c Config) originateCommand(order origination.Order) (string, error) {
	err := checkValues(
		dialtext.Value{Field: "destination", Text: order.Destination, AlsoAllowed: numberChars,
			MaxBytes: maxNumberBytes},
		dialtext.Value{Field: "presence_id", Text: order.Extension, AlsoAllowed: numberChars,
			MaxBytes: maxNumberBytes},
		dialtext.Value{Field: "domain", Text: order.Domain, AlsoAllowed: domainChars, MaxBytes: maxDomainBytes},
		dialtext.Value{Field: "id", Text: order.ID, MaxBytes: 128},
		dialtext.Value{Field: "interaction_id", Text: order.InteractionID, MaxBytes: 128},
		dialtext.Value{Field: "account_id", Text: order.AccountID, MaxBytes: 64},
	)
	if err != nil {
		return "", err
	}

	b := dialtext.Placeholders{
		"extension": order.Extension, "domain": order.Domain, "destination": order.Destination, "context": c.Context,
	}
	fill := func(template string) string {
		text, e := b.Fill(template)
		if e != nil && err == nil {
			err = e
		}
		return text
	}

	// origination_uuid is not set: the owner's second phone would fail as a duplicate.
	job := jobOf(order.ID)
	owner := variables{
		{"presence_data", tag(tagOwner, job)},
		{"interaction_id", order.InteractionID},
		{"account_id", order.AccountID},
		{"origination_caller_id_number", fill(ownerCallerID)},
		{"origination_caller_id_name", quote(fill(ownerCallerName))},
		{"originate_timeout", seconds(c.RingUser)},
		{"ignore_early_media", "true"}, // otherwise a phone's early media would count as its answer
		{"loopback_bowout", "false"},   // an owner with call forwarding has a loopback too
	}

	if c.Ringback != "-" {
		owner = append(owner, variable{"ringback", c.Ringback})
	}

	destination := variables{
		{"presence_data", tag(tagDestination, job)},
		{"interaction_id", order.InteractionID},
		{"account_id", order.AccountID},
		{callTypeVariable, event.CallTypeClickToCall},
		{"origination_caller_id_number", fill(c.CallerID)},
		{"origination_caller_id_name", quote(fill(c.CallerName))},
		{"originate_timeout", seconds(c.RingDestination)},
		{"ignore_early_media", "false"}, // the owner hears the network's announcements
		// originate_timeout ends with the first early media; this one runs from there to the answer.
		{"bridge_answer_timeout", seconds(c.RingDestination)},
		{"loopback_bowout", "false"},
		{"ignore_display_updates", "true"}, // otherwise the loopback's record has the callee as its caller
		{"loopback_export", exportedVariables},
		{"export_vars", exportedVariables},
		{"origination_call_id", order.ID}, // last, where readers of last_arg look for its end
	}

	command := fmt.Sprintf("originate %s%s &bridge(%s%s)", owner, fill(c.Owner), destination, fill(c.Destination))
	if err == nil && strings.Contains(command, callSeparator) { // a template combined with a value
		err = fault.Invalid("the call cannot be dialled")
	}

	return command, err
}

type variable struct{ name, value string }

// variables are written with ";" as the separator: "," is needed within values, and quotes around
// values would be removed when the switch splits the command.
type variables []variable

func (v variables) String() string {
	var out strings.Builder
	out.WriteString("{^^")
	for _, variable := range v {
		out.WriteString(";" + variable.name + "=" + variable.value)
	}
	return out.String() + "}"
}

// quote quotes a value with blanks, which would otherwise split the command.
func quote(text string) string {
	if strings.Contains(text, " ") {
		return "'" + text + "'"
	}
	return text
}

func seconds(d time.Duration) string { return fmt.Sprint(int(d.Round(time.Second) / time.Second)) }
