package cdrindex

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"

	"trunkline/event"
	"trunkline/internal/kafka"
)

// entry is one record of the cdr topic, parsed for the index.
type entry struct {
	row event.CDR
	precedence
	endInLaterMonth *int64 // Unix seconds of its end, if in a later month than its start; else nil
	lookupRank      *int64 // order among the legs that a look-up can return, lowest first; nil: never returned
}

// sourcePosition is the position of a row's raw record. It decides which of two rows of a call
// is newer, and detects repeats.
type sourcePosition struct {
	partition int // of cdr.raw; below zero: not known, -1 less the partition of cdr
	// packed position in cdr.raw (the offset in cdr, where that is not known), and above it the
	// generation of cdr
	offset       int64
	recordTimeMS int64 // Unix milliseconds: when the record was written to cdr
}

// generationShift leaves 56 bits for a packed event.Position. If the cdr topic is recreated,
// its positions count in the next generation, because the raw topics may have been recreated
// too and reuse positions.
const generationShift = 56

// compare orders by position; records of one account in two partitions, as after an
// increase of the partitions, by time.
func (s sourcePosition) compare(o sourcePosition) int {
	if s.partition == o.partition {
		return cmp.Compare(s.offset, o.offset)
	}
	return cmp.Or(cmp.Compare(s.recordTimeMS, o.recordTimeMS), cmp.Compare(s.partition, o.partition))
}

// decodeEntry parses a record. It rejects values that the database could not store or would
// not find again; the normalizer does not write such records.
func decodeEntry(r *kafka.Record, generation int64) (entry, error) {
	var e entry
	if err := scanRow(r.Value, &e.row); err != nil {
		return e, err
	}
	if err := checkRow(&e.row); err != nil {
		return e, err
	}

	e.from = sourcePosition{partition: -1 - r.Partition, offset: r.Offset, recordTimeMS: r.Time.UnixMilli()}
	// Records of before that header are ordered by their place in cdr.
	position, err := event.ParsePosition(string(r.Header(event.HeaderPosition)))
	if err == nil {
		e.from.partition, e.from.offset = position.Partition, position.Packed()
	}

	e.from.offset |= generation << generationShift
	e.startedAt = e.row.Timestamp
	// Of several phones that rang, the one that talked is the call's row, whichever record comes last.
	if r.Header(event.HeaderOneOfSeveral) != nil {
		e.legOutcome = new(int64(legOutcome(&e.row)))
	}

	row := &e.row
	if row.EndedTime > row.Timestamp && monthOf(row.EndedTime) > monthOf(row.Timestamp) {
		e.endInLaterMonth = &row.EndedTime
	}

	e.lookupRank = lookupRank(&e.row)
	return e, nil
}

// Bounds of a row's start.
const (
	minStart = 946_684_800   // 2000-01-01
	maxStart = 4_102_444_800 // 2100-01-01
)

// checkRow returns an error if a row cannot be stored.
func checkRow(row *event.CDR) error {
	if err := row.Check(); err != nil {
		return err
	}
	if row.Timestamp < minStart || row.Timestamp >= maxStart {
		return errors.New("timestamp: out of range")
	}
	return nil
}

// lookupRank orders the legs with an origination_call_id, best first: the leg to the
// destination, marked as click to call if the platform marks it, and of several phones that rang the one
// that talked. A loopback leg comes last: it is the result if the switch itself is the
// destination (a queue, a conference, voicemail) or no other leg was created. Its far
// side (B) ran the destination's dialplan and precedes its near side.
func lookupRank(row *event.CDR) *int64 {
	if row.OriginationCallID == "" {
		return nil
	}

	// Each criterion weighs more than all those below it together.
	const marked = legTalked + 1
	var rank int64
	switch stringMember(row.CustomChannelVars, event.ChannelVarLoopbackLeg) {
	case "":
	case "B":
		rank += 2 * marked
	default:
		rank += 4 * marked
	}

	if stringMember(row.CustomSIPHeaders, event.SIPHeaderCallType) != event.CallTypeClickToCall {
		rank += marked
	}

	return new(rank + legTalked - legOutcome(row))
}

// How a leg went, the best last.
const (
	legLost     = iota // another phone answered first
	legStopped         // the caller gave up
	legFailed          // a cause of its own
	legAnswered        // without any time to bill
	legTalked
)

// legOutcome returns how a leg went. A phone that loses the race may have answered, and an Asterisk that
// answers before it dials bills the time of those that did not.
func legOutcome(row *event.CDR) int64 {
	billed := row.BillingSeconds != nil && *row.BillingSeconds > 0
	switch row.HangupCause {
	case "LOSE_RACE":
		return legLost
	case "NO_ANSWER", "USER_BUSY":
		return legFailed
	}

	switch {
	case billed, row.AnsweredTime != 0 && row.BillingSeconds == nil:
		return legTalked
	case row.AnsweredTime != 0:
		return legAnswered
	case row.HangupCause == "ORIGINATOR_CANCEL":
		return legStopped
	}

	return legFailed
}

// stringMember returns the object's string member of that name, "" when it has none.
func stringMember(object json.RawMessage, name string) string {
	// Most records have no such member: they are not parsed.
	if !bytes.Contains(object, []byte(name)) {
		return ""
	}
	var members map[string]any
	if json.Unmarshal(object, &members) != nil {
		return ""
	}
	text, _ := members[name].(string)
	return text
}
