package feed

import (
	"errors"
	"testing"

	"trunkline/event"
)

func TestARefusalIsShownAndTriedAgain(t *testing.T) {
	k, p := newFakeKafka(), newFakePlatform()
	p.refusal = &Refusal{Err: errors.New("wrong password"), Advice: "event_socket.conf.xml"}
	store := openTestStore(t, "")
	n := startNode(t, "a", t.TempDir(), store, k, p, Config{})
	eventually(t, "refused", n.is(StateRefused))

	eventually(t, "the status is stored", func() bool {
		all, err := store.List(t.Context())
		return err == nil && len(all) == 1 && all[0].State == StateRefused && all[0].Error == "wrong password" &&
			all[0].Name == "pbx"
	})
}

// An event of an unknown account keeps the names that were looked up, for a retry of its dead letter.
func TestAnEventOfAnUnknownAccountKeepsItsNames(t *testing.T) {
	k, p := newFakeKafka(), newFakePlatform()
	n := startNode(t, "a", t.TempDir(), openTestStore(t, ""), k, p, Config{})
	eventually(t, "connected", n.is(StateConnected))
	p.mu.Lock()
	p.events = append(p.events, Event{Topic: event.TopicRaw, Format: "scripted", Value: []byte(`{}`),
		Names: []string{"acme.example", "", "sup\nport", "acme.example"}})

	for s := range p.sessions {
		signal(s.news)
	}
	p.mu.Unlock()

	eventually(t, "it is stored", func() bool { return len(k.topic(event.TopicRaw)) > 0 })
	r := k.topic(event.TopicRaw)[0]
	if names := string(r.Header(event.HeaderAccountNames)); names != "acme.example\nsup port" || len(r.Key) != 0 {
		t.Errorf("key %q, names %q", r.Key, names)
	}
}
