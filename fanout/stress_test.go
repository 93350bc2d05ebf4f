package fanout

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/redis/go-redis/v9"

	"trunkline/event"
	"trunkline/identity"
	"trunkline/internal/kafka"
	"trunkline/internal/kafka/kafkatest"
	"trunkline/internal/retry"
	"trunkline/internal/testservice"
)

// The stress test: three nodes on a real Kafka and Redis, which crash, drain
// and come back while hundreds of clients read, stall, break off, resume on
// any node and lose their permission. Redis loses what it holds, and the topic
// gets more partitions. Nothing may be lost, and nothing repeated for clients of
// one partition and clients with cursors; clients with plain ids over many
// partitions may get events again. The seed is printed; set
// TRUNKLINE_STRESS_SEED to run it again.
const (
	stressPartitions = 16
	stressAccounts   = 16 // each in one partition
	stressGrowth     = 2  // partitions, each with an account, that are added on the way
	stressClients    = 600
	stressNodes      = 3
	stressTroubles   = 8 // at most
)

// stressEvents is the number of events of each account.
var stressEvents = 300 * stressScale

var stressScale = func() int {
	n, err := strconv.Atoi(cmp.Or(os.Getenv("TRUNKLINE_STRESS_SCALE"), "1"))
	if err != nil || n < 1 {
		panic("TRUNKLINE_STRESS_SCALE is not a whole number of at least 1")
	}
	return n
}()

func TestStress(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("TRUNKLINE_STRESS_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}

	t.Logf("seed %d", seed)
	before := runtime.NumGoroutine()
	descriptors := openDescriptors(t)
	s := newStress(t, seed, 0)

	var clients sync.WaitGroup
	ready := make(chan struct{}, stressClients)
	for i := range stressClients {
		clients.Go(func() { s.runClient(i, ready) })
	}

	for range stressClients {
		<-ready
	}

	done := make(chan struct{})
	go func() { s.produceEvents(); close(s.published) }()
	go func() { clients.Wait(); close(done) }()
	s.trouble(stressTroubles * stressScale)
	<-done
	s.close()
	t.Logf("%d deliveries, %d connections, closed with %v", s.deliveries.Load(), s.dials.Load(), s.codeCounts())

	if got := s.deliveries.Load(); got < int64(stressEvents*stressClients) && !t.Failed() {
		t.Errorf("only %d deliveries", got)
	}

	for code := range s.codeCounts() {
		if !slices.Contains(
			[]int{DisconnectBroken.Code, DisconnectRestart.Code, DisconnectTooSlow.Code, DisconnectAccessRevoked.Code},
			code) {
			t.Errorf("clients were closed with %d", code)
		}
	}

	eventually(t, "goroutines end", func() bool { return runtime.NumGoroutine() <= before+5 })
	eventually(t, "descriptors are closed", func() bool { return openDescriptors(t) <= descriptors+5 })
}

type stress struct {
	t          *testing.T
	random     *rand.Rand // of trouble
	seed       uint64
	cluster    *kafka.Cluster
	producer   *kafka.Producer
	redis      *redis.Client
	prefix     string
	directory  *memoryDirectory
	published  chan struct{}
	deliveries atomic.Int64
	dials      atomic.Int64
	linger     time.Duration // of the nodes' streams; 0: the default

	mu    sync.Mutex
	nodes [stressNodes]*node
	made  int
	codes map[int]int
}

func newStress(t *testing.T, seed uint64, linger time.Duration) *stress {
	prefix := testservice.Prefix(t)
	settings := kafka.DefaultSettings(testservice.Kafka(t)...)
	settings.TopicPrefix = prefix
	cluster := kafkatest.Open(t, kafka.Config{Settings: settings}, stressPartitions)
	s := &stress{t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 0)), cluster: cluster,
		producer: cluster.NewProducer(kafka.ProducerConfig{}),
		redis:    redis.NewClient(&redis.Options{Addr: testservice.Redis(t)}),
		prefix:   prefix + ":", directory: newDirectory(), published: make(chan struct{}), codes: make(map[int]int),
		linger: linger}
	accounts := []identity.Account{{ID: "all", Name: "all", Domain: "all"}}

	for i := range stressAccounts + stressGrowth {
		name := fmt.Sprint("account", i)
		accounts = append(accounts, identity.Account{ID: name, Name: name, Domain: name, ParentID: "all"})
	}

	s.directory.tree = identity.NewTree(accounts...)
	for i := range s.nodes {
		s.nodes[i] = s.newNode()
	}

	return s
}

