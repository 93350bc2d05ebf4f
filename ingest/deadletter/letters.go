package deadletter

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"trunkline/event"
	"trunkline/ingest/feed"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
)

// Outcome says how a letter was settled.
type Outcome string

// The outcomes.
const (
	Retried   Outcome = "retried" // sent back to its raw topic
	Discarded Outcome = "discarded"
)

// Deps has the dependencies of Letters.
type Deps struct {
	LogReader *kafka.Cluster // to read cc.dead
	Producer  *kafka.Producer
	Feeds     []feed.Config
	// WithDirectory runs work on the directory's accounts. It is called only to send back records
	// that a feed has sent.
	WithDirectory func(ctx context.Context, work func(feed.Directory) error) error
}

// Letters are the dead letters of a Kafka. It is safe for concurrent use.
type Letters struct {
	deps Deps
	mu   sync.Mutex // from looking whether letters are open until they are settled
}

// New returns the dead letters of a Kafka.
func New(deps Deps) *Letters { return &Letters{deps: deps} }

// Filter selects letters. A zero field selects all.
type Filter struct {
	Topic, Kind string
	// Sees reports whether the caller may know of the letter.
	Sees func(*Letter) bool
}

func (f *Filter) matches(l *Letter) bool {
	return (f.Topic == "" || f.Topic == l.Topic) && (f.Kind == "" || f.Kind == l.Kind) && (f.Sees == nil || f.Sees(l))
}

// List are open letters: those that were neither sent back nor discarded.
type List struct {
	Rows     []Row          // the newest, in chronological order
	Total    int            // of the letters that were read, also those without a row
	Kinds    map[string]int // their numbers by kind
	Complete bool           // false: older letters than those that were read are not counted
}

// ListOptions bound a list.
type ListOptions struct {
	Limit       int   // of rows
	NewestOf    int64 // records that are read of each partition; 0: all
	WithPayload bool  // rows have key, headers and value
}

// List reads the open letters that the filter selects.
func (s *Letters) List(ctx context.Context, filter Filter, options ListOptions) (*List, error) {
	list := &List{Kinds: map[string]int{}, Complete: true}
	err := s.eachPartition(ctx, func(partition int, first, next int64) error {
		// A list for a page reads the end of a long topic only.
		if options.NewestOf > 0 && next-first > options.NewestOf {
			first, list.Complete = next-options.NewestOf, false
		}

		return s.scanOpen(ctx, partition, first, next, func(l *Letter) {
			if !filter.matches(l) {
				return
			}

			list.Total++
			list.Kinds[l.Kind]++
			list.Rows = append(list.Rows, l.toRow(options.WithPayload))
			// Each partition is in order of time, and not all of them together: the newest are known by sorting.
			if len(list.Rows) >= 2*options.Limit {
				list.Rows = sortNewest(list.Rows, options.Limit)
			}
		})
	})
	if err != nil {
		return nil, err
	}

	list.Rows = sortNewest(list.Rows, options.Limit)
	return list, nil
}

// sortNewest returns the newest of the rows, at most limit, the oldest of them first.
func sortNewest(rows []Row, limit int) []Row {
	slices.SortStableFunc(rows, func(a, b Row) int { return a.At.Compare(b.At) })
	kept := rows[max(0, len(rows)-limit):]
	// In the same memory, so that a list does not grow with the topic.
	return append(rows[:0], kept...)
}

// Find reads one letter with its content, also one that was settled. Returns fault.KindNotFound if
// there is none or the filter does not select it.
func (s *Letters) Find(ctx context.Context, position event.Position, filter Filter) (Row, error) {
	l, err := s.read(ctx, position)
	if err != nil {
		return Row{}, err
	}
	if !filter.matches(l) {
		return Row{}, noLetterAt(position)
	}
	return l.toRow(true), nil
}

// Settle sends back or discards exactly the letters at the positions, or none if one does not exist.
// Returns fault.KindConflict for a letter that is settled already, unless again is set, and for one
// that cannot be sent back or is not of the filter's topic.
func (s *Letters) Settle(ctx context.Context, outcome Outcome, positions []event.Position, filter Filter,
	again bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	// All are looked at before any is settled.
	letters := make([]*Letter, 0, len(positions))
	for _, position := range positions {
		l, err := s.read(ctx, position)
		if err != nil {
			return err
		}

		if filter.Sees != nil && !filter.Sees(l) {
			return noLetterAt(position)
		}
		if err := checkTopic(l, outcome, filter.Topic); err != nil {
			return err
		}

		if !again {
			if err := s.checkOpen(ctx, position); err != nil {
				return err
			}
		}

		letters = append(letters, l)
	}

	return s.conclude(ctx, outcome, letters)
}

