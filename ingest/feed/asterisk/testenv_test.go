package asterisk

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"trunkline/ingest/feed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience limits the wait for a condition.
const patience = 3 * time.Minute

// accounts maps names to accounts by patterns without stars but the last one.
type accounts map[string]string

func (a accounts) Account(names ...string) string {
	for _, name := range names {
		for match, account := range a {
			if prefix, ok := strings.CutSuffix(match, "*"); ok && strings.HasPrefix(name, prefix) || name == match {
				return account
			}
		}
	}
	return ""
}

// fixed is the one account of all names.
type fixed string

func (f fixed) Account(...string) string { return string(f) }

func newPlatform(t testing.TB, p *pbx, a feed.Accounts, change func(*feed.Config)) feed.Platform {
	t.Helper()
	cfg := feed.Config{}
	cfg.SetDefaults()
	cfg.Name = "pbx"
	cfg.Kind = feed.KindAsterisk
	cfg.Address = p.address
	cfg.Username = "feed"
	cfg.Secret = "feed-secret"

	if one, ok := a.(fixed); ok {
		cfg.Account = string(one)
	}
	if change != nil {
		change(&cfg)
	}

	platform, err := New(cfg, feed.Deps{Accounts: a, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}

	return platform
}

func openSession(t testing.TB, platform feed.Platform) feed.Session {
	t.Helper()
	s, err := platform.Connect(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// readAll returns the events until the session's end.
func readAll(t testing.TB, s feed.Session) (events []feed.Event, end error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()

	for {
		more, err := s.Read(ctx)
		if err != nil {
			return events, err
		}
		events = append(events, more...)
	}
}

// received is the time at which an event was read.
var received = regexp.MustCompile(`,"Timestamp":"[0-9.]+"`)

// line returns the golden file's line of an event.
func line(e feed.Event) string {
	return fmt.Sprintf("%s %s account=%s names=%q subjects=%q headers=%d resync=%t identity=%v %s\n",
		e.Topic, e.Format, e.Account, e.Names, e.Subjects, len(e.Headers), e.Resync, e.Identity,
		received.ReplaceAll(e.Value, nil))
}

// amiEvent returns an event as it is on the wire.
func amiEvent(name string, lines ...string) string {
	return "Event: " + name + "\r\n" + strings.Join(append(lines, ""), "\r\n") + "\r\n"
}

// leg returns an event about a channel.
func leg(name, linked, id string, lines ...string) string {
	return amiEvent(name, append([]string{"Uniqueid: " + id, "Linkedid: " + linked}, lines...)...)
}
