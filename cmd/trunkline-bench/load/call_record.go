package load

import "fmt"

// CallRecord creates call records with the members of the report's rows. The call id contains the
// account's number and the event's number, for look-ups.
func CallRecord(dst []byte, s Stamp, run, account string, padding []byte) []byte {
	seconds := s.At / 1e9
	dst = fmt.Appendf(dst, `{"account_id":"%s","call_id":"%s","origination_call_id":"%[2]s","direction":"outbound",`+
		`"from":"1001","to":"1002","timestamp":%[3]d,"answered_time":%[3]d,"ended_time":%[3]d,"duration_seconds":0,`+
		`"hangup_cause":"NORMAL_CLEARING","media_server":"bench","custom_channel_vars":{`, account,
		CallID(run, s.Stream, s.Seq), seconds)
	dst = s.Append(dst, run)
	dst = append(dst, `,"padding":"`...)
	dst = append(dst, padding...)
	return append(dst, `"}}`...)
}

// CallID returns the call id of a run's call record, which is also its origination id.
func CallID(run string, stream int, seq uint64) string {
	return fmt.Sprintf("bench-%s-%06d-%012d", run, stream, seq)
}
