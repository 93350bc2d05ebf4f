package fanout

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"trunkline/identity"
)

// memoryFigures are figures of queues, as a database gives them.
type memoryFigures struct {
	queues []QueueToday
	asked  []int64 // midnights, sorted
	err    error
}

func (m *memoryFigures) QueuesSince(_ context.Context, accounts []string, since int64) (found []QueueToday, err error) {
	m.asked = append(m.asked, since)
	slices.Sort(m.asked)
	for _, q := range m.queues {
		if slices.Contains(accounts, q.AccountID) {
			found = append(found, q)
		}
	}
	return found, m.err
}

func level(v float64) *float64 { return &v }

func TestTodayBeginsAtMidnightOfTheAccount(t *testing.T) {
	source := &memoryFigures{queues: []QueueToday{
		{AccountID: "utc", QueueID: "sales", Offered: 4, ServiceLevel: level(0.5)},
		{AccountID: "tokyo", QueueID: "support", Offered: 2},
	}}
	figures := figuresToday{source: source, accounts: map[string]accountFiguresToday{}}
	accounts := []identity.Account{{ID: "utc"}, {ID: "tokyo", TimeZone: "Asia/Tokyo"}, {ID: "none"}}
	now := time.Date(2026, 11, 20, 18, 0, 0, 0, time.UTC) // 03:00 of the next day in Tokyo

	read := func(at time.Time) []QueueToday {
		t.Helper()
		all, err := figures.queues(t.Context(), accounts, at)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}

	midnights := []int64{time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC).Unix(),
		time.Date(2026, 11, 20, 15, 0, 0, 0, time.UTC).Unix()}
	if got := read(now); len(got) != 2 || got[0].QueueID != "sales" || got[1].QueueID != "support" ||
		!slices.Equal(source.asked, midnights) {
		t.Errorf("%+v, asked from %v", got, source.asked)
	}

	read(now.Add(todayMaxAge / 2))
	if len(source.asked) != 2 {
		t.Errorf("asked again at once: %v", source.asked)
	}

	read(now.Add(todayMaxAge))
	if len(source.asked) != 4 {
		t.Errorf("asked %d times", len(source.asked))
	}

	// While the database is away, the last figures stay for their day.
	source.err = errors.New("away")
	later := now.Add(2 * time.Second)
	if got, err := figures.queues(t.Context(), accounts, later); err == nil || len(got) != 2 {
		t.Errorf("%+v %v", got, err)
	}

	asked := len(source.asked)
	if got, err := figures.queues(t.Context(), accounts, later.Add(todayRetryDelay/2)); err != nil || len(got) != 2 ||
		len(source.asked) != asked {
		t.Errorf("%+v %v, asked %d times more", got, err, len(source.asked)-asked)
	}
	if got, _ := figures.queues(t.Context(), accounts, later.Add(24*time.Hour)); len(got) != 0 {
		t.Errorf("figures of yesterday: %+v", got)
	}
}

func TestSnapshotsHaveTodaysServiceLevel(t *testing.T) {
	s := &Snapshot{Queues: []SnapshotQueue{{AccountID: "a", QueueID: "support", Waiting: 3}}}
	s.addFigures([]QueueToday{
		{AccountID: "a", QueueID: "support", Offered: 10, Answered: 8, Abandoned: 1, ServiceLevel: level(0.8),
			ServiceLevelStrict: level(0.7)},
		{AccountID: "a", QueueID: "sales", Offered: 1},
		{AccountID: "a", QueueID: "hidden", Offered: 1},
	}, &filter{queues: newIDSet([]string{"sales", "support"})})

	if len(s.Queues) != 2 || s.Queues[0].QueueID != "sales" || s.Queues[0].ServiceLevel != nil ||
		s.Queues[0].Agents == nil {
		t.Errorf("%+v", s.Queues)
	}
	if q := s.Queues[1]; q.Waiting != 3 || q.Offered != 10 || *q.ServiceLevel != 0.8 || *q.ServiceLevelStrict != 0.7 {
		t.Errorf("%+v", q)
	}
}
