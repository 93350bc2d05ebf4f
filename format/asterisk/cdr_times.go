package asterisk

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"trunkline/event"
	"trunkline/format"
	"trunkline/internal/jsonscan"
)

// readTimes reads the row's timestamps: local times of the switch, without a zone.
func readTimes(f *format.Fields, row *event.CDR, c format.CallTimes) (err error) {
	name := text(f[cdrTimeZone])
	if name != "" {
		c.Zone, err = time.LoadLocation(name)
		if err != nil {
			return format.RejectType("Time-Zone", "the name of a time zone")
		}
	}

	if text(f[cdrStart]) == "" {
		return format.RejectMissing("StartTime")
	}

	row.Timestamp, err = localTime(f[cdrStart], "StartTime", c)
	if err != nil {
		return err
	}

	row.AnsweredTime, err = localTime(f[cdrAnswer], "AnswerTime", c)
	if err != nil {
		return err
	}

	row.EndedTime, err = localTime(f[cdrEnd], "EndTime", c)
	if err != nil {
		return err
	}

	row.DurationSeconds, err = c.Seconds(firstValue(f[cdrDuration]), "Duration")
	if err != nil {
		return err
	}

	row.BillingSeconds, err = c.Seconds(firstValue(f[cdrBillable]), "BillableSeconds")
	if err != nil {
		return err
	}

	// Without a zone they are read as UTC, which repeats no hour.
	if c.Zone != nil && row.Timestamp != 0 {
		resolveLocalTimes(row, channelCreated(text(f[cdrUniqueID])), c)
	}

	// Without the zone, a change of the clock by an hour may lie within the call: its duration decides.
	d := row.DurationSeconds
	if d != nil && *d > 0 && row.EndedTime != 0 && row.EndedTime < row.Timestamp {
		row.EndedTime = row.Timestamp + *d
	}

	// Before the answer is compared with the end.
	setConferenceEnd(f, row, c)
	outside := row.AnsweredTime < row.Timestamp || row.AnsweredTime > row.EndedTime
	b := row.BillingSeconds
	if b != nil && row.AnsweredTime != 0 && row.EndedTime >= row.Timestamp && outside {
		row.AnsweredTime = max(row.Timestamp, row.EndedTime-*b)
	}

	return nil
}

// setConferenceEnd sets the end of a call that was alone in a conference to the time of its record:
// Asterisk ends such a record when the channel enters the conference, and sends it when it hangs up.
// Without that time, in a file of records, the end is unknown.
func setConferenceEnd(f *format.Fields, row *event.CDR, c format.CallTimes) {
	written, err := c.Check(format.FirstTimestamp(firstValue(f[cdrWritten]))/1000, "Timestamp")
	alone := text(f[cdrApplication]) == "ConfBridge" && text(f[cdrPeer]) == "" && row.AnsweredTime != 0
	if !alone || err != nil || written < row.EndedTime {
		return
	}

	row.EndedTime = written
	row.DurationSeconds, row.BillingSeconds = new(written-row.Timestamp), new(written-row.AnsweredTime)
}

// channelCreated returns the time at which the channel was created, in Unix seconds, which its unique id
// begins with ("1795600800.7", or with the system's name "pbx1-1795600800.7"); 0 if it has another form.
func channelCreated(uniqueID string) int64 {
	digits, _, ok := strings.Cut(uniqueID[strings.LastIndexByte(uniqueID, '-')+1:], ".")
	created, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || len(digits) != len("1795600800") {
		return 0
	}
	return created
}

// maxClockSkewSeconds is the longest time before its end, by the switch's clock, at which a call's record may
// reach Kafka.
const maxClockSkewSeconds = 5 * 60

// candidate is one of the times that a record's local times may be.
type candidate struct {
	start, end    int64 // Unix seconds
	beforeChannel bool  // it begins before the channel was created
	mismatch      int64 // between end - start and the duration, in seconds
	future        bool  // it ends after the record was stored
}

// resolveLocalTimes chooses among the times that have a row's local times, of which there are two in the
// hour that the end of daylight saving time repeats: a start after the channel was created, the start and
// end that match the duration best, and of those the first after the channel was created; where that is
// unknown (0), the latest before the record was stored.
func resolveLocalTimes(row *event.CDR, created int64, c format.CallTimes) {
	var best candidate
	for _, start := range sameLocalTimes(row.Timestamp, c.Zone) {
		for _, end := range sameLocalTimes(row.EndedTime, c.Zone) {
			next := candidate{start: start, end: end, beforeChannel: start < created-1,
				future: max(start, end) > c.Recorded+maxClockSkewSeconds}
			switch {
			case end == 0: // unknown
			case row.DurationSeconds != nil:
				next.mismatch = max(end-start-*row.DurationSeconds, start+*row.DurationSeconds-end)
			case end < start:
				next.mismatch = start - end
			}

			if best.start == 0 || next.compare(&best, created != 0) < 0 {
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

// compare orders candidates, the more likely one first.
func (a *candidate) compare(b *candidate, createdKnown bool) int {
	order := cmp.Or(compareBool(a.beforeChannel, b.beforeChannel), cmp.Compare(a.mismatch, b.mismatch),
		compareBool(a.future, b.future))
	switch {
	case order != 0:
		return order
	case createdKnown || a.future:
		return cmp.Compare(a.start, b.start)
	}
	return cmp.Compare(b.start, a.start)
}

// compareBool orders false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
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
		_, offsetBefore := begin.Add(-time.Second).Zone()
		if wallClock-int64(offsetBefore) < begin.Unix() {
			times = append(times, wallClock-int64(offsetBefore))
		}
	}

	if !end.IsZero() {
		_, offsetAfter := end.Zone()
		if wallClock-int64(offsetAfter) >= end.Unix() {
			times = append(times, wallClock-int64(offsetAfter))
		}
	}

	return times
}

// localTime reads "2006-01-02 15:04:05" in c.Zone; "" is unknown, 0, and an impossible time is
// left out.
func localTime(v jsonscan.Value, field string, c format.CallTimes) (int64, error) {
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

	seconds, err := c.Check(t.Unix(), field)
	if err != nil {
		return c.LeaveOutImpossible(), nil
	}

	return seconds, nil
}
