package api

import (
	"testing"
	"time"

	"trunkline/audit"
	"trunkline/recording"
)

func TestRetentionAndLegalHold(t *testing.T) {
	e := newEnv(t)
	admin, key := e.as("admin", "demo"), header{"X-API-Key": e.key}
	e.ask(200, "PUT", recordingPolicyPath, admin,
		`{"mode":"off","retention_days":10,"queue_retention":[{"queue_id":"sales","retention_days":1},{"queue_id":"legal","retention_days":0}]}`,
		nil)

	days := func(id, query string, want int64) {
		t.Helper()
		var m recording.Metadata
		e.ask(201, "PUT", recordingsPath+"/"+id+query, key, "audio", &m)
		if want == 0 && m.ExpiresAt != 0 || want != 0 && m.ExpiresAt != m.CreatedAt+want*24*60*60 {
			t.Errorf("%s expires at %d, stored at %d", id, m.ExpiresAt, m.CreatedAt)
		}
	}

	days("any", "", 10)
	days("sales", "?queue_id=sales", 1)
	days("legal", "?queue_id=legal", 0)
	days("held", "?queue_id=sales", 1)

	var held recording.Metadata
	e.ask(200, "PUT", recordingsPath+"/held/hold", key, `{"reason":"case 4711"}`, &held)
	if held.Hold == nil || held.Hold.Reason != "case 4711" || held.Hold.Since == 0 {
		t.Errorf("%+v", held.Hold)
	}

	e.ask(409, "DELETE", recordingsPath+"/held", key, "", nil)
	e.ask(404, "PUT", recordingsPath+"/none/hold", key, `{"reason":"x"}`, nil)
	e.ask(400, "PUT", recordingsPath+"/any/hold", key, `{"reason":""}`, nil)
	_, err := e.db.ExecContext(t.Context(),
		`UPDATE recordings SET expires_at = $1 WHERE expires_at <> 0 AND recording_id <> 'any'`, time.Now().Unix()-1)
	must(t, err)
	recordings := e.recordings
	must(t, recordings.DeleteExpired(t.Context(), time.Now()))

	if got := e.recordingIDs(key, ""); got != "held legal any" {
		t.Errorf("left are %q", got)
	}
	if _, err := recordings.PurgeAccount(t.Context(), "demo"); err != nil {
		t.Errorf("purging those without a hold: %v", err)
	}
	if n, err := recordings.PurgeAccount(t.Context(), "demo"); n != 0 || err == nil {
		t.Errorf("purging the held one: %d, %v", n, err)
	}

	e.ask(204, "DELETE", recordingsPath+"/held/hold", key, "", nil)
	e.ask(204, "DELETE", recordingsPath+"/held", key, "", nil)

	must(t, e.audit.ChainPending(t.Context()))
	seen := map[audit.Action]int{}
	page, err := e.audit.List(t.Context(),
		audit.Filter{AccountID: "demo", Start: 0, End: time.Now().Unix() + 10, PageSize: 1000})
	must(t, err)

	for _, entry := range page.Data {
		seen[entry.Action]++
	}

	if seen[audit.RecordingHold] != 1 || seen[audit.RecordingRelease] != 1 || seen[audit.RecordingExpire] != 1 ||
		seen[audit.CallRecordingUpdate] != 1 {
		t.Errorf("the audit log has %v", seen)
	}
}
