package asterisk

import (
	"encoding/json"
	"strings"

	"trunkline/event"
	"trunkline/format"
	"trunkline/internal/jsonscan"
)

// cdrFormat is the format of the Cdr event of the manager interface (cdr_manager.conf:
// enabled = yes). Three members are there only where [mappings] in that file adds
// them:
//
//	linkedid => Linkedid                         ties the legs of a call, and names a click to call
//	sequence => Sequence                         several records may share a UniqueID
//	origination_call_id => origination_call_id   set by the dialplan with CDR()
var cdrFormat = format.Format{
	Name: CDRFormatName, Topic: event.TopicCDRRaw, FromPlatform: true,
	Keys: jsonscan.Keys{
		"Account-ID": cdrAccount, "Time-Zone": cdrTimeZone,
		"UniqueID": cdrUniqueID, "Linkedid": cdrLinkedID, "linkedid": cdrLinkedID, "LinkedID": cdrLinkedID,
		"Sequence": cdrSequence, "sequence": cdrSequence, "origination_call_id": cdrOrigination,
		"Source": cdrSource, "Destination": cdrDestination, "CallerID": cdrCallerID,
		"Channel": cdrChannel, "DestinationChannel": cdrPeer, "LastApplication": cdrApplication,
		"LastData":  cdrArguments,
		"StartTime": cdrStart, "AnswerTime": cdrAnswer, "EndTime": cdrEnd, "Duration": cdrDuration,
		"BillableSeconds": cdrBillable,
		"Disposition":     cdrDisposition, "UserField": cdrUserField, "Timestamp": cdrWritten,
	},
	ReadAccount: func(f *format.Fields) (string, error) {
		return format.AccountText(firstValue(f[cdrAccount]), "Account-ID")
	},
	DecodeCDR:         readRow,
	HasSeveralRecords: func(f *format.Fields) bool { return text(f[cdrSequence]) == "" },
}

// Slots of the keys of cdrFormat in the fields of a record.
const (
	cdrAccount  = iota
	cdrTimeZone // of "trunkline cdr import": Asterisk writes none
	cdrUniqueID
	cdrLinkedID
	cdrSequence
	cdrOrigination
	cdrSource
	cdrDestination
	cdrCallerID
	cdrChannel
	cdrPeer
	cdrApplication
	cdrArguments
	cdrStart
	cdrAnswer
	cdrEnd
	cdrDuration
	cdrBillable
	cdrDisposition
	cdrUserField
	cdrWritten // when a feed got the record
)

// readRow reads a record. Its call id is the channel's, followed by the record's
// sequence where that is mapped: a channel that dials several others, at once or in turn, has a record for
// each, which otherwise have one call id (format.Format.HasSeveralRecords).
func readRow(f *format.Fields, c format.CallTimes) (event.CDR, error) {
	leg, channel := text(f[cdrUniqueID]), text(f[cdrChannel])
	row := event.CDR{
		CallID:         leg,
		InteractionID:  text(f[cdrLinkedID]),
		From:           text(f[cdrSource]),
		HangupCause:    causes[text(f[cdrDisposition])],
		OtherLegCallID: text(f[cdrPeer]),
	}

	if leg == "" {
		return row, format.RejectMissing("UniqueID")
	}
	if row.InteractionID == "" {
		row.InteractionID = leg
	}

	sequence := text(f[cdrSequence])
	if sequence != "" {
		row.CallID = event.PartID(leg, sequence)
	}

	row.OriginationCallID = originationCallID(f, &row, leg)
	if row.OriginationCallID != "" {
		row.CustomSIPHeaders = json.RawMessage(`{"` + event.SIPHeaderCallType + `":"` + event.CallTypeClickToCall +
			`"}`)
	}

	row.CallerIDName, row.CallerIDNumber = splitCallerID(text(f[cdrCallerID]), row.From)
	setCalled(f, &row, leg, channel)
	row.CustomChannelVars = channelVars(channel, text(f[cdrDisposition]))

	if row.OtherLegCallID == "" {
		row.OtherLegCallID = otherSideOf(channel)
	}

	if err := readTimes(f, &row, c); err != nil {
		return row, err
	}

	return row, nil
}

// causes has FreeSWITCH's names, as in the rows of other formats, for Asterisk's dispositions.
var causes = map[string]string{
	"ANSWERED": "NORMAL_CLEARING", "NO ANSWER": "NO_ANSWER", "BUSY": "USER_BUSY",
	"FAILED": "NORMAL_TEMPORARY_FAILURE", "CONGESTION": "NORMAL_TEMPORARY_FAILURE",
}

