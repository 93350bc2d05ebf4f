package pcmsocket

import (
	"testing"
	"time"
)

func TestDTMF(t *testing.T) {
	if digit, duration, ok := parseDTMF([]byte(`{"event":"dtmf","dtmf":{"digit":"#","duration":180}}`)); !ok ||
		digit != '#' || duration != 180*time.Millisecond {
		t.Errorf("got %c, %v, %v", digit, duration, ok)
	}

	for _, raw := range []string{
		``, `{}`, `{"event":"dtmf"}`, `{"event":"dtmf","dtmf":{"digit":"12"}}`, `{"event":"dtmf","dtmf":{"digit":"x"}}`,
		`{"event":"mute","dtmf":{"digit":"1"}}`, `{"event":"dtmf","dtmf":{"digit":1}}`,
	} {
		if _, _, ok := parseDTMF([]byte(raw)); ok {
			t.Errorf("%s was taken", raw)
		}
	}

	if _, duration, ok := parseDTMF([]byte(`{"event":"dtmf","dtmf":{"digit":"1","duration":1e300}}`)); !ok ||
		duration != time.Minute {
		t.Errorf("a press of ages lasts %v", duration)
	}
}