func (s *stress) newNode() *node {
	s.made++
	return startWith(s.t,
		Config{NodeID: fmt.Sprint("node", s.made), StreamLinger: s.linger,
			Settings: Settings{QueueBytes: 64 << 10, RingBytes: 1 << 20, DrainSpread: 200 * time.Millisecond}},
		Deps{LogReader: kafka.NewLog(s.cluster), Auth: s.directory, Directory: s.directory,
			Presence: &RedisPresence{Client: s.redis, Prefix: s.prefix}}, false)
}

func (s *stress) close() {
	for _, n := range s.nodes {
		n.close()
	}

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	if err := s.producer.Close(ctx); err != nil {
		s.t.Error(err)
	}

	s.cluster.Close()
	_ = s.redis.Close()
}

// produceEvents does what normalizers do, one of which runs twice now and then.
func (s *stress) produceEvents() {
	random := rand.New(rand.NewPCG(s.seed, 1))
	const partitions = stressPartitions + stressGrowth
	var last [partitions]event.ID
	var sources [partitions]int64
	history := make([][]kafka.Record, partitions)

	for n := range stressEvents {
		var batch []kafka.Record
		put := func(account, n int) {
			p := account % stressPartitions
			if account >= stressAccounts {
				p = stressPartitions + account - stressAccounts
			}

			last[p] = event.NextID(last[p], time.Now().UnixMilli(), p)
			r := stressRecord(last[p], p, sources[p], fmt.Sprint("account", account), n)
			sources[p]++
			history[p] = append(history[p], r)
			batch = append(batch, r)
		}

		for account := range stressAccounts {
			put(account, n)
		}

		if n == stressEvents/2 {
			if err := s.cluster.EnsurePartitions(context.Background(), event.TopicEvents, partitions); err != nil {
				s.t.Error(err)
				return
			}
		}

		if n >= stressEvents/2 {
			for account := range stressGrowth {
				put(stressAccounts+account, 2*n-stressEvents)
				put(stressAccounts+account, 2*n-stressEvents+1)
			}
		}

		if random.IntN(10) == 0 {
			p := random.IntN(stressPartitions)
			batch = append(batch, history[p][max(0, len(history[p])-5):]...)
		}
		if err := s.producer.Produce(context.Background(), batch...); err != nil {
			s.t.Error(err)
			return
		}
		if n%4 == 0 {
			time.Sleep(100 * time.Millisecond) // the load, not a wait for anything
		}
	}
}

func stressRecord(id event.ID, partition int, source int64, account string, n int) kafka.Record {
	m := event.Message{ID: id, Type: event.QueueCall, AccountID: account, Timestamp: 1,
		Data:     json.RawMessage(fmt.Sprintf(`{"n":%d,"pad":"%0700d"}`, n, 0)),
		Metadata: event.Metadata{Source: "stress", OriginalFormat: "svc.cc", ProcessedAt: time.Now().Unix()}}

	return kafka.Record{Topic: event.TopicEvents, Partition: partition, Time: time.UnixMilli(id.Milli()),
		Key:   []byte(account),
		Value: m.Append(nil), Headers: []kafka.Header{
			{Key: event.HeaderType, Value: []byte(m.Type)},
			{Key: event.HeaderAccount, Value: []byte(account)},
			{Key: event.HeaderOriginalFormat, Value: []byte("svc.cc")},
			{Key: event.HeaderPosition, Value: []byte(event.Position{Partition: partition, Offset: source}.String())},
		}}
}