// setCalled sets who was called, the direction, and the extension whose leg this is.
//
// A record is of a channel that ran the dialplan: its call came in (inbound), but for a click to call's
// channels, which Asterisk made.
func setCalled(f *format.Fields, row *event.CDR, leg, channel string) {
	device, side := deviceOf(channel)
	isOwnersPhone := strings.HasSuffix(leg, ownerSuffix) || strings.HasSuffix(leg, ownerSuffix+secondSuffix)
	switch {
	case isOwnersPhone:
		row.To = device
	case extension(f[cdrDestination]) != "":
		row.To = text(f[cdrDestination])
	case side == farSide: // its dialplan went on to the start extension
		row.To = device
	}

	row.Direction = "inbound"
	if isOwnersPhone || row.OriginationCallID != "" {
		row.Direction = "outbound"
	}

	answered := text(f[cdrDisposition]) == "ANSWERED"
	peer, _ := deviceOf(text(f[cdrPeer]))
	if text(f[cdrApplication]) == "Queue" {
		row.QueueID, _, _ = strings.Cut(text(f[cdrArguments]), ",")
		if answered {
			row.AgentID, row.PresenceID, row.CalleeIDNumber = memberOf(text(f[cdrPeer])), peer, peer
		}
	}

	if row.PresenceID == "" && (isOwnersPhone || device == row.From && side == "") {
		row.PresenceID = device
	}
}

// secondSuffix follows ownerSuffix in the unique id of the far side of the owner's Local channel.
const secondSuffix = "-2"

// The sides of a Local channel.
const (
	nearSide = ";1"
	farSide  = ";2"
)

// deviceOf returns the name of a channel's device, which is the extension of a phone, and the side of a
// Local channel: 101 and "" for PJSIP/101-0000002f, agent1 and nearSide for Local/agent1@agents-0000002f;1.
func deviceOf(channel string) (device, side string) {
	name, ok := memberName(channel)
	if !ok {
		return "", ""
	}

	technology, device, _ := strings.Cut(name, "/")
	if technology == "Local" {
		device, _, _ = strings.Cut(device, "@")
		side = channel[len(channel)-len(nearSide):]
		if side != nearSide && side != farSide {
			side = ""
		}
	}

	return device, side
}

// otherSideOf returns the name of the other side of a Local channel, "" for other channels.
func otherSideOf(channel string) string {
	if name, ok := strings.CutSuffix(channel, nearSide); ok {
		return name + farSide
	}
	if name, ok := strings.CutSuffix(channel, farSide); ok {
		return name + nearSide
	}
	return ""
}

// memberOf returns the interface of the member of a queue that has the channel, which is the agent's id.
// Local channels do not tell it: their names are without the options of the interface.
func memberOf(channel string) string {
	name, ok := memberName(channel)
	if !ok || strings.HasPrefix(name, "Local/") {
		return ""
	}
	return name
}

// memberName returns a channel's name without the number at its end, which makes it unique.
func memberName(channel string) (name string, ok bool) {
	end := strings.LastIndexByte(channel, '-')
	return channel[:max(end, 0)], end > 0 && strings.Contains(channel[:end], "/")
}

// originationCallID returns the id of a click to call. A channel whose own id
// begins with it is the one that rang the user's phone, whose row must not have it
// (docs/calls.md).
func originationCallID(f *format.Fields, row *event.CDR, leg string) string {
	id := text(f[cdrOrigination])
	if id == "" {
		id, _ = strings.CutPrefix(text(f[cdrUserField]), originationVariablePrefix)
		if id == text(f[cdrUserField]) {
			id = originationIDOfLinkedID(row.InteractionID)
		}
	}

	if id == "" || strings.HasPrefix(leg, id) {
		return ""
	}

	return id
}

// splitCallerID splits `"name" <number>`. Asterisk writes the caller's name as it came, so that only what
// stands behind the last < is the number; a name alone, without quotes, has none.
func splitCallerID(s, source string) (name, number string) {
	s = strings.TrimSpace(s)
	open := strings.LastIndexByte(s, '<')
	quoted := strings.HasPrefix(s, `"`)

	switch {
	case open >= 0 && (quoted || source != ""):
		number = strings.TrimSpace(strings.TrimSuffix(s[open+1:], ">"))
		name = unquote(strings.TrimSpace(s[:open]))
	case open < 0 && (s == source || strings.Trim(s, "+0123456789*#") == ""):
		number = s
	default:
		name = unquote(s)
	}

	if number == "" {
		number = source
	}

	return name, number
}

// unquote removes the quotes around a name, and the backslash that Asterisk puts before those within.
func unquote(name string) string {
	inner, ok := strings.CutPrefix(name, `"`)
	if !ok {
		return name
	}
	return strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(strings.TrimSuffix(inner, `"`))
}

// channelVars returns the disposition, and the side of a Local channel under the name that the other
// formats have for the two sides of a loopback.
func channelVars(channel, disposition string) json.RawMessage {
	vars := make(map[string]string)
	if disposition != "" {
		vars[event.ChannelVarDisposition] = disposition
	}

	switch _, side := deviceOf(channel); side {
	case nearSide:
		vars[event.ChannelVarLoopbackLeg] = "A"
	case farSide:
		vars[event.ChannelVarLoopbackLeg] = "B"
	}

	if len(vars) == 0 {
		return nil
	}

	object, _ := json.Marshal(vars) // marshalling strings cannot fail
	return object
}
