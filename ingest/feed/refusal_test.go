package feed

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
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

// A platform may refuse while events are read: no retry cures it.
func TestARefusalWhileReadingIsOne(t *testing.T) {
	k, p := newFakeKafka(), newFakePlatform()
	p.readRefusal = &Refusal{Err: errors.New("events without numbers"), Advice: "debug = on"}
	var log bytes.Buffer
	n := startNodeLog(t, "a", t.TempDir(), openTestStore(t, ""), k, p, Config{},
		slog.New(slog.NewTextHandler(&log, nil)))
	eventually(t, "refused", n.is(StateRefused))
	n.stop()

	if p.connects != 1 || !strings.Contains(log.String(), `advice="debug = on"`) {
		t.Errorf("%d connections; the log:\n%s", p.connects, log.String())
	}
}