// checkTopic refuses to send back what no normalizer reads, and letters of other topics than the
// caller's.
func checkTopic(l *Letter, outcome Outcome, topic string) error {
	allowed := Topics()
	if topic != "" {
		allowed = []string{topic}
	} else if outcome == Discarded {
		return nil
	}

	if slices.Contains(allowed, l.Topic) {
		return nil
	}

	return fault.Conflict("the dead letter at %s came from %q, not from %s", l.Position, l.Topic,
		strings.Join(allowed, " or "))
}

// checkOpen returns fault.KindConflict for a letter that is settled already.
func (s *Letters) checkOpen(ctx context.Context, position event.Position) error {
	_, next, err := s.deps.LogReader.Offsets(ctx, event.TopicDead, position.Partition)
	if err != nil {
		return err
	}

	settled, err := s.outcomes(ctx, position.Partition, position.Offset+1, next)
	if err != nil {
		return err
	}

	outcome, done := settled[position.Offset]
	if done {
		return fault.Conflict("the dead letter at %s was already %s", position, outcome)
	}

	return nil
}

// SettleOpen sends back or discards the open letters that the filter selects and that were there
// when it was called, and returns their number, also with an error. With Retried, letters that
// cannot be sent back stay open.
func (s *Letters) SettleOpen(ctx context.Context, outcome Outcome, filter Filter) (settled int, err error) {
	err = s.eachPartition(ctx, func(partition int, first, next int64) error {
		s.mu.Lock() // for one partition: other accounts' requests get their turn between
		defer s.mu.Unlock()
		n, err := s.settlePartition(ctx, outcome, filter, partition, first, next)
		settled += n
		return err
	})
	return settled, err
}

const (
	// maxSettled and maxSettledBytes bound the letters that are sent back and settled at once.
	maxSettled      = 500
	maxSettledBytes = 4 << 20
)

// settlePartition settles the open letters of a partition with offsets in [from, to).
func (s *Letters) settlePartition(ctx context.Context, outcome Outcome, filter Filter, partition int,
	from, to int64) (settled int, err error) {
	var letters []*Letter
	size := 0
	flush := func() {
		if err != nil {
			return
		}

		err = s.conclude(ctx, outcome, letters)
		if err == nil {
			settled += len(letters)
		}

		letters, size = letters[:0], 0
	}

	scanErr := s.scanOpen(ctx, partition, from, to, func(l *Letter) {
		// Not kept after a failure: nothing would empty the list, and it would grow with the partition.
		if err != nil || !filter.matches(l) || checkTopic(l, outcome, filter.Topic) != nil {
			return
		}

		// The scan reuses the record's memory.
		clone := newLetter(l.record.Clone())
		letters = append(letters, &clone)
		size += l.Size
		if len(letters) == maxSettled || size > maxSettledBytes {
			flush()
		}
	})

	flush()
	if err == nil {
		err = scanErr
	}

	return settled, err
}

// conclude sends letters back, if that is the outcome, and then writes that they are settled.
func (s *Letters) conclude(ctx context.Context, outcome Outcome, letters []*Letter) error {
	if len(letters) == 0 {
		return nil
	}

	// Sent first: after a crash between the two a letter is sent twice, and none is lost.
	if outcome == Retried {
		if err := s.send(ctx, letters); err != nil {
			return err
		}
	}

	offsets := map[int][]byte{}
	for _, l := range letters {
		partition := l.Position.Partition
		offsets[partition] = append(strconv.AppendInt(offsets[partition], l.Position.Offset, 10), ' ')
	}

	var records []kafka.Record
	for partition, list := range offsets {
		records = append(records, kafka.Record{Topic: event.TopicDead, Partition: partition, Headers: []kafka.Header{
			{Key: event.HeaderSettledOutcome, Value: []byte(outcome)}, {Key: event.HeaderSettledOffsets, Value: list},
		}})
	}

	if err := s.deps.Producer.Produce(ctx, records...); err != nil {
		return fmt.Errorf("writing which dead letters are %s: %w", outcome, err)
	}

	return nil
}

// send sends the original records back. Events of feeds whose account was unknown get the account that they
// have by now; those that have none become dead letters again.
func (s *Letters) send(ctx context.Context, letters []*Letter) error {
	records := make([]kafka.Record, len(letters))
	for i, l := range letters {
		records[i] = l.original()
	}

	if err := s.findAccounts(ctx, records); err != nil {
		return fmt.Errorf("looking up the accounts of feeds: %w", err)
	}
	if err := s.deps.Producer.Produce(ctx, records...); err != nil {
		return fmt.Errorf("sending dead letters back: %w", err)
	}

	return nil
}

// findAccounts sets the keys of feeds' records.
func (s *Letters) findAccounts(ctx context.Context, records []kafka.Record) error {
	if !slices.ContainsFunc(records, func(r kafka.Record) bool { return feed.HasSent(&r) }) {
		return nil
	}

	return s.deps.WithDirectory(ctx, func(directory feed.Directory) error {
		for i := range records {
			account := feed.FindAccount(s.deps.Feeds, directory, &records[i])
			if account != "" {
				records[i].Key = []byte(account)
			}
		}

		return nil
	})
}
