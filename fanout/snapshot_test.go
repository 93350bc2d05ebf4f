package fanout

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/event"
	"trunkline/format"
	"trunkline/format/registry"
	"trunkline/identity"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
)

// told is one event of a contact center, as a normalizer writes it.
type told struct {
	partition     int
	source        int64
	at            time.Time
	account       string
	typ           event.Type
	format, data  string
	withoutSource bool
}

// tell appends events; one told before is a repeat and has the same id.
func (l *memoryLog) tell(all ...told) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range all {
		id := event.NextID(0, e.at.UnixMilli(), e.partition)
		m := event.Message{ID: id, Type: e.typ, AccountID: e.account, Timestamp: e.at.Unix(), Data: json.RawMessage(e.data),
			Metadata: event.Metadata{Source: "test", OriginalFormat: e.format, ProcessedAt: e.at.Unix(), QueueID: queueOf(e)}}
		r := kafka.Record{
			Topic: event.TopicEvents, Partition: e.partition, Offset: int64(len(l.partitions[e.partition])),
			Time: time.UnixMilli(id.Milli()), Value: m.Append(nil),
			Headers: []kafka.Header{
				{Key: event.HeaderType, Value: []byte(e.typ)},
				{Key: event.HeaderAccount, Value: []byte(e.account)},
				{Key: event.HeaderOriginalFormat, Value: []byte(e.format)},
			},
		}
		if !e.withoutSource {
			position := event.Position{Partition: e.partition, Offset: e.source}
			r.Headers = append(r.Headers, kafka.Header{Key: event.HeaderPosition, Value: []byte(position.String())})
		}
		l.partitions[e.partition] = append(l.partitions[e.partition], r)
	}
	l.grown.Broadcast()
}

func loggedIn(account, agent string, source int64) told {
	return told{source: source, at: time.Now(), account: account, typ: event.AgentLogin, format: "generic",
		data: `{"data":{"agent_id":"` + agent + `"}}`}
}

