package sip

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	sipmsg "github.com/emiago/sipgo/sip"
)

// Session timers (RFC 4028): either side may request periodic refreshes, so that a call whose peer has
// disappeared ends. This server does not request them but honours the peer's request.

// minSessionExpires is the shortest accepted interval (RFC 4028, section 4).
const minSessionExpires = 90 * time.Second

// minSEValue returns the value of the Min-SE header.
func minSEValue() string { return strconv.Itoa(int(minSessionExpires.Seconds())) }

// acceptSessionTimer accepts the session timer of a request and adds it to the response. It returns true if
// the interval is too short and must be refused.
func (l *Leg) acceptSessionTimer(r *sipmsg.Request, response *sipmsg.Response) (tooShort bool) {
	value := headerValue(r, "Session-Expires", "x")
	interval, ok := parseSeconds(value)
	if !ok {
		return false
	}
	if interval < minSessionExpires {
		return true
	}

	refresher := "uac"
	// A peer that does not support timers cannot refresh; a proxy has asked for it.
	if strings.Contains(value, "refresher=uas") || !listsToken(r, supportedOption, "Supported", "k") {
		refresher = "uas"
	}

	l.mu.Lock()
	l.sessionInterval, l.isRefresher = interval, refresher == "uas"
	l.mu.Unlock()

	response.AppendHeader(
		sipmsg.NewHeader("Session-Expires", fmt.Sprintf("%d;refresher=%s", int(interval.Seconds()), refresher)))
	if refresher == "uac" {
		response.AppendHeader(sipmsg.NewHeader("Require", supportedOption))
	}

	return false
}

// negotiateSessionTimer starts the session timer that the response to our request has, or stops ours if it has none.
func (l *Leg) negotiateSessionTimer(answer *sipmsg.Response) {
	value := headerValue(answer, "Session-Expires", "x")
	interval, ok := parseSeconds(value)

	l.mu.Lock()
	if ok && interval > 0 {
		l.sessionInterval, l.isRefresher = interval, !strings.Contains(value, "refresher=uas")
	} else {
		l.sessionInterval = 0
	}
	l.mu.Unlock()

	l.startSessionTimer()
}

// sessionExpires returns the Session-Expires value of our refreshing requests. The caller holds mu.
func (l *Leg) sessionExpires() string {
	refresher := "uas"
	if l.isRefresher {
		refresher = "uac"
	}
	return fmt.Sprintf("%d;refresher=%s", int(l.sessionInterval.Seconds()), refresher)
}

// startSessionTimer restarts the interval: we refresh after half of it, or hang up shortly before its end if
// the peer has not refreshed (RFC 4028, section 10).
func (l *Leg) startSessionTimer() {
	l.mu.Lock()
	defer l.mu.Unlock()

	if l.sessionTimer != nil {
		l.sessionTimer.Stop()
	}
	if l.sessionInterval == 0 || l.ended {
		return
	}
	if l.isRefresher {
		l.sessionTimer = time.AfterFunc(l.sessionInterval/2, func() { l.dialogs.background.Go(l.refreshSession) })
		return
	}

	l.sessionTimer = time.AfterFunc(l.sessionInterval-min(32*time.Second, l.sessionInterval/3),
		func() { l.Hangup(RecoveryOnTimerExpire) })
}

// refreshSession sends a refresh and detects a peer that is gone.
func (l *Leg) refreshSession() {
	if l.canUpdate {
		l.refreshByUpdate()
		return
	}

	l.mu.Lock()
	ours := l.localSDP
	l.mu.Unlock()

	_, err := l.Reinvite(l.ctx, ours)
	if err != nil {
		l.transports.log.Debug("refreshing a SIP session failed", "error", err)
		l.startSessionTimer() // unless the leg has ended
	}
}

func (l *Leg) refreshByUpdate() {
	l.mu.Lock()
	r := l.newRequest(sipmsg.UPDATE, l.nextSequence())
	r.AppendHeader(l.contact.Clone())
	r.AppendHeader(sipmsg.NewHeader("Supported", supportedOption))
	r.AppendHeader(sipmsg.NewHeader("Session-Expires", l.sessionExpires()))
	l.mu.Unlock()

	answer, err := l.transports.transact(l.ctx, r)
	switch {
	case err != nil:
		l.Hangup(RecoveryOnTimerExpire)
	case answer.StatusCode == 481 || answer.StatusCode == 408:
		l.Hangup(NormalTemporaryFailure)
	case answer.IsSuccess():
		l.negotiateSessionTimer(answer)
	default:
		l.startSessionTimer()
	}
}
