package fanout

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/prometheus/client_golang/prometheus"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/fanout/conn"
	"trunkline/identity"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
)

// memoryLog is a Log of slices: what Kafka does, without Kafka.
type memoryLog struct {
	mu         sync.Mutex
	grown      *sync.Cond
	partitions [][]kafka.Record
	first      []int64
	topicID    kafka.TopicID
	epoch      int32 // of what is written now
	damaged    map[int][2]int64
	states     []stateTopic   // cc.state
	accounts   []kafka.Record // cc.accounts
	lookups    int            // requests but reads
	reads      int
	down       bool
	missing    bool // cc.evt is deleted
	uncounted  bool // nobody learns how many partitions there are
	known      bool // the number of partitions is cached
}

func newMemoryLog(partitions int) *memoryLog {
	l := &memoryLog{partitions: make([][]kafka.Record, partitions), first: make([]int64, partitions),
		topicID: kafka.TopicID{1}, damaged: make(map[int][2]int64), states: make([]stateTopic, partitions)}
	l.grown = sync.NewCond(&l.mu)
	return l
}

var errDown = errors.New("log is down")

func (l *memoryLog) Partitions(context.Context, string) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lookups++
	if l.down || l.uncounted {
		return 0, errDown
	}
	return len(l.partitions), nil
}

func (l *memoryLog) KnownPartitions(ctx context.Context, topic string) (int, error) {
	l.mu.Lock()
	known, partitions := l.known, len(l.partitions)
	l.mu.Unlock()

	if known {
		return partitions, nil
	}

	partitions, err := l.Partitions(ctx, topic)
	l.mu.Lock()
	defer l.mu.Unlock()

	l.known = err == nil
	return partitions, err
}

// stateTopic is a partition of cc.state, as a normalizer writes it.
type stateTopic struct {
	fold    *state.Partition
	records []kafka.Record
}

// normalizes makes the log have a state: a normalizer has taken all partitions over.
func (l *memoryLog) normalizes() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for p := range l.states {
		l.writeState(p)
	}
}

// writeState writes what has changed since the last call, and the position.
func (l *memoryLog) writeState(p int) {
	s := &l.states[p]
	if s.fold == nil {
		s.fold = state.NewPartition()
	}

	add := func(r kafka.Record) {
		r.Topic, r.Partition, r.Offset = event.TopicState, p, int64(len(s.records))
		s.records = append(s.records, r)
	}

	s.fold.Commit(func(c state.Change) {
		r := kafka.Record{Key: []byte(c.Key.String())}
		if c.Value != nil {
			r.Value = c.Value.Append(nil)
		} else {
			r.Headers = []kafka.Header{{Key: state.HeaderEventID, Value: s.fold.Last().Append(nil)}}
		}

		add(r)
	})

	at := state.Position{Kind: state.PositionKind, EventID: s.fold.Last(), Offset: int64(len(l.partitions[p])),
		LeaderEpoch: kafka.UnknownEpoch, TopicID: l.topicID.String()}
	highest := int64(-1)

	for i := range l.partitions[p] {
		if source, err := event.ParsePosition(string(l.partitions[p][i].Header(event.HeaderPosition))); err == nil &&
			source.Packed() > highest {
			highest, at.SourcePosition = source.Packed(), source.String()
		}
	}

	add(kafka.Record{Key: []byte(state.PositionKey), Value: at.Append(nil)})
	l.grown.Broadcast()
}

type memoryCompactedReader struct {
	l     *memoryLog
	topic string
	p     int
	next  int64
}

// compacted are the records of cc.state or cc.accounts. The caller holds mu.
func (l *memoryLog) compacted(topic string, p int) []kafka.Record {
	if topic == event.TopicAccounts {
		return l.accounts
	}
	return l.states[p].records
}

func (r *memoryCompactedReader) Close() {}

func (r *memoryCompactedReader) Lag() int64 {
	r.l.mu.Lock()
	defer r.l.mu.Unlock()
	return int64(len(r.l.compacted(r.topic, r.p))) - r.next
}

func (r *memoryCompactedReader) Position() kafka.LogPosition { return kafka.AtOffset(r.next) }

