package asterisk

import (
	"encoding/json"
	"strings"
	"time"

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
	Name: CDRFormatName, Topic: event.TopicCDRRaw,
	Keys: jsonscan.Keys{
		"Account-ID": cdrAccount, "UniqueID": cdrUniqueID, "Linkedid": cdrLinkedID, "linkedid": cdrLinkedID, "LinkedID": cdrLinkedID,
		"Sequence": cdrSequence, "sequence": cdrSequence, "origination_call_id": cdrOrigination,
		"Source": cdrSource, "Destination": cdrDestination, "CallerID": cdrCallerID, "Channel": cdrChannel,
		"StartTime": cdrStart, "AnswerTime": cdrAnswer, "EndTime": cdrEnd, "Duration": cdrDuration, "BillableSeconds": cdrBillable,
		"Disposition": cdrDisposition, "UserField": cdrUserField,
	},
	Account: func(f *format.Fields) (string, error) {
		return format.AccountText(firstValue(f[cdrAccount]), "Account-ID")
	},
	CDR: readRow,
}

const (
	cdrAccount = iota
	cdrUniqueID
	cdrLinkedID
	cdrSequence
	cdrOrigination
	cdrSource
	cdrDestination
	cdrCallerID
	cdrChannel
	cdrStart
	cdrAnswer
	cdrEnd
	cdrDuration
	cdrBillable
	cdrDisposition
	cdrUserField
)

