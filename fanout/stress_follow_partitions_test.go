package fanout

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"trunkline/event"
	"trunkline/identity"
	"trunkline/internal/kafka"
)

// TestStressInterest is three nodes on a real Kafka and Redis, which crash, drain
// and follow and leave partitions all the time: visitors of random accounts come and
// go, accounts are created and move from group to group and back, a producer uses
// another partitioner, and partitions are added. Clients of an account, a group or
// all accounts break off and resume on any node; none may miss an event, and none
// with a cursor may get one twice. It ends after a number of deliveries or a time of
// work, whichever comes first; TRUNKLINE_STRESS_DELIVERIES sets the number, and then
// no time ends it.
func TestStressInterest(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("TRUNKLINE_STRESS_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}

	t.Logf("seed %d", seed)
	s := &interestStress{stress: newStress(t, seed, 200*time.Millisecond), target: interestTarget, limited: true,
		count:  stressPartitions,
		counts: make(map[sequence]int), group: make(map[string]string), moved: make(map[string]map[sequence]int)}

	if n, err := strconv.ParseInt(os.Getenv("TRUNKLINE_STRESS_DELIVERIES"), 10, 64); err == nil {
		s.target, s.limited = n, false
	}

	s.start()

	var clients, visitors sync.WaitGroup
	ready := make(chan struct{}, interestClients)
	for i := range interestClients {
		clients.Go(func() { s.follow(i, ready) })
	}

	for range interestClients {
		<-ready
	}

	for i := range interestVisitors {
		visitors.Go(func() { s.visit(i) })
	}

	done := make(chan struct{})
	go func() { s.produceEvents(); close(s.published) }()
	go func() { clients.Wait(); visitors.Wait(); close(done) }()
	s.trouble(max(stressTroubles, int(s.target/5000)))
	<-done
	followed := 0

	for _, n := range s.nodes {
		followed += len(n.followedPartitions.list())
	}

	s.close()
	t.Logf("%d deliveries of %d events (%d with another partitioner), %d connections, %d accounts, %d moves, %d partitions, closed with %v; %d partitions followed at the end",
		s.deliveries.Load(), s.produced, s.foreign, s.dials.Load(), len(s.group), s.moves, s.count, s.codeCounts(),
		followed)

	for code := range s.codeCounts() {
		if !slices.Contains([]int{DisconnectBroken.Code, DisconnectRestart.Code, DisconnectTooSlow.Code}, code) {
			t.Errorf("clients were closed with %d", code)
		}
	}
}

const (
	interestClients  = 36
	interestVisitors = 8
	interestGroups   = 8
	interestAccounts = 24 // at first
	interestWork     = 15 * time.Second
	interestTarget   = 40_000
)

// sequence is the events of an account in a partition, which are numbered.
type sequence struct {
	account   string
	partition int
}

type interestStress struct {
	*stress
	target   int64 // deliveries
	limited  bool  // to interestWork too
	count    int   // partitions
	produced int
	foreign  int // events of them with another partitioner
	moves    int

	state  sync.Mutex
	counts map[sequence]int            // events of each sequence so far
	group  map[string]string           // of each account
	moved  map[string]map[sequence]int // by account and group: how many events there were when it came
}

// start makes the tree and says that all partitions are complete.
func (s *interestStress) start() {
	for i := range interestAccounts {
		s.group[fmt.Sprint("account", i)] = fmt.Sprint("group", i%interestGroups)
	}
	s.plant()
	s.complete(0, s.count)
}

// plant gives the directory the accounts as they are.
func (s *interestStress) plant() {
	accounts := []identity.Account{{ID: "all", Name: "all", Domain: "all"}}
	for i := range interestGroups {
		name := fmt.Sprint("group", i)
		accounts = append(accounts, identity.Account{ID: name, Name: name, Domain: name, ParentID: "all"})
	}
	for name, group := range s.group {
		accounts = append(accounts, identity.Account{ID: name, Name: name, Domain: name, ParentID: group})
	}
	s.directory.edit(func() { s.directory.tree = identity.NewTree(accounts...) })
}

// complete says that partitions are complete from their beginning on.
func (s *interestStress) complete(from, to int) {
	var records []kafka.Record
	for p := from; p < to; p++ {
		records = append(records, placementRecord(event.AccountPartition{Partition: p}))
	}
	if err := s.producer.Produce(s.t.Context(), records...); err != nil {
		s.t.Error(err)
	}
}

func placementRecord(p event.AccountPartition) kafka.Record {
	return kafka.Record{Topic: event.TopicAccounts, Key: []byte(p.Key()), Value: p.Value()}
}

// produceEvents does what normalizers do, and changes the accounts and the partitions.
func (s *interestStress) produceEvents() {
	random := rand.New(rand.NewPCG(s.seed, 1))
	last, sources, ends := map[int]event.ID{}, map[int]int64{}, map[int]int64{}
	began := time.Now()

	for step := 0; !s.t.Failed(); step++ {
		if s.deliveries.Load() >= s.target || s.limited && time.Since(began) > interestWork {
			return
		}

		s.change(step, max(50, int(s.target/2500)), random)
		accounts := slices.Sorted(maps.Keys(s.group))
		var placements, events []kafka.Record

		for range 1 + random.IntN(40) {
			of := sequence{account: accounts[random.IntN(len(accounts))]}
			of.partition = kafka.PartitionOf([]byte(of.account), s.count)
			if random.IntN(50) == 0 { // of a producer with another partitioner
				of.partition = kafka.PartitionOf([]byte("another"+of.account), s.count)
				s.foreign++
			}

			p := of.partition
			s.state.Lock()
			n, placed := s.counts[of]
			s.counts[of]++
			s.state.Unlock()

			if !placed {
				placements = append(placements,
					placementRecord(event.AccountPartition{AccountID: of.account, Partition: p, Offset: ends[p]}))
			}

			last[p] = event.NextID(last[p], time.Now().UnixMilli(), p)
			events = append(events, stressRecord(last[p], p, sources[p], of.account, n))
			sources[p]++
		}

		if len(placements) > 0 { // durable before the events
			if err := s.producer.Produce(s.t.Context(), placements...); err != nil {
				s.t.Error(err)
				return
			}
		}

		if err := s.producer.Produce(s.t.Context(), events...); err != nil {
			s.t.Error(err)
			return
		}

		for i := range events {
			ends[events[i].Partition]++
		}

		s.produced += len(events)
		time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond) // the load, not a wait for anything
	}
}