// trouble crashes and drains nodes until all is published, but not without end on a
// slow machine: each time all clients of a node connect again.
func (s *stress) trouble(most int) {
	for range most {
		select {
		case <-s.published:
			return
		case <-time.After(time.Duration(900+s.random.IntN(1200)) * time.Millisecond):
		}

		if s.random.IntN(3) == 0 {
			s.loseRedis()
			continue
		}

		i := s.random.IntN(stressNodes)
		s.mu.Lock()
		n := s.nodes[i]
		s.mu.Unlock()

		if s.random.IntN(2) == 0 {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			n.Drain(ctx)
			cancel()
		}

		n.close() // the connections that are left break
		s.mu.Lock()
		s.nodes[i] = s.newNode()
		s.mu.Unlock()
	}
}

// loseRedis deletes everything that the nodes keep in Redis.
func (s *stress) loseRedis() {
	keys, err := s.redis.Keys(context.Background(), s.prefix+"*").Result()
	if err == nil && len(keys) > 0 {
		err = s.redis.Del(context.Background(), keys...).Err()
	}
	if err != nil {
		s.t.Error(err)
	}
}

// runClient reads until it has everything. One in twelve has a cursor over all
// accounts and partitions, one in twelve plain ids over all of them, the others
// one account and plain ids; a few stall, and a few lose their permission.
func (s *stress) runClient(i int, ready chan<- struct{}) {
	random := rand.New(rand.NewPCG(s.seed, uint64(100+i)))
	c := &stressClient{stress: s, random: random, since: Earliest, breaks: 4, last: make(map[string]int)}
	var token string

	switch {
	case i%12 == 0:
		c.cursors, c.want = true, stressAccounts+stressGrowth
		token = s.directory.token("all", nil, nil)
	case i%12 == 6:
		c.repeats, c.want, c.breaks = true, stressAccounts+stressGrowth, 12
		token = s.directory.token("all", nil, nil)
	default:
		c.want = 1
		token = s.directory.token("all", []string{fmt.Sprint("account", i%stressAccounts)}, nil)
	}

	doomed := i%100 == 7
	stalls := i%48 == 0
	ws := c.dial(token, c.since)
	ready <- struct{}{}

	if ws == nil {
		return
	}

	if doomed {
		time.AfterFunc(time.Duration(random.IntN(6000))*time.Millisecond, func() {
			s.directory.edit(func() { s.directory.revoked[token] = true })
		})
	}

	for {
		err := c.read(ws, stalls)
		stalls = stalls && random.IntN(3) == 0
		_ = ws.Close()
		if err == nil || s.t.Failed() {
			return
		}

		s.count(err)
		if websocket.IsCloseError(err, DisconnectAccessRevoked.Code) {
			if !doomed {
				s.t.Errorf("client %d was revoked", i)
			}
			return
		}

		c.rollBack()
		ws = c.dial(token, c.since)
		if ws == nil {
			return
		}
	}
}

type stressClient struct {
	*stress
	random  *rand.Rand
	cursors bool
	repeats bool // plain ids over many partitions: events may come again
	want    int  // accounts
	since   string
	last    map[string]int // newest event of each account
	pending []string       // accounts of the events since the last cursor
	full    int            // accounts whose last event is here
	stable  int            // full, at the last cursor
	breaks  int            // how often the client may still break off by itself
}