func (r *memoryCompactedReader) Idle() time.Time {
	if r.Lag() > 0 {
		return time.Time{}
	}
	return time.Now()
}

func (r *memoryCompactedReader) Read(ctx context.Context) ([]kafka.Record, error) {
	return r.l.await(ctx, func() ([]kafka.Record, error) {
		have := r.l.compacted(r.topic, r.p)
		records := slices.Clone(have[r.next:min(int64(len(have)), r.next+300)])
		r.next += int64(len(records))
		return records, nil
	})
}

// place writes placements: accounts named for a partition, "" for a partition that
// is complete, each at its end.
func (l *memoryLog) place(partition int, accounts ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, account := range accounts {
		p := event.Placement{AccountID: account, Partition: partition, Offset: int64(len(l.partitions[partition]))}
		l.accounts = append(l.accounts,
			kafka.Record{Topic: event.TopicAccounts, Offset: int64(len(l.accounts)), Time: time.Now(),
				Key: []byte(p.Key()), Value: p.Value()})
	}
	l.grown.Broadcast()
}

// await calls read under the lock, whenever the log has grown, until it returns
// records or an error.
func (l *memoryLog) await(ctx context.Context, read func() ([]kafka.Record, error)) ([]kafka.Record, error) {
	stop := context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.grown.Broadcast()
	})
	defer stop()

	l.mu.Lock()
	defer l.mu.Unlock()

	for ctx.Err() == nil {
		if l.down {
			return nil, errDown
		}
		if records, err := read(); len(records) > 0 || err != nil {
			return records, err
		}

		l.grown.Wait()
	}

	return nil, ctx.Err()
}

func (l *memoryLog) TopicID(context.Context, string) (kafka.TopicID, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		return kafka.TopicID{}, errDown
	}
	return l.topicID, nil
}

func (l *memoryLog) EpochEnd(_ context.Context, _ string, p int, epoch int32) (kafka.EpochEnd, error) {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.lookups++
	end := kafka.EpochEnd{LeaderEpoch: kafka.UnknownEpoch, Offset: -1}
	for _, r := range l.partitions[p][l.first[p]:] {
		if r.LeaderEpoch <= epoch {
			end = kafka.EpochEnd{LeaderEpoch: r.LeaderEpoch, Offset: r.Offset + 1}
		}
	}

	return end, nil
}

func (l *memoryLog) Offsets(_ context.Context, topic string, p int) (int64, int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.lookups++
	if l.down {
		return 0, 0, errDown
	}
	if l.missing {
		return 0, 0, fault.NotFound("no topic %q, or no such partition", topic)
	}
	if topic != event.TopicEvents {
		return 0, int64(len(l.compacted(topic, p))), nil
	}

	return l.first[p], int64(len(l.partitions[p])), nil
}

func (l *memoryLog) OffsetAt(_ context.Context, _ string, p int, at time.Time) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lookups++
	for i := l.first[p]; i < int64(len(l.partitions[p])); i++ {
		if !l.partitions[p][i].Time.Before(at) {
			return i, nil
		}
	}
	return int64(len(l.partitions[p])), nil
}

func (l *memoryLog) Read(cfg kafka.ReaderConfig) kafka.Source {
	from := cfg.From
	if cfg.Compacted { // cc.state or cc.accounts
		return &memoryCompactedReader{l: l, topic: cfg.Topic, p: cfg.Partition, next: from.Offset}
	}

	l.mu.Lock()
	defer l.mu.Unlock()

	r := &memoryReader{l: l, p: cfg.Partition, next: from.Offset, epoch: from.LeaderEpoch, topicID: from.TopicID}
	if r.topicID.IsZero() {
		r.topicID = l.topicID
	}

	return r
}

type memoryReader struct {
	l     *memoryLog
	p     int
	next  int64
	epoch int32 // of the record before next

	topicID kafka.TopicID
}

func (r *memoryReader) Close() {}

func (r *memoryReader) Lag() int64 {
	r.l.mu.Lock()
	defer r.l.mu.Unlock()
	return int64(len(r.l.partitions[r.p])) - r.next
}

func (r *memoryReader) Position() kafka.LogPosition {
	return kafka.LogPosition{TopicID: r.topicID, Offset: r.next, LeaderEpoch: r.epoch}
}

