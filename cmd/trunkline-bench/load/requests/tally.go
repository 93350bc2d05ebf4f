package requests

import (
	"maps"
	"sync"
	"time"

	"trunkline/cmd/trunkline-bench/load"
)

// Tally counts the results of an operation's requests.
type Tally struct {
	Requests uint64 // completed or timed out
	Failed   uint64 // without a response, or with an unexpected one
	Statuses map[int]uint64
	Errors   map[string]uint64 // by Name: failures without a status, and unexpected responses
	Examples map[string]string // text of the first error of each name or status
	Latency  load.Histogram
}

// Since returns the counts added after earlier, with the Examples of the whole run.
func (t *Tally) Since(earlier *Tally) *Tally {
	return &Tally{
		Requests: t.Requests - earlier.Requests, Failed: t.Failed - earlier.Failed,
		Statuses: subtractCounts(t.Statuses, earlier.Statuses), Errors: subtractCounts(t.Errors, earlier.Errors),
		Examples: t.Examples, Latency: *t.Latency.Since(&earlier.Latency),
	}
}

// Add adds the counts of o.
func (t *Tally) Add(o *Tally) {
	t.Requests += o.Requests
	t.Failed += o.Failed
	t.Statuses = addCounts(t.Statuses, o.Statuses)
	t.Errors = addCounts(t.Errors, o.Errors)
	t.Latency.Add(&o.Latency)
}

func subtractCounts[K comparable](all, earlier map[K]uint64) map[K]uint64 {
	rest := map[K]uint64{}
	for key, n := range all {
		if n > earlier[key] {
			rest[key] = n - earlier[key]
		}
	}
	return rest
}

func addCounts[K comparable](counts, other map[K]uint64) map[K]uint64 {
	sum := maps.Clone(counts)
	if sum == nil {
		sum = map[K]uint64{}
	}
	for key, n := range other {
		sum[key] += n
	}
	return sum
}

// counter counts the results of one operation.
type counter struct {
	mu  sync.Mutex
	sum Tally
}

func (c *counter) count(took time.Duration, status int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &c.sum
	if s.Statuses == nil {
		s.Statuses, s.Errors, s.Examples = map[int]uint64{}, map[string]uint64{}, map[string]string{}
	}
	s.Requests++
	s.Latency.Record(took)
	if status != 0 {
		s.Statuses[status]++
	}
	if err == nil {
		return
	}
	s.Failed++
	name := Name(err)
	s.Errors[name]++
	_, known := s.Examples[name]
	if !known {
		s.Examples[name] = err.Error()
	}
}

func (c *counter) copySum() *Tally {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.sum
	t.Statuses, t.Errors, t.Examples = maps.Clone(t.Statuses), maps.Clone(t.Errors), maps.Clone(t.Examples)
	return &t
}
