package fanout

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"

	"trunkline/event"
	"trunkline/internal/kafka"
)

// offsetLookup looks up offsets for clients that resume. Concurrent equal
// look-ups share one request to Kafka, and results are cached for a short time.
type offsetLookup struct {
	log    Log
	flight singleflight.Group

	mu         sync.Mutex
	generation int // number of calls of clear
	answers    map[string]offsetAnswer
	swept      int // answers left after the last removal of expired ones
}

// offsetAnswer has what a question asked for: one or two numbers, offsets but for normalizedBefore.
type offsetAnswer struct {
	first, second int64
	expires       time.Time
}

// Times for which results are cached. Bounds and epochs change as the log
// grows; the offset at a past time does not.
const (
	boundsTTL = 200 * time.Millisecond
	epochTTL  = 5 * time.Second
	timeTTL   = time.Minute
)

// lookupTimeout bounds one look-up, which continues after its first caller has returned.
const lookupTimeout = 5 * time.Second

// bounds returns the first offset of a partition and the offset of its next record, at
// most boundsTTL old.
func (l *offsetLookup) bounds(ctx context.Context, partition int) (first, next int64, err error) {
	return l.cachedLookup(ctx, "bounds", partition, 0, boundsTTL, func(ctx context.Context) (int64, int64, error) {
		return l.log.Offsets(ctx, event.TopicEvents, partition)
	})
}

// atTime returns the offset of the first record whose timestamp is at or after t.
func (l *offsetLookup) atTime(ctx context.Context, partition int, t time.Time) (int64, error) {
	offset, _, err := l.cachedLookup(ctx, "at", partition, t.UnixMilli(), timeTTL,
		func(ctx context.Context) (int64, int64, error) {
			offset, err := l.log.OffsetAt(ctx, event.TopicEvents, partition, t)
			return offset, 0, err
		})
	return offset, err
}

// lookUpEpochEnd returns the offset after the last record of a leader epoch; -1 when
// the log has no record of it.
func (l *offsetLookup) lookUpEpochEnd(ctx context.Context, partition int, epoch int32) (int64, error) {
	end, _, err := l.cachedLookup(ctx, "epoch", partition, int64(epoch), epochTTL,
		func(ctx context.Context) (int64, int64, error) {
			end, err := l.log.EpochEnd(ctx, event.TopicEvents, partition, epoch)
			// Kafka answers with an earlier epoch if the log has no record of this one.
			if err == nil && end.LeaderEpoch != epoch {
				end.Offset = -1
			}
			return end.Offset, 0, err
		})
	return end, err
}

// normalizedBefore returns when the record before offset was normalized. ok is false when there is
// no such record or it has no processed_at.
func (l *offsetLookup) normalizedBefore(ctx context.Context, partition int,
	offset int64) (at time.Time, ok bool, err error) {
	seconds, known, err := l.cachedLookup(ctx, "before", partition, offset, timeTTL,
		func(ctx context.Context) (int64, int64, error) {
			if offset == 0 {
				return 0, 0, nil
			}

			r := readEvents(l.log, partition, kafka.AtOffset(offset-1))
			defer r.Close()

			records, err := r.Read(ctx)
			if _, ok := errors.AsType[*kafka.GapError](err); ok {
				return 0, 0, nil
			}
			if err != nil || records[0].Offset >= offset {
				return 0, 0, err
			}

			at, ok := processedAt(records[0].Value)
			if !ok {
				return 0, 0, nil
			}

			return at.Unix(), 1, nil
		})

	return time.Unix(seconds, 0), known == 1, err
}

func (l *offsetLookup) cachedLookup(ctx context.Context, question string, partition int, of int64, life time.Duration,
	answer func(context.Context) (a, b int64, err error)) (a, b int64, err error) {
	key := question + "/" + strconv.Itoa(partition) + "/" + strconv.FormatInt(of, 10)
	kept, ok, cleared := l.cached(key)
	if ok {
		return kept.first, kept.second, nil
	}

	// With the generation, so that a question after clear does not join one of before.
	done := l.flight.DoChan(strconv.Itoa(cleared)+"/"+key, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupTimeout)
		defer cancel()

		a, b, err := answer(ctx)
		if err != nil {
			return offsetAnswer{}, err
		}

		found := offsetAnswer{a, b, time.Now().Add(life)}
		l.cache(key, found, cleared)
		return found, nil
	})

	select {
	case r := <-done:
		found := r.Val.(offsetAnswer)
		return found.first, found.second, r.Err
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	}
}

func (l *offsetLookup) cached(key string) (kept offsetAnswer, ok bool, cleared int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept, ok = l.answers[key]
	return kept, ok && time.Now().Before(kept.expires), l.generation
}

// cache stores an answer, unless clear was called since its question. It removes
// expired answers each time their number has doubled.
func (l *offsetLookup) cache(key string, answer offsetAnswer, cleared int) {
	l.mu.Lock()
	defer l.mu.Unlock()

	if cleared != l.generation {
		return
	}
	if l.answers == nil {
		l.answers = make(map[string]offsetAnswer)
	}

	l.answers[key] = answer
	if len(l.answers) < 2*l.swept+4096 {
		return
	}

	now := time.Now()
	for key, kept := range l.answers {
		if now.After(kept.expires) {
			delete(l.answers, key)
		}
	}

	l.swept = len(l.answers)
}

// clear removes all results, when the log may have been truncated or recreated.
// Questions after it do not get answers to questions before it.
func (l *offsetLookup) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answers, l.swept = nil, 0
	l.generation++
}

// maxConcurrentLookups bounds the concurrent look-ups of one client.
const maxConcurrentLookups = 16

// forEachStart calls look for every start, several at a time, and returns the first
// error.
func forEachStart(ctx context.Context, starts []*replayStart, look func(context.Context, *replayStart) error) error {
	if len(starts) == 0 {
		return nil
	}
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(maxConcurrentLookups)
	for _, s := range starts {
		all.Go(func() error { return look(ctx, s) })
	}
	return all.Wait()
}