func (r *memoryReader) Idle() time.Time {
	r.l.mu.Lock()
	defer r.l.mu.Unlock()
	if r.l.down || int64(len(r.l.partitions[r.p])) > r.next {
		return time.Time{}
	}
	return time.Now()
}

func (r *memoryReader) Read(ctx context.Context) ([]kafka.Record, error) {
	return r.l.await(ctx, func() ([]kafka.Record, error) {
		have := r.l.partitions[r.p]
		if err := r.gap(have); err != nil {
			return nil, err
		}

		end := r.readable(have)
		if r.next >= end {
			return nil, nil
		}

		records := slices.Clone(have[r.next:min(end, r.next+300)])
		r.next += int64(len(records))
		r.epoch = records[len(records)-1].LeaderEpoch
		r.l.reads++

		return records, nil
	})
}

// gap returns the error of kafka.Reader for a log that does not continue at r.
func (r *memoryReader) gap(have []kafka.Record) error {
	first, next := r.l.first[r.p], int64(len(have))
	if r.topicID != r.l.topicID {
		return &kafka.GapError{Topic: event.TopicEvents, Partition: r.p, Kind: kafka.GapRecreated, Offset: r.next,
			Resume:      first,
			LeaderEpoch: kafka.UnknownEpoch, First: first, Next: next}
	}

	if r.next < first || r.next > next && r.epoch == kafka.UnknownEpoch {
		return kafka.OutOfRange(event.TopicEvents, r.p, r.next, first, next)
	}

	if r.next > first && r.epoch != kafka.UnknownEpoch && (r.next > next || have[r.next-1].LeaderEpoch != r.epoch) {
		gap := &kafka.GapError{Topic: event.TopicEvents, Partition: r.p, Kind: kafka.GapTruncated, Offset: r.next,
			Resume:      min(r.next, next),
			LeaderEpoch: kafka.UnknownEpoch, First: first, Next: next}
		for gap.Resume > first && have[gap.Resume-1].LeaderEpoch > r.epoch {
			gap.Resume--
		}

		if gap.Resume > first {
			gap.LeaderEpoch = have[gap.Resume-1].LeaderEpoch
		}

		return gap
	}

	if d, ok := r.l.damaged[r.p]; ok && r.next >= d[0] && r.next < d[1] {
		return &kafka.GapError{Topic: event.TopicEvents, Partition: r.p, Kind: kafka.GapDamaged, Offset: r.next,
			Resume:      d[1],
			LeaderEpoch: kafka.UnknownEpoch, Reason: "test"}
	}

	return nil
}

// readable is the offset up to which one read may go.
func (r *memoryReader) readable(have []kafka.Record) int64 {
	if d, ok := r.l.damaged[r.p]; ok && r.next < d[0] {
		return d[0]
	}
	return int64(len(have))
}

// damage makes the records of a partition from one offset to before another
// unreadable.
func (l *memoryLog) damage(partition int, from, to int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.damaged[partition] = [2]int64{from, to}
}

// cut drops the records of a partition from an offset on, as an election of a
// leader that never had them does.
func (l *memoryLog) cut(partition int, from int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.partitions[partition] = l.partitions[partition][:from:from]
	l.epoch++
	l.grown.Broadcast()
}

// recreate deletes the topic and creates it again.
func (l *memoryLog) recreate() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.partitions)
	clear(l.first)
	l.topicID[0]++
	l.epoch = 0
	l.grown.Broadcast()
}

// addPartition makes the topic larger.
func (l *memoryLog) addPartition() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.partitions, l.first, l.states = append(l.partitions, nil), append(l.first, 0), append(l.states, stateTopic{})
}

// put appends messages of an account, one for each source offset given, as a
// normalizer would: a source seen before gives the same id again.
func (l *memoryLog) put(partition int, account string, typ event.Type, sources ...int64) []event.ID {
	return l.putAt(partition, account, typ, time.UnixMilli(1_795_000_000_000), time.Unix(1, 0), sources...)
}

// putAt is put for sources that came in at that time (a millisecond apart) and
// were normalized at made.
func (l *memoryLog) putAt(partition int, account string, typ event.Type, came, made time.Time,
	sources ...int64) []event.ID {
	return l.putFacts(partition, account, typ, event.Facts{}, came, made, sources...)
}

