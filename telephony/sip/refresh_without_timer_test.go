package sip

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	sipmsg "github.com/emiago/sipgo/sip"
)

// TestARefreshWithoutATimerEndsTheTimer (RFC 4028, section 7.2): the peer no longer refreshes, and its call must not be
// hung up when the interval that was agreed on before has passed. A request that is refused changes nothing.
func TestARefreshWithoutATimerEndsTheTimer(t *testing.T) {
	for name, c := range map[string]struct {
		headers string
		refusal error
		want    time.Duration
	}{
		"without":          {"", nil, 0},
		"with":             {"Session-Expires: 600\r\n", nil, 10 * time.Minute},
		"without, refused": {"", errors.New("no"), 30 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			message, err := sipmsg.ParseMessage([]byte("UPDATE sip:x SIP/2.0\r\n" +
				"Via: SIP/2.0/UDP h;branch=z9hG4bK1\r\nFrom: <sip:a@b>;tag=1\r\nTo: <sip:x>;tag=2\r\nCall-ID: 1\r\n" +
				"CSeq: 2 UPDATE\r\nSupported: timer\r\n" + c.headers + "Content-Length: 0\r\n\r\n"))
			if err != nil {
				t.Fatal(err)
			}

			l := &Leg{transports: &transports{log: slog.New(slog.DiscardHandler)}, sessionInterval: 30 * time.Minute}
			l.startSessionTimer()
			l.refreshResponse(message.(*sipmsg.Request), func() (*SDP, error) { return nil, c.refusal })

			if l.sessionInterval != c.want {
				t.Errorf("the interval is %v, want %v", l.sessionInterval, c.want)
			}
			if runs := l.sessionTimer.Stop(); runs != (c.want > 0) {
				t.Errorf("the timer runs: %v", runs)
			}
		})
	}
}
