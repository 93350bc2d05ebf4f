package normalizer

import (
	"bytes"
	"strings"

	"trunkline/event"
	"trunkline/format"
)

// What a row's texts may be at most, in bytes: ids are looked up by index, the
// rest is shown.
const (
	mostID   = 255
	mostText = 1024
)

// checkRow refuses a row that its readers could not store or find again, in
// whatever format it came. The field is named as in the row.
func checkRow(row *event.CDR) error {
	for _, f := range [...]struct {
		name, text string
		most       int
	}{
		{"call_id", row.CallID, mostID}, {"id", row.ID, mostID + len("YYYYMM-")}, {"interaction_id", row.InteractionID, mostID},
		{"origination_call_id", row.OriginationCallID, mostID}, {"other_leg_call_id", row.OtherLegCallID, mostID},
		{"recording_id", row.RecordingID, mostID}, {"presence_id", row.PresenceID, mostID},
		{"direction", row.Direction, mostText}, {"from", row.From, mostText}, {"to", row.To, mostText},
		{"caller_id_name", row.CallerIDName, mostText}, {"caller_id_number", row.CallerIDNumber, mostText},
		{"callee_id_name", row.CalleeIDName, mostText}, {"callee_id_number", row.CalleeIDNumber, mostText},
		{"hangup_cause", row.HangupCause, mostText}, {"media_server", row.MediaServer, mostText},
	} {
		if len(f.text) > f.most {
			return format.Rejectf(format.OutOfRange, "%s: longer than %d bytes", f.name, f.most)
		}
		if strings.IndexByte(f.text, 0) >= 0 {
			return nul(f.name)
		}
	}
	if escapedNUL(row.CustomSIPHeaders) {
		return nul("custom_sip_headers")
	}
	if escapedNUL(row.CustomChannelVars) {
		return nul("custom_channel_vars")
	}
	return nil
}

// nul: PostgreSQL's text and JSON hold every character but this one.
func nul(field string) *format.Rejection {
	return format.Rejectf(format.OutOfRange, "%s: holds a NUL character", field)
}

func escapedNUL(raw []byte) bool { return bytes.Contains(raw, []byte(`\u0000`)) }
