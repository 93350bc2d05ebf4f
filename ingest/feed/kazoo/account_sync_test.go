package kazoo

import (
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"trunkline/identity"
	"trunkline/telephony/crossbar"
)

// hangingTransport counts requests and answers none.
type hangingTransport struct{ asked int }

func (h *hangingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	h.asked++
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// noAccounts is a directory without accounts.
type noAccounts struct{ Directory }

func (noAccounts) Tree() *identity.Tree { return identity.NewTree() }

// TestAnUnknownAccountDoesNotAskAHangingCrossbarAgainAtOnce: an attempt takes longer than the pause
// between two, and no message is read meanwhile.
func TestAnUnknownAccountDoesNotAskAHangingCrossbarAgainAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const unknown = "00000000000000000000000000000009"
		transport := &hangingTransport{}
		p := &platform{
			crossbar:  crossbar.New("http://crossbar", "key", time.Minute, &http.Client{Transport: transport}),
			directory: noAccounts{}, syncsAccounts: true, log: slog.New(slog.DiscardHandler),
		}

		began := time.Now()
		if !p.syncUnknownAccount(t.Context(), unknown) || transport.asked != 1 || time.Since(began) != syncTimeout {
			t.Fatalf("asked %d times in %v", transport.asked, time.Since(began))
		}

		time.Sleep(minSyncInterval - time.Nanosecond)
		if p.syncUnknownAccount(t.Context(), unknown) {
			t.Errorf("asked again %v after the attempt ended", minSyncInterval-time.Nanosecond)
		}

		time.Sleep(time.Nanosecond)
		if !p.syncUnknownAccount(t.Context(), unknown) || transport.asked != 2 {
			t.Errorf("not asked again %v after the attempt ended", minSyncInterval)
		}
	})
}

// TestAnUnknownAccountDoesNotWaitForTheSyncUnderWay: a message is not held up by that of every minute.
func TestAnUnknownAccountDoesNotWaitForTheSyncUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := &hangingTransport{}
		p := &platform{
			crossbar:  crossbar.New("http://crossbar", "key", time.Minute, &http.Client{Transport: transport}),
			directory: noAccounts{}, syncsAccounts: true, log: slog.New(slog.DiscardHandler),
		}

		go p.syncAccounts(t.Context())
		time.Sleep(minSyncInterval)
		began := time.Now()
		if p.syncUnknownAccount(t.Context(), "00000000000000000000000000000009") || time.Since(began) != 0 {
			t.Errorf("asked after %v", time.Since(began))
		}
		time.Sleep(syncTimeout)
	})
}
