package fanout

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/event"
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
			Metadata: event.Metadata{Source: "test", OriginalFormat: e.format, ProcessedAt: e.at.Unix()}}
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
	id, places, err := parseSince(s.Cursor)
	if err != nil || id.String() != s.EventID {
		t.Fatalf("cursor %q of %q: %v", s.Cursor, s.EventID, err)
	}
	for _, p := range places {
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

// script makes up a contact center's day: whom it knows, and what can happen.
type script struct {
	random  *rand.Rand
	now     time.Time
	sources [3]int64
	told    [3][]told
	calls   map[string]int // live ones, by "account call", to the partition
}

var scriptAccounts = []string{"root", "shop", "kiosk", "other"}

// next makes something happen, in the partition of whom it happens to.
func (s *script) next() told {
	s.now = s.now.Add(time.Duration(1+s.random.IntN(3)) * time.Second)
	account, n := scriptAccounts[s.random.IntN(len(scriptAccounts))], s.random.IntN(12)
	e := told{partition: n % 3, at: s.now, account: account}
	if s.random.IntN(2) == 0 {
		types := []event.Type{event.AgentLogin, event.AgentLogout, event.AgentBreakStart, event.AgentBreakEnd, event.AgentStatus}
		e.typ, e.format = types[s.random.IntN(len(types))], "generic"
		e.data = fmt.Sprintf(`{"data":{"agent_id":"agent %d"}}`, n)
		if e.typ == event.AgentStatus {
			e.data = fmt.Sprintf(`{"data":{"agent_id":"agent %d","state":"%s"}}`, n, []string{"idle", "busy"}[s.random.IntN(2)])
		}
	} else {
		key := fmt.Sprint(account, n)
		actions := []string{"member-queue-start"}
		if _, live := s.calls[key]; live {
			actions = []string{"agent-offering", "bridge-agent-start", "bridge-agent-fail", "member-queue-end"}
		}
		action := actions[s.random.IntN(len(actions))]
		if s.calls[key] = e.partition; action == "member-queue-end" {
			delete(s.calls, key)
		}
		e.typ, e.format = event.QueueCall, "freeswitch.callcenter"
		e.data = fmt.Sprintf(`{"CC-Action":"%s","CC-Queue":"q","CC-Agent":"agent %d","CC-Member-UUID":"call %d"}`, action, s.random.IntN(3), n)
	}
	e.source = s.sources[e.partition]
	s.sources[e.partition]++
	s.told[e.partition] = append(s.told[e.partition], e)
	return e
}

// wallboard is what a client keeps, written without a look at package floor.
type wallboard struct {
	agents map[string]*SnapshotAgent
	calls  map[string]*SnapshotCall
}

func newWallboard(s *Snapshot) *wallboard {
	w := &wallboard{make(map[string]*SnapshotAgent), make(map[string]*SnapshotCall)}
	for _, a := range s.Agents {
		w.agents[a.AccountID+"/"+a.AgentID] = &a
	}
	for _, c := range s.Calls {
		w.calls[c.AccountID+"/"+c.CallID] = &c
	}
	return w
}

func (w *wallboard) apply(t *testing.T, message []byte) {
	var m struct {
		Type      event.Type
		AccountID string `json:"account_id"`
		Timestamp int64
		Data      struct {
			Data   struct{ Agent_id, State string }
			Action string `json:"CC-Action"`
			Queue  string `json:"CC-Queue"`
			Agent  string `json:"CC-Agent"`
			Member string `json:"CC-Member-UUID"`
		}
	}
	if err := json.Unmarshal(message, &m); err != nil {
		t.Error(err)
	}
	if m.Type == event.QueueCall {
		key := m.AccountID + "/" + m.Data.Member
		state := map[string]string{"member-queue-start": "waiting", "bridge-agent-fail": "waiting",
			"agent-offering": "offering", "bridge-agent-start": "answered"}[m.Data.Action]
		if state == "" {
			delete(w.calls, key)
			return
		}
		c := w.calls[key]
		if c == nil {
			c = &SnapshotCall{AccountID: m.AccountID, CallID: m.Data.Member}
			w.calls[key] = c
		}
		if c.QueueID = m.Data.Queue; string(c.State) != state {
			c.Since = m.Timestamp
		}
		if c.AgentID = m.Data.Agent; state == "waiting" {
			c.AgentID = ""
		}
		c.State = map[string]SnapshotCall{"waiting": {State: "waiting"}, "offering": {State: "offering"}, "answered": {State: "answered"}}[state].State
		return
	}
	key := m.AccountID + "/" + m.Data.Data.Agent_id
	if m.Type == event.AgentLogout {
		delete(w.agents, key)
		return
	}
	a := w.agents[key]
	if a == nil {
		a = &SnapshotAgent{AccountID: m.AccountID, AgentID: m.Data.Data.Agent_id}
		w.agents[key] = a
	}
	was := *a
	switch m.Type {
	case event.AgentLogin, event.AgentBreakEnd:
		a.Status = "logged_in"
	case event.AgentBreakStart:
		a.Status = "on_break"
	case event.AgentStatus:
		a.State = m.Data.Data.State
	}
	if *a != was {
		a.Since = m.Timestamp
	}
}

func (w *wallboard) shows(t *testing.T) string { return text(t, w.agents) + text(t, w.calls) }

// TestSnapshotAndWhatFollowsItAreEverything takes snapshots while events of
// three partitions come in, some of them twice, and continues from each as a
// client would: nothing may be missing, nothing come again.
func TestSnapshotAndWhatFollowsItAreEverything(t *testing.T) {
	const marker = "the end"
	log, directory, presence := newMemoryLog(3), newDirectory(), newPresence()
	day := &script{random: rand.New(rand.NewPCG(4, 7)), now: time.Now().Add(-3 * time.Hour), calls: make(map[string]int)}
	for range 500 { // before the nodes start
		log.tell(day.next())
	}
	nodes := []*node{
		startNode(t, Config{NodeID: "a", RingBytes: 1}, log, directory, presence, false),
		startNode(t, Config{NodeID: "b"}, log, directory, presence, false),
	}
	type cut struct {
		*Snapshot
		node    int
		account string
	}
	var cuts []cut
	for i := range 1500 {
		e := day.next()
		log.tell(e)
		if day.random.IntN(40) == 0 { // a normalizer that ran twice
			all := day.told[e.partition]
			log.tell(all[max(0, len(all)-1-day.random.IntN(20)):]...)
		}
		if i%50 != 0 {
			continue
		}
		account := []string{"root", "shop", "other"}[day.random.IntN(3)]
		on := day.random.IntN(2)
		eventually(t, "another snapshot", func() bool {
			s, err := nodes[on].Snapshot(t.Context(), directory.principal(t, account))
			if err != nil || slices.ContainsFunc(cuts, func(c cut) bool { return c.Cursor == s.Cursor }) {
				return false
			}
			cuts = append(cuts, cut{s, on, account})
			return true
		})
	}
	for _, account := range []string{"kiosk", "other"} {
		for p := range 3 {
			e := told{partition: p, source: day.sources[p], at: day.now.Add(time.Minute), account: account,
				typ: event.AgentPerform, format: "generic", data: `{"data":{"agent_id":"` + marker + `"}}`}
			day.sources[p]++
			log.tell(e)
		}
		day.now = day.now.Add(time.Second)
	}

	nodes = append(nodes, startNode(t, Config{NodeID: "c"}, log, directory, presence, false)) // after a restart
	final := make(map[string]*Snapshot)
	for _, account := range []string{"root", "shop", "other"} {
		s := nodes[0].complete(t, directory.principal(t, account), log)
		for _, n := range nodes[1:] {
			other := n.complete(t, directory.principal(t, account), log)
			if other.Timestamp = s.Timestamp; text(t, other) != text(t, s) {
				t.Errorf("two nodes differ:\n%s\n%s", text(t, s), text(t, other))
			}
		}
		if len(s.Agents) < 5 || len(s.Calls) < 2 {
			t.Errorf("there is too little to see: %s", text(t, s))
		}
		final[account] = s
	}
	for _, c := range cuts {
		board, seen, ends := newWallboard(c.Snapshot), make(map[string]bool), 0
		client := nodes[1-c.node].dial(t, directory.token(c.account, nil, nil), "since="+c.Cursor)
		for ends < 3 {
			_ = client.ws.SetReadDeadline(time.Now().Add(patience))
			_, message, err := client.ws.ReadMessage()
			if err != nil {
				t.Fatal(err)
			}
			id, _ := messageID(message)
			if seen[id.String()] {
				t.Errorf("%s came twice", id)
			}
			seen[id.String()] = true
			if strings.Contains(string(message), marker) {
				ends++
				continue
			}
			board.apply(t, message)
		}
		_ = client.ws.Close()
		if got, want := board.shows(t), newWallboard(final[c.account]).shows(t); got != want {
			t.Fatalf("%s continued from %s shows\n%s\nbut the floor is\n%s", c.account, c.Cursor, got, want)
		}
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
		old := loggedIn("root", "long ago", 0)
		old.at = time.Now().Add(-2 * time.Hour)
		log.tell(old, loggedIn("root", "7", 1))
		synctest.Wait()
		_, err := f.Snapshot(t.Context(), root)
		if fault.KindOf(err) != fault.KindUnavailable || fault.As(err).RetryAfter != time.Second {
			t.Errorf("before anything was read: %v", err)
		}
		close(gate)
		synctest.Wait()
		if got := agents(t, f, root); !slices.Equal(got, []string{"7"}) {
			t.Errorf("got %v", got)
		}
		time.Sleep(time.Hour + time.Second)
		if got := agents(t, f, root); len(got) != 0 {
			t.Errorf("an hour later: %v", got)
		}
	})
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
		_, places, err := parseSince(mustSnapshot(t, f, root).Cursor)
		if err != nil || !slices.Equal(places, []place{{0, -1}, {1, -1}}) {
			t.Errorf("places %v: %v", places, err)
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