// dial connects to any node that takes it. nil: the permission is gone.
func (c *stressClient) dial(token, since string) *websocket.Conn {
	query := "cursor=" + strconv.FormatBool(c.cursors) + "&since=" + since
	var last error
	refused := map[string]int{}
	wait := retry.Backoff{First: 200 * time.Millisecond, Max: 10 * time.Second} // as any client would

	for deadline := time.Now().Add(4 * time.Minute); time.Now().Before(deadline) && !c.t.Failed(); {
		c.mu.Lock()
		n := c.nodes[c.random.IntN(stressNodes)]
		c.mu.Unlock()

		ws, response, err := n.tryDial(token, query)
		last = err
		c.dials.Add(1)

		switch {
		case err == nil:
			return ws
		case response != nil && response.StatusCode == 401:
			return nil
		case response != nil && response.StatusCode == 410:
			c.t.Errorf("%q is gone", since)
			return nil
		case response != nil:
			why, _ := io.ReadAll(response.Body)
			refused[string(why)]++
		default:
			refused[err.Error()]++
		}

		wait.Wait(c.t.Context())
	}

	if !c.t.Failed() {
		c.t.Errorf("nobody takes a client: refused with %v, the last time with %v", refused, last)
	}

	return nil
}

var errBreak = errors.New("the client breaks off")

// read takes messages until everything has come (nil) or the connection ends.
func (c *stressClient) read(ws *websocket.Conn, stalls bool) error {
	stallAt, end := -1, -1
	if stalls {
		stallAt = c.random.IntN(200)
		// The rest would take minutes through the small TCP window.
		end = stallAt + 100
		_ = ws.NetConn().(*net.TCPConn).SetReadBuffer(4096)
	}

	for n := 0; ; n++ {
		if n == stallAt {
			<-c.published // far more has come by then than buffers hold
		}
		if n == end {
			return errBreak
		}

		_ = ws.SetReadDeadline(time.Now().Add(5 * time.Minute))
		_, data, err := ws.ReadMessage()
		if timedOut(err) {
			c.t.Errorf("nothing came for five minutes since %q, with %v", c.since, c.last)
		}
		if err != nil {
			return err
		}

		if bytes.HasPrefix(data, []byte(`{"cursor"`)) {
			c.since = string(data[len(`{"cursor":"`) : len(data)-2])
			c.pending, c.stable = c.pending[:0], c.full
			if c.full == c.want {
				return nil
			}
			continue
		}

		if !c.take(data) {
			return nil
		}
		if c.full == c.want && !c.cursors {
			return nil
		}
		if c.breaks > 0 && c.random.IntN(1000) == 0 {
			c.breaks--
			return errBreak
		}
	}
}

// timedOut reports whether a read of a WebSocket ended at its deadline. gorilla's error wraps none.
func timedOut(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}

// take checks one event: each account's come one behind the other.
func (c *stressClient) take(data []byte) bool {
	c.deliveries.Add(1)
	account := between(data, `"account_id":"`, `"`)
	n, err := strconv.Atoi(between(data, `"n":`, `,`))
	if err != nil {
		c.t.Errorf("message %s", data)
		return false
	}

	before, ok := c.last[account]
	if !ok {
		before = -1
	}

	again := c.repeats && n <= before
	if n != before+1 && !again {
		c.t.Errorf("%s: %d after %d (cursor %v, many partitions %v, since %q)", account, n, before, c.cursors,
			c.repeats, c.since)
		return false
	}

	if c.cursors {
		c.pending = append(c.pending, account)
	} else {
		c.since = between(data, `"id":"`, `"`)
	}

	if again {
		return true
	}

	c.last[account] = n
	if n == stressEvents-1 {
		c.full++
	}

	return true
}

// rollBack forgets what came after the last cursor: it will come again. What a plain id is after does
// not.
func (c *stressClient) rollBack() {
	if !c.cursors {
		return
	}

	for _, account := range c.pending {
		c.last[account]--
		if c.last[account] < 0 {
			delete(c.last, account)
		}
	}

	c.pending, c.full = c.pending[:0], c.stable
}

func between(data []byte, from, to string) string {
	start := bytes.Index(data, []byte(from)) + len(from)
	return string(data[start : start+bytes.Index(data[start:], []byte(to))])
}

func (s *stress) count(err error) {
	code := DisconnectBroken.Code
	var e *websocket.CloseError
	if errors.As(err, &e) {
		code = e.Code
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.codes[code]++
}

func (s *stress) codeCounts() map[int]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.codes
}

func openDescriptors(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("needs /proc")
	}
	return len(entries)
}