// change creates and moves accounts, and adds partitions after every so many steps.
func (s *interestStress) change(step, growth int, random *rand.Rand) {
	if step%growth == growth-1 && s.count < 4*stressPartitions {
		s.count += 2
		s.t.Logf("%d deliveries, %d partitions", s.deliveries.Load(), s.count)
		if err := s.cluster.EnsurePartitions(s.t.Context(), event.TopicEvents, s.count); err != nil {
			s.t.Error(err)
		}
		if random.IntN(2) == 0 { // else nobody knows yet that they are complete
			s.complete(s.count-2, s.count)
		}
	}

	if step%5 != 4 {
		return
	}

	s.state.Lock()
	defer s.state.Unlock()

	group := fmt.Sprint("group", random.IntN(interestGroups))
	if random.IntN(4) == 0 && len(s.group) < 4*interestAccounts {
		s.group[fmt.Sprint("account", len(s.group))] = group
	} else {
		s.move(fmt.Sprint("account", random.IntN(len(s.group))), group)
	}

	s.plant()
}

// move moves an account to a group. The caller holds state.
func (s *interestStress) move(name, group string) {
	if s.group[name] == group {
		return
	}

	came := make(map[sequence]int)
	for of, n := range s.counts {
		if of.account == name {
			came[of] = n
		}
	}

	s.group[name], s.moved[name+"/"+group] = group, came
	s.moves++
}

// interestClient checks the events of one view: an account, a group or "all".
type interestClient struct {
	stressClient
	view string
	got  map[sequence]int // the number of the newest event
	kept map[sequence]int // got at the last cursor
	most map[sequence]int // got, with what came after the last cursor and comes again
	any  bool             // it began somewhere
}

// sees reports whether an account is in the view. The caller holds state.
func (s *interestStress) sees(view, account string) bool {
	return view == "all" || view == account || view == s.group[account]
}

// take checks an event: the events of a sequence come one behind the other, from the
// first, or from one that was not after the account came into the view the last time.
func (s *interestStress) take(c *interestClient, data []byte) bool {
	of := sequence{account: between(data, `"account_id":"`, `"`)}
	id, err := event.ParseID(between(data, `"id":"`, `"`))
	n, err2 := strconv.Atoi(between(data, `"n":`, `,`))
	if err := cmp.Or(err, err2); err != nil {
		s.t.Errorf("message %s", data)
		return false
	}

	of.partition = id.Partition()
	before, begun := c.got[of]
	switch {
	case begun && n == before+1 || c.any && !begun:
	case !c.cursors && begun && n <= before: // a plain id
		c.since = id.String()
		return true
	default:
		s.state.Lock()
		from := s.moved[of.account+"/"+c.view][of]
		s.state.Unlock()

		if begun && n <= before || n > from {
			s.t.Errorf("%s in partition %d: %d after %d (begun %v, view %s, came at %d, cursor %v, since %q)",
				of.account, of.partition, n, before, begun, c.view, from, c.cursors, c.since)
			return false
		}
	}

	if most, ok := c.most[of]; !ok || n > most { // else it came again behind a cursor
		s.deliveries.Add(1)
		c.most[of] = n
	}

	c.got[of] = n
	if !c.cursors {
		c.since = id.String()
	}

	return true
}

// lacks reports whether a client is owed events of a sequence of n. One that its
// view has got may be without events since. The caller holds state.
func (s *interestStress) lacks(c *interestClient, of sequence, n int) bool {
	last, begun := c.got[of]
	if !begun {
		last = -1
	}
	last = max(last, s.moved[of.account+"/"+c.view][of]-1)
	return s.sees(c.view, of.account) && last < n-1
}