// readRow reads a record. Its call id is the channel's, followed by the record's
// sequence where that is mapped: a channel that dials twice has two records, of
// which otherwise only the newer one would count.
func readRow(f *format.Fields, c format.Calendar) (event.CDR, error) {
	leg := text(f[cdrUniqueID])
	row := event.CDR{
		CallID:        leg,
		InteractionID: text(f[cdrLinkedID]),
		From:          text(f[cdrSource]),
		To:            text(f[cdrDestination]),
		HangupCause:   text(f[cdrDisposition]),
	}
	if leg == "" {
		return row, format.RejectMissing("UniqueID")
	}
	if row.InteractionID == "" {
		row.InteractionID = leg
	}
	if sequence := text(f[cdrSequence]); sequence != "" {
		row.CallID += "-" + sequence
	}
	row.OriginationCallID = originationCallID(f, &row, leg)
	row.CallerIDName, row.CallerIDNumber = splitCallerID(text(f[cdrCallerID]))
	if row.CallerIDNumber == "" {
		row.CallerIDNumber = row.From
	}
	row.CustomChannelVars = loopbackLeg(text(f[cdrChannel]))
	if err := readTimes(f, &row, c); err != nil {
		return row, err
	}
	row.ID = format.RowID(row.Timestamp, row.CallID)
	return row, nil
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

// splitCallerID splits `"Name" <number>`.
func splitCallerID(s string) (name, number string) {
	name, number, ok := strings.Cut(s, "<")
	if !ok {
		return "", strings.TrimSpace(s)
	}
	return strings.Trim(strings.TrimSpace(name), `"`), strings.TrimSuffix(strings.TrimSpace(number), ">")
}

// loopbackLeg returns the side of a Local channel under the name that the other
// formats have for the two sides of a loopback.
func loopbackLeg(channel string) json.RawMessage {
	if strings.HasPrefix(channel, "Local/") {
		switch {
		case strings.HasSuffix(channel, ";1"):
			return json.RawMessage(`{"` + event.ChannelVarLoopbackLeg + `":"A"}`)
		case strings.HasSuffix(channel, ";2"):
			return json.RawMessage(`{"` + event.ChannelVarLoopbackLeg + `":"B"}`)
		}
	}
	return nil
}

// readTimes reads the row's timestamps: local times of the switch, without a zone. The
// durations decide where local times are ambiguous.
func readTimes(f *format.Fields, row *event.CDR, c format.Calendar) (err error) {
	if row.Timestamp, err = localTime(f[cdrStart], "StartTime", c); err != nil {
		return err
	}
	if row.Timestamp == 0 {
		return format.RejectMissing("StartTime")
	}
	if row.AnsweredTime, err = localTime(f[cdrAnswer], "AnswerTime", c); err != nil {
		return err
	}
	if row.EndedTime, err = localTime(f[cdrEnd], "EndTime", c); err != nil {
		return err
	}
	if row.DurationSeconds, err = format.Seconds(firstValue(f[cdrDuration]), "Duration"); err != nil {
		return err
	}
	if row.BillingSeconds, err = format.Seconds(firstValue(f[cdrBillable]), "BillableSeconds"); err != nil {
		return err
	}
	if c.Zone != nil {
		resolveLocalTimes(row, c)
	}
	if d := row.DurationSeconds; d != nil && row.EndedTime != 0 && row.EndedTime < row.Timestamp {
		row.EndedTime = row.Timestamp + *d
	}
	if row.EndedTime != 0 && row.EndedTime < row.Timestamp {
		return format.RejectRange("EndTime")
	}
	if b := row.BillingSeconds; b != nil && row.AnsweredTime != 0 && row.EndedTime != 0 && (row.AnsweredTime < row.Timestamp || row.AnsweredTime > row.EndedTime) {
		row.AnsweredTime = max(row.Timestamp, row.EndedTime-*b)
	}
	return nil
}

// maxClockSkew is the longest time before its end, by the switch's clock, at which a call's record may reach Kafka.
const maxClockSkew = 5 * 60 // seconds

// resolveLocalTimes chooses among the times that have a row's local times, of which there are two in the hour
// that the end of daylight saving time repeats: the start and end that match the duration best, and of
// those the latest before the record was stored.
func resolveLocalTimes(row *event.CDR, c format.Calendar) {
	type candidate struct {
		start, end, mismatch int64
		future               bool
	}
	var best candidate
	for _, start := range sameLocalTimes(row.Timestamp, c.Zone) {
		for _, end := range sameLocalTimes(row.EndedTime, c.Zone) {
			next := candidate{start: start, end: end, future: max(start, end) > c.Recorded+maxClockSkew}
			switch {
			case end == 0: // unknown
			case row.DurationSeconds != nil:
				next.mismatch = max(end-start-*row.DurationSeconds, start+*row.DurationSeconds-end)
			case end < start:
				next.mismatch = start - end
			}
			if best.start == 0 || next.mismatch < best.mismatch ||
				next.mismatch == best.mismatch && (best.future && !next.future || best.future == next.future && (next.start > best.start) != next.future) {
				best = next
			}
		}
	}
	row.Timestamp, row.EndedTime = best.start, best.end
	for _, answered := range sameLocalTimes(row.AnsweredTime, c.Zone) {
		if answered >= row.Timestamp && (row.AnsweredTime < row.Timestamp || answered < row.AnsweredTime) {
			row.AnsweredTime = answered // the first after the start
		}
	}
}

// sameLocalTimes returns the times with the date and time of t in the zone, t first; 0 is unknown.
func sameLocalTimes(t int64, zone *time.Location) []int64 {
	times := []int64{t}
	if t == 0 {
		return times
	}
	local := time.Unix(t, 0).In(zone)
	_, offset := local.Zone()
	wallClock := t + int64(offset)
	begin, end := local.ZoneBounds()
	if !begin.IsZero() {
		if _, offsetBefore := begin.Add(-time.Second).Zone(); wallClock-int64(offsetBefore) < begin.Unix() {
			times = append(times, wallClock-int64(offsetBefore))
		}
	}
	if !end.IsZero() {
		if _, offsetAfter := end.Zone(); wallClock-int64(offsetAfter) >= end.Unix() {
			times = append(times, wallClock-int64(offsetAfter))
		}
	}
	return times
}

// localTime reads "2006-01-02 15:04:05" in the calendar's zone; "" is unknown, 0.
func localTime(v jsonscan.Value, field string, c format.Calendar) (int64, error) {
	s := text(v)
	if s == "" {
		return 0, nil
	}
	zone := c.Zone
	if zone == nil {
		zone = time.UTC
	}
	t, err := time.ParseInLocation(time.DateTime, s, zone)
	if err != nil {
		return 0, format.RejectType(field, "a time YYYY-MM-DD HH:MM:SS")
	}
	return c.Check(t.Unix(), field)
}
