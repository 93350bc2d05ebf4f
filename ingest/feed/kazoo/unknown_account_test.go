package kazoo

import (
	"log/slog"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

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

// TestAMessageThatASyncDidNotHelpKeepsItsRealm: its dead letter is found again by the realm once an account has it
// as its domain.
func TestAMessageThatASyncDidNotHelpKeepsItsRealm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const unknown, realm = "00000000000000000000000000000009", "new.example.com"
		transport := &hangingTransport{}
		p := &platform{
			crossbar: crossbar.New("http://crossbar", "key", time.Minute, &http.Client{Transport: transport}),
			accounts: accountsByName{}, directory: noAccounts{}, syncsAccounts: true,
			log: slog.New(slog.DiscardHandler),
		}

		body := callEvent("CHANNEL_ANSWER", "c1",
			map[string]any{"Custom-Channel-Vars": map[string]any{"Account-ID": unknown, "Realm": realm}})
		for _, asked := range []string{"after a sync", "between two syncs"} {
			events := p.appendEvents(t.Context(), nil, amqp.Delivery{Body: []byte(body)})
			if len(events) != 1 || !slices.Equal(events[0].Names, []string{unknown, realm}) {
				t.Errorf("%s: %+v", asked, events)
			}
		}

		if transport.asked != 1 {
			t.Errorf("Crossbar was asked %d times", transport.asked)
		}
	})
}

// TestTheRealmThatCrossbarHasCountsBesideTheMessages: a message may have another one, such as that of a phone. It does
// not need a sync to be looked up.
func TestTheRealmThatCrossbarHasCountsBesideTheMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const id = "00000000000000000000000000000009"
		transport := &hangingTransport{}
		p := &platform{
			crossbar: crossbar.New("http://crossbar", "key", time.Minute, &http.Client{Transport: transport}),
			accounts: accountsByName{"acme.example.com": "acme"}, directory: noAccounts{}, syncsAccounts: true,
			log: slog.New(slog.DiscardHandler), realms: map[string]string{id: "acme.example.com"},
		}

		body := callEvent("CHANNEL_ANSWER", "c1",
			map[string]any{"Custom-Channel-Vars": map[string]any{"Account-ID": id, "Realm": "phones.example.com"}})
		for range 2 {
			events := p.appendEvents(t.Context(), nil, amqp.Delivery{Body: []byte(body)})
			if len(events) != 1 || events[0].Account != "acme" {
				t.Errorf("%+v", events)
			}
		}

		if transport.asked != 0 {
			t.Errorf("Crossbar was asked %d times", transport.asked)
		}
	})
}