// putFacts is putAt for messages with facts; without a name they have none.
func (l *memoryLog) putFacts(partition int, account string, typ event.Type, facts event.Facts, came, made time.Time,
	sources ...int64) []event.ID {
	l.mu.Lock()
	defer l.mu.Unlock()

	var ids []event.ID
	for _, source := range sources {
		position := unpacked(partition, source)
		id := event.NextID(0, came.UnixMilli()+position.Offset+1000*int64(position.Generation), partition)
		m := event.Message{ID: id, Type: typ, AccountID: account, Timestamp: 1_795_000_000,
			Data:     json.RawMessage(fmt.Sprintf(`{"n":%d}`, source)),
			Metadata: event.Metadata{Source: "test", OriginalFormat: "svc.cc", ProcessedAt: made.Unix()}}
		l.partitions[partition] = append(l.partitions[partition], kafka.Record{
			Topic: event.TopicEvents, Partition: partition, Offset: int64(len(l.partitions[partition])),
			LeaderEpoch: l.epoch, Time: time.UnixMilli(id.Milli()), Value: m.Append(nil),
			Headers: []kafka.Header{
				{Key: event.HeaderType, Value: []byte(typ)},
				{Key: event.HeaderAccount, Value: []byte(account)},
				{Key: event.HeaderOriginalFormat, Value: []byte("svc.cc")},
				{Key: event.HeaderPosition, Value: []byte(position.String())},
			},
		})
		added := &l.partitions[partition][len(l.partitions[partition])-1]

		for _, h := range []struct{ key, value string }{
			{event.HeaderName, string(facts.Name)}, {event.HeaderAgent, facts.AgentID},
			{event.HeaderQueue, facts.QueueID}, {event.HeaderCall, facts.CallID},
		} {
			if h.value != "" {
				added.Headers = append(added.Headers, kafka.Header{Key: h.key, Value: []byte(h.value)})
			}
		}

		ids = append(ids, id)
	}

	l.grown.Broadcast()
	return ids
}

// unpacked is the position whose packed form is source.
func unpacked(partition int, source int64) event.Position {
	return event.Position{Partition: partition, Offset: source & event.MaxOffset,
		Generation: int(source / (event.MaxOffset + 1))}
}

func (l *memoryLog) trim(partition int, first int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.first[partition] = first
}

// memoryDirectory knows tokens by heart.
type memoryDirectory struct {
	mu           sync.Mutex
	tree         *identity.Tree
	tokens       map[string]*identity.Principal
	revoked      map[string]bool
	change       chan struct{}
	visibilities map[string]*identity.Visibility // by token; others see everything
}

// newDirectory has the tree root > shop > kiosk, and other beside it.
func newDirectory() *memoryDirectory {
	return &memoryDirectory{
		tree: identity.NewTree(
			identity.Account{ID: "root", Name: "root", Domain: "root"},
			identity.Account{ID: "shop", Name: "shop", Domain: "shop", ParentID: "root"},
			identity.Account{ID: "kiosk", Name: "kiosk", Domain: "kiosk", ParentID: "shop"},
			identity.Account{ID: "other", Name: "other", Domain: "other"}),
		tokens: make(map[string]*identity.Principal), revoked: make(map[string]bool),
		change: make(chan struct{}), visibilities: make(map[string]*identity.Visibility),
	}
}

func (d *memoryDirectory) token(account string, accounts, types []string) string {
	return d.filteredToken(account, identity.Filter{AccountIDs: accounts, EventTypes: types})
}

func (d *memoryDirectory) filteredToken(account string, f identity.Filter) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	token := fmt.Sprintf("t%d", len(d.tokens))
	d.tokens[token] = &identity.Principal{UserID: "u-" + account, AccountID: account, TokenID: token,
		Audience: identity.AudienceEvents, ExpiresAt: time.Now().Add(time.Hour), Filter: f}
	return token
}

func (d *memoryDirectory) Authenticate(_ context.Context, token string,
	_ ...identity.Audience) (*identity.Principal, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p, ok := d.tokens[token]
	if !ok || d.revoked[token] {
		return nil, fault.Unauthenticated("bad token")
	}
	return p, nil
}