func (d *memoryDirectory) principal(t *testing.T, account string, accounts ...string) *identity.Principal {
	t.Helper()
	p, err := d.Authenticate(t.Context(), d.token(account, accounts, []string{string(event.AgentPerform)}))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// complete waits for the snapshot that has everything the log has.
func (n *node) complete(t *testing.T, p *identity.Principal, log *memoryLog) *Snapshot {
	t.Helper()
	var s *Snapshot
	eventually(t, "a complete snapshot", func() bool {
		var err error
		if s, err = n.Snapshot(t.Context(), p); fault.KindOf(err) == fault.KindUnavailable {
			return false
		}
		if err != nil {
			t.Fatal(err)
		}
		return slices.Equal(nexts(t, s), log.ends())
	})
	return s
}

// nexts are the offsets at which the snapshot is continued.
func nexts(t *testing.T, s *Snapshot) (all []int64) {
	t.Helper()
	at, err := parseSince(s.Cursor)
	if err != nil || at.id.String() != s.EventID {
		t.Fatalf("cursor %q of %q: %v", s.Cursor, s.EventID, err)
	}
	for _, p := range at.positions {
		all = append(all, p.next)
	}
	return all
}

func (l *memoryLog) ends() (all []int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, records := range l.partitions {
		all = append(all, int64(len(records)))
	}
	return all
}

func text(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestSnapshotShowsTheTokensAccounts(t *testing.T) {
	log, directory := newMemoryLog(2), newDirectory()
	n := startNode(t, Config{}, log, directory, newPresence(), false)
	for i, account := range []string{"root", "shop", "kiosk", "other", "unheard-of"} {
		e := loggedIn(account, "7", int64(i))
		e.partition = i % 2
		log.tell(e)
	}
	for _, c := range []struct {
		name, account string
		accounts      []string
		want          string
	}{
		{"the whole tree", "root", nil, "kiosk root shop"},
		{"an account and below", "shop", nil, "kiosk shop"},
		{"the accounts it named", "root", []string{"shop"}, "shop"},
		{"of those it named, what it may see", "shop", []string{"root", "kiosk"}, "kiosk"},
		{"another tree", "other", nil, "other"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var accounts []string
			for _, a := range n.complete(t, directory.principal(t, c.account, c.accounts...), log).Agents {
				accounts = append(accounts, a.AccountID)
			}
			if got := strings.Join(accounts, " "); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	if _, err := n.Snapshot(t.Context(), directory.principal(t, "shop", "other")); fault.KindOf(err) != fault.KindForbidden {
		t.Errorf("a token whose accounts are all out of sight: %v", err)
	}
}

func TestSnapshotOfNothingCanBeContinued(t *testing.T) {
	log, directory := newMemoryLog(2), newDirectory()
	n := startNode(t, Config{}, log, directory, newPresence(), false)
	s := n.complete(t, directory.principal(t, "root"), log)
	if got := text(t, s.Agents) + text(t, s.Calls); s.EventID != "" || s.Cursor[0] != '.' || got != "[][]" {
		t.Errorf("got %+v", s)
	}
	log.put(1, "root", event.QueueCall, 5)
	if got := n.dial(t, directory.token("root", nil, nil), "since="+s.Cursor).numbers(1); got[0] != 5 {
		t.Errorf("got %v", got)
	}
}

func TestSnapshotsCanBeOff(t *testing.T) {
	directory := newDirectory()
	n := startNode(t, Config{SnapshotHistory: -1}, newMemoryLog(1), directory, newPresence(), false)
	if _, err := n.Snapshot(t.Context(), directory.principal(t, "root")); fault.KindOf(err) != fault.KindNotFound {
		t.Errorf("got %v", err)
	}
}

// gatedLog gives nothing to its readers before the gate is open.
type gatedLog struct {
	*memoryLog
	gate chan struct{}
}

func (l *gatedLog) Reader(topic string, partition int, offset int64) Reader {
	return &gatedReader{l.memoryLog.Reader(topic, partition, offset), l.gate}
}

type gatedReader struct {
	Reader
	gate chan struct{}
}

func (r *gatedReader) Read(ctx context.Context) ([]kafka.Record, error) {
	select {
	case <-r.gate:
		return r.Reader.Read(ctx)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// inBubble runs a node without a server, where time is free.
func inBubble(t *testing.T, cfg Config, test func(t *testing.T, f *Fanout, log *memoryLog, gate chan struct{}, directory *memoryDirectory)) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(10_000 * 24 * time.Hour) // ids begin in 2001
		log, directory := newMemoryLog(1), newDirectory()
		gate := make(chan struct{})
		cfg.NodeID = "node"
		f, err := New(cfg, Deps{Log: &gatedLog{log, gate}, Directory: directory, Presence: newPresence(),
			Metrics: prometheus.NewRegistry(), Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		// What the test tells the log before it waits for the first time is there
		// when the node starts.
		go func() { done <- f.Run(ctx) }()
		test(t, f, log, gate, directory)
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func agents(t *testing.T, f *Fanout, p *identity.Principal) []string {
	t.Helper()
	s, err := f.Snapshot(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, a := range s.Agents {
		ids = append(ids, a.AgentID)
	}
	return ids
}

func TestSnapshotWaitsForTheWholeHistory(t *testing.T) {
	inBubble(t, Config{SnapshotHistory: time.Hour}, func(t *testing.T, f *Fanout, log *memoryLog, gate chan struct{}, directory *memoryDirectory) {
		root := directory.principal(t, "root")
		wantNone := func(when string) {
			t.Helper()
			_, err := f.Snapshot(t.Context(), root)
			if fault.KindOf(err) != fault.KindUnavailable || fault.As(err).RetryAfter != time.Second {
				t.Errorf("%s: %v", when, err)
			}
		}
		old := loggedIn("root", "long ago", 0)
		old.at = time.Now().Add(-2 * time.Hour)
		log.tell(old)
		for i := range int64(301) { // one more than a read gives
			log.tell(loggedIn("root", "7", 1+i))
		}
		synctest.Wait()
		wantNone("before anything was read")
		gate <- struct{}{}
		synctest.Wait()
		wantNone("before everything was read")
		gate <- struct{}{}
		synctest.Wait()
		if got := agents(t, f, root); !slices.Equal(got, []string{"7"}) {
			t.Errorf("got %v", got)
		}
		log.tell(loggedIn("root", "8", 302))
		time.Sleep(maxSnapshotAge)
		if got := agents(t, f, root); !slices.Equal(got, []string{"7"}) {
			t.Errorf("a little behind: %v", got)
		}
		time.Sleep(time.Second)
		wantNone("far behind")
		close(gate)
		synctest.Wait()
		if got := agents(t, f, root); !slices.Equal(got, []string{"7", "8"}) {
			t.Errorf("got %v", got)
		}
		time.Sleep(time.Hour)
		if got := agents(t, f, root); len(got) != 0 {
			t.Errorf("an hour later: %v", got)
		}
	})
}

func TestSnapshotDropsRepeats(t *testing.T) {
	log, directory := newMemoryLog(1), newDirectory()
	n := startNode(t, Config{}, log, directory, newPresence(), false)
	in, out, again := loggedIn("root", "7", 0), loggedIn("root", "7", 1), loggedIn("root", "7", 2)
	out.typ = event.AgentLogout
	log.tell(in, out, in) // a normalizer that ran twice, as far as we can see yet
	s := n.complete(t, directory.principal(t, "root"), log)
	if len(s.Agents) != 0 {
		t.Errorf("the repeat brought an agent back: %v", s.Agents)
	}
	log.tell(out, again)
	sub := n.dial(t, directory.token("root", nil, nil), "since="+s.Cursor)
	if m := sub.next(); m["type"] != string(event.AgentLogin) {
		t.Errorf("the repeat came after the snapshot: %v", m)
	}
}

func TestSnapshotIsNotGivenWhileTheLogIsAway(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, f *Fanout, log *memoryLog, gate chan struct{}, directory *memoryDirectory) {
		root := directory.principal(t, "root")
		log.mu.Lock()
		log.down = true
		log.mu.Unlock()
		close(gate)
		synctest.Wait()
		if _, err := f.Snapshot(t.Context(), root); fault.KindOf(err) != fault.KindUnavailable {
			t.Errorf("got %v", err)
		}
		log.mu.Lock()
		log.down = false
		log.mu.Unlock()
		log.tell(loggedIn("root", "7", 0))
		time.Sleep(2 * time.Second)
		if got := agents(t, f, root); !slices.Equal(got, []string{"7"}) {
			t.Errorf("got %v", got)
		}
	})
}

func TestSnapshotBeginsAgainAfterAHoleInTheLog(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, f *Fanout, log *memoryLog, gate chan struct{}, directory *memoryDirectory) {
		root := directory.principal(t, "root")
		log.tell(loggedIn("root", "1", 0), loggedIn("root", "2", 1), loggedIn("root", "3", 2))
		synctest.Wait() // it is about to read from the beginning
		log.trim(0, 1)
		close(gate)
		time.Sleep(2 * time.Second)
		if got := agents(t, f, root); !slices.Equal(got, []string{"2", "3"}) {
			t.Errorf("got %v", got)
		}
	})
}

func TestSnapshotFollowsNewPartitionsAndAccounts(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, f *Fanout, log *memoryLog, gate chan struct{}, directory *memoryDirectory) {
		root := directory.principal(t, "root")
		close(gate)
		synctest.Wait()
		log.mu.Lock()
		log.partitions = append(log.partitions, nil)
		log.first = append(log.first, 0)
		log.mu.Unlock()
		directory.edit(func() {
			directory.tree = identity.NewTree(identity.Account{ID: "root", Name: "root", Domain: "root"},
				identity.Account{ID: "new", Name: "new", Domain: "new", ParentID: "root"})
		})
		e := loggedIn("new", "7", 0)
		e.partition, e.withoutSource = 1, true
		log.tell(e)
		time.Sleep(growthInterval + time.Second)
		if got := agents(t, f, root); !slices.Equal(got, []string{"7"}) {
			t.Errorf("got %v", got)
		}
		at, err := parseSince(mustSnapshot(t, f, root).Cursor)
		if err != nil || !slices.Equal(at.positions, []position{{0, -1, unknownEpoch}, {1, -1, 0}}) {
			t.Errorf("positions %v: %v", at.positions, err)
		}
	})
}

func mustSnapshot(t *testing.T, f *Fanout, p *identity.Principal) *Snapshot {
	t.Helper()
	s, err := f.Snapshot(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// queueOf returns the queue that the normalizer finds in the event's data.
func queueOf(e told) string {
	f, ok := registry.Lookup(e.format)
	if !ok {
		return ""
	}
	what, err := f.ReadEvent([]byte(e.data), new(format.Fields))
	if err != nil {
		return ""
	}
	return what.QueueID
}
