package loadtest

import "fmt"

// CallRecord makes call records, in the form of the report's own rows: the
// call's id names account and number, so that it can be looked up.
func CallRecord(dst []byte, s Stamp, run, account string, padding []byte) []byte {
	at := s.At / 1e9
	dst = fmt.Appendf(dst, `{"account_id":"%s","call_id":"%s","origination_call_id":"%[2]s","direction":"outbound",`+
		`"from":"1001","to":"1002","timestamp":%[3]d,"answered_time":%[3]d,"ended_time":%[3]d,"duration_seconds":0,`+
		`"hangup_cause":"NORMAL_CLEARING","media_server":"bench","custom_channel_vars":{`, account, CallID(run, s.Stream, s.Seq), at)
	dst = s.Append(dst, run)
	dst = append(dst, `,"padding":"`...)
	dst = append(dst, padding...)
	return append(dst, `"}}`...)
}

// CallID returns the call id, and the origination id, of a call record of a
// run.
func CallID(run string, stream int, seq uint64) string {
	return fmt.Sprintf("bench-%s-%06d-%012d", run, stream, seq)
}