func (d *memoryDirectory) CheckPrincipal(p *identity.Principal) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.revoked[p.TokenID] {
		return fault.Forbidden("revoked")
	}
	return nil
}

func (d *memoryDirectory) Tree() *identity.Tree {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.tree
}

func (d *memoryDirectory) VisibilityOf(p *identity.Principal) *identity.Visibility {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s, ok := d.visibilities[p.TokenID]; ok {
		return s
	}
	return identity.NewVisibility(identity.RoleUser, p.AccountID, "", identity.Limits{})
}

func (d *memoryDirectory) Changed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.change
}

func (d *memoryDirectory) FindAccount(_ context.Context, id string) (identity.Account, bool, error) {
	account, ok := d.Tree().Account(id)
	return account, ok, nil
}

func (d *memoryDirectory) edit(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
	close(d.change)
	d.change = make(chan struct{})
}

// sharedPresence is what Redis holds, for nodes of one test.
type sharedPresence struct {
	mu    sync.Mutex
	nodes map[string]map[string]Client
	lag   map[time.Time]time.Duration
	down  bool

	published int // calls of Publish
}

func newPresence() *sharedPresence {
	return &sharedPresence{nodes: make(map[string]map[string]Client), lag: make(map[time.Time]time.Duration)}
}

func (p *sharedPresence) ReportLag(_ context.Context, _ string, hour time.Time, lag time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down {
		return errDown
	}
	p.lag[hour] = max(p.lag[hour], lag)
	return nil
}

func (p *sharedPresence) Lag(_ context.Context, from, to time.Time) (lag time.Duration, known bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if p.down {
		return 0, false, errDown
	}

	from = from.Truncate(time.Hour)
	_, known = p.lag[from]
	for hour, of := range p.lag {
		if !hour.Before(from) && !hour.After(to) {
			lag = max(lag, of)
		}
	}

	return lag, known, nil
}

func (p *sharedPresence) Publish(_ context.Context, node string, changed []Client, left []string,
	whole bool) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.published++
	if p.down {
		return 0, errDown
	}
	if p.nodes[node] == nil || whole {
		p.nodes[node] = make(map[string]Client)
	}

	for _, c := range changed {
		p.nodes[node][c.ID] = c
	}

	for _, id := range left {
		delete(p.nodes[node], id)
	}

	return len(p.nodes[node]), nil
}

func (p *sharedPresence) Others(ctx context.Context, node string) (nodes, connections int, err error) {
	clients, err := p.Clients(ctx, node)
	p.mu.Lock()
	defer p.mu.Unlock()
	for name := range p.nodes {
		if name != node {
			nodes++
		}
	}
	return nodes, len(clients), err
}

func (p *sharedPresence) Clients(_ context.Context, node string) ([]Client, error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if p.down {
		return nil, errDown
	}

	var all []Client
	for name, clients := range p.nodes {
		for _, c := range clients {
			if name != node {
				all = append(all, c)
			}
		}
	}

	return all, nil
}

func (p *sharedPresence) Leave(_ context.Context, node string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.nodes, node)
	return nil
}

// node is one fanout behind a real server on loopback.
type node struct {
	*Fanout
	url   string
	close func()
}

// testConfig gives the settings that a test leaves at zero their defaults, except
// that the number of connections is not limited.
func testConfig(cfg Config, node string) Config {
	cfg.NodeID = cmp.Or(cfg.NodeID, node)
	unlimited := DefaultSettings()
	unlimited.MaxConnectionsPerAccount, unlimited.MaxConnectionsPerUser, unlimited.MaxConnectionsPerAddress = 0, 0, 0

	set, defaults := reflect.ValueOf(&cfg.Settings).Elem(), reflect.ValueOf(unlimited)
	for i := range set.NumField() {
		if set.Field(i).IsZero() {
			set.Field(i).Set(defaults.Field(i))
		}
	}

	return cfg
}

func startNode(t *testing.T, cfg Config, log Log, directory *memoryDirectory, presence Presence, tls bool) *node {
	t.Helper()
	return startWith(t, cfg, Deps{Log: log, Auth: directory, Directory: directory, Presence: presence}, tls)
}