// hasAll reports whether a client has the newest event of all sequences that its
// view has now.
func (s *interestStress) hasAll(c *interestClient) bool {
	s.state.Lock()
	defer s.state.Unlock()
	for of, n := range s.counts {
		if s.lacks(c, of, n) {
			return false
		}
	}
	return true
}

// follow is a client that begins with the earliest event and reads until it has
// everything.
func (s *interestStress) follow(i int, ready chan<- struct{}) {
	c := &interestClient{stressClient: stressClient{stress: s.stress, since: Earliest, breaks: 30,
		random: rand.New(rand.NewPCG(s.seed, uint64(100+i))), cursors: i%4 != 0}, got: make(map[sequence]int),
		most: make(map[sequence]int)}
	if c.cursors { // the others get some seconds again each time
		c.breaks = max(c.breaks, int(s.target/1000))
	}

	switch i % 6 {
	case 0:
		c.view = "all"
	case 1, 2, 3:
		c.view = fmt.Sprint("group", c.random.IntN(interestGroups))
	default:
		c.view = fmt.Sprint("account", c.random.IntN(interestAccounts))
	}

	token := s.directory.token(c.view, nil, nil)
	if i%6 == 4 {
		token = s.directory.token("all", []string{c.view}, nil)
	}

	ws := c.dial(token, c.since)
	ready <- struct{}{}
	for ws != nil {
		err := s.read(c, ws)
		_ = ws.Close()
		if err == nil || s.t.Failed() {
			return
		}

		s.stress.count(err)
		if c.cursors {
			c.got = maps.Clone(c.kept)
			if c.got == nil {
				c.got = make(map[sequence]int)
			}
		}

		time.Sleep(time.Duration(c.random.IntN(300)) * time.Millisecond) // so that streams end now and then
		ws = c.dial(token, c.since)
	}
}

// read takes messages until everything has come (nil) or the connection ends.
func (s *interestStress) read(c *interestClient, ws *websocket.Conn) error {
	messages, failed := make(chan []byte, 64), make(chan error, 1)
	go func() {
		for {
			_, data, err := ws.ReadMessage()
			if err != nil {
				failed <- err
				close(messages)
				return
			}

			messages <- data
		}
	}()
	defer func() {
		_ = ws.Close()
		for range messages {
		}
	}()

	heard, placed := time.Now(), !c.cursors
	for {
		select {
		case data, ok := <-messages:
			if !ok {
				return <-failed
			}

			heard = time.Now()
			if bytes.HasPrefix(data, []byte(`{"cursor"`)) {
				c.since, c.kept, placed = between(data, `{"cursor":"`, `"`), maps.Clone(c.got), true
				continue
			}
			if !s.take(c, data) {
				return nil
			}
			if c.breaks > 0 && placed && c.random.IntN(200) == 0 { // else it would get no further
				c.breaks--
				return errBreak
			}
		case <-time.After(50 * time.Millisecond):
			select {
			case <-s.published:
				if s.hasAll(c) {
					return nil
				}
				if time.Since(heard) > 2*time.Minute {
					s.reportMissing(c)
					return nil
				}
			default:
			}
		}
	}
}

// reportMissing reports the events that a client lacks.
func (s *interestStress) reportMissing(c *interestClient) {
	s.state.Lock()
	defer s.state.Unlock()
	for of, n := range s.counts {
		if last, ok := c.got[of]; s.lacks(c, of, n) {
			s.t.Errorf("view %s (cursor %v, since %q): of %d events of %s in partition %d the last is %d (%v)",
				c.view, c.cursors, c.since, n, of.account, of.partition, last, ok)
		}
	}
}

// visit connects to random accounts and groups, from now on, and leaves again, so that
// nodes follow and leave partitions.
func (s *interestStress) visit(i int) {
	random := rand.New(rand.NewPCG(s.seed, uint64(10_000+i)))
	for !s.t.Failed() {
		select {
		case <-s.published:
			return
		default:
		}

		s.state.Lock()
		view := fmt.Sprint("account", random.IntN(len(s.group)))
		s.state.Unlock()

		if random.IntN(4) == 0 {
			view = fmt.Sprint("group", random.IntN(interestGroups))
		}

		c := &interestClient{stressClient: stressClient{stress: s.stress, random: random}, view: view, any: true,
			got: make(map[sequence]int), most: make(map[sequence]int)}
		ws := c.dial(s.directory.token(view, nil, nil), "")
		if ws == nil {
			return
		}

		until := time.Now().Add(time.Duration(random.IntN(1000)) * time.Millisecond)
		_ = ws.SetReadDeadline(until)
		for {
			_, data, err := ws.ReadMessage()
			if err != nil {
				if !timedOut(err) {
					s.stress.count(err)
				}
				break
			}

			if !s.take(c, data) {
				break
			}
		}

		_ = ws.Close()
	}
}