func startLimited(t *testing.T, cfg Config, log Log, directory *memoryDirectory, presence Presence,
	limits Limits) *node {
	t.Helper()
	return startWith(t, cfg, Deps{Log: log, Auth: directory, Directory: directory, Presence: presence, Limits: limits},
		false)
}

func startWith(t *testing.T, cfg Config, deps Deps, tls bool) *node {
	t.Helper()
	deps.Metrics, deps.Logger = prometheus.NewRegistry(), slog.New(slog.NewTextHandler(io.Discard, nil))
	f, err := New(testConfig(cfg, "node-"+t.Name()), deps)
	if err != nil {
		t.Fatal(err)
	}

	mux := http.NewServeMux()
	serve := func(what func(http.ResponseWriter, Request) error) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Request-ID", "request-1")
			host, _, _ := net.SplitHostPort(r.RemoteAddr)
			if err := what(w, Request{HTTP: r, Address: host}); err != nil {
				status := map[fault.Kind]int{fault.KindInvalid: 400, fault.KindUnauthenticated: 401,
					fault.KindForbidden: 403,
					fault.KindGone:      410, fault.KindUpgrade: 426, fault.KindLimited: 429,
					fault.KindUnavailable: 503}[fault.KindOf(err)]
				http.Error(w, err.Error(), max(status, 400))
			}
		}
	}

	mux.HandleFunc("/ws", serve(f.ServeWebSocket))
	mux.HandleFunc("/stream", serve(f.ServeEventStream))
	server := httptest.NewUnstartedServer(mux)
	server.Listener = conn.NewListener(server.Listener)

	if tls {
		server.EnableHTTP2 = true
		server.StartTLS()
	} else {
		server.Start()
	}

	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()

	n := &node{Fanout: f, url: server.URL, close: sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		server.Close()
	})}

	t.Cleanup(n.close)
	return n
}

// testClient is a WebSocket client of the channel.
type testClient struct {
	t  *testing.T
	ws *websocket.Conn
}

func (n *node) dial(t *testing.T, token, query string) *testClient {
	t.Helper()
	c, response, err := n.tryDial(token, query)
	if err != nil {
		status := 0
		if response != nil {
			status = response.StatusCode
		}
		t.Fatalf("dial %s: %v (status %d)", query, err, status)
	}

	t.Cleanup(func() { _ = c.Close() })
	return &testClient{t, c}
}

func (n *node) tryDial(token, query string) (*websocket.Conn, *http.Response, error) {
	dialer := *websocket.DefaultDialer
	dialer.TLSClientConfig = insecure
	return dialer.Dial("ws"+strings.TrimPrefix(n.url, "http")+"/ws?token="+token+"&"+query, nil)
}

const patience = 3 * time.Minute

// next is the next message.
func (c *testClient) next() map[string]any {
	c.t.Helper()
	_ = c.ws.SetReadDeadline(time.Now().Add(patience))
	_, data, err := c.ws.ReadMessage()
	if err != nil {
		c.t.Fatalf("reading: %v", err)
	}

	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		c.t.Fatalf("message %q: %v", data, err)
	}

	return m
}

// numbers are the source offsets of the next count events.
func (c *testClient) numbers(count int) []int {
	c.t.Helper()
	var got []int
	for len(got) < count {
		if m := c.next(); m["cursor"] == nil {
			got = append(got, number(m))
		}
	}
	return got
}

func number(m map[string]any) int { return int(m["data"].(map[string]any)["n"].(float64)) }

// closed waits for the server's close frame, letting events pass.
func (c *testClient) closed() *websocket.CloseError {
	c.t.Helper()
	for {
		_ = c.ws.SetReadDeadline(time.Now().Add(patience))
		if _, _, err := c.ws.ReadMessage(); err != nil {
			var e *websocket.CloseError
			if !errors.As(err, &e) {
				c.t.Fatalf("ended without a close frame: %v", err)
			}
			return e
		}
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func runNode(from, to int) []int64 {
	var all []int64
	for i := from; i < to; i++ {
		all = append(all, int64(i))
	}
	return all
}

func rising(from, to int) []int {
	var all []int
	for i := from; i < to; i++ {
		all = append(all, i)
	}
	return all
}
