package fanout

import (
	"context"
	"math"

	"trunkline/event"
)

// merge delivers the events between the sources' positions and bounds. With wait it
// pauses while the client's queue is half full.
func (r *replay) merge(ctx context.Context, load func(context.Context, *replaySource) error, wait bool) error {
	r.heap = r.heap[:0]
	for _, s := range r.sources {
		found, err := r.seekNext(ctx, s, load)
		if err != nil {
			return err
		}

		if found {
			r.heap = append(r.heap, s)
		}
	}

	for i := len(r.heap)/2 - 1; i >= 0; i-- {
		r.siftDown(i)
	}

	for len(r.heap) > 0 {
		s, next := r.heap[0], r.secondHead()
		found, err := true, error(nil)
		// While its messages come before those of the others, no step of the heap is needed.
		for found && s.head <= next {
			if len(s.frames) > 0 {
				if err := r.deliver(ctx, s, wait); err != nil {
					return err
				}
			} // the frames were released while it waited: find the same one again

			found, err = r.seekNext(ctx, s, load)
			if err != nil {
				return err
			}
		}

		if !found {
			last := len(r.heap) - 1
			r.heap[0], r.heap[last] = r.heap[last], nil
			r.heap = r.heap[:last]
		}

		if len(r.heap) > 1 {
			r.siftDown(0)
		}
	}

	return nil
}

// secondHead returns the lowest head of all sources except the first.
func (r *replay) secondHead() event.ID {
	next := event.ID(math.MaxInt64)
	// In a heap, the second lowest is one of the two below the first.
	for _, s := range r.heap[1:max(1, min(3, len(r.heap)))] {
		next = min(next, s.head)
	}
	return next
}

// siftDown moves a source down the heap to its place.
func (r *replay) siftDown(i int) {
	for {
		low := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(r.heap); child++ {
			if r.heap[child].head < r.heap[low].head {
				low = child
			}
		}

		if low == i {
			return
		}

		r.heap[i], r.heap[low] = r.heap[low], r.heap[i]
		i = low
	}
}

// seekNext moves the source to the subscriber's next message. found is false if there is
// none below the bound.
func (r *replay) seekNext(ctx context.Context, s *replaySource,
	load func(context.Context, *replaySource) error) (found bool, err error) {
	for s.position.next < s.roundEnd.Offset {
		if s.position.next >= s.upTo {
			if err := load(ctx, s); err != nil {
				return false, err
			}
		}

		for i := range s.frames {
			m := &s.frames[i]
			if m.offset >= s.roundEnd.Offset {
				break
			}
			if !s.isRepeat(m) && m.id > s.after && r.filter.matches(m, r.tree) {
				s.frames, s.position.next, s.head, s.filterVersion = s.frames[i:], m.offset, m.id, r.filterVersion
				return true, nil
			}

			s.advancePast(m)
		}

		s.frames, s.position.next = nil, min(s.upTo, s.roundEnd.Offset)
		s.upTo = s.position.next
	}

	return false, nil
}

func (s *replaySource) isRepeat(m *frame) bool {
	return m.isRepeat || m.rawPosition >= 0 && m.rawPosition <= s.position.source
}

// advancePast moves the source to the position after m.
func (s *replaySource) advancePast(m *frame) {
	s.position = position{m.offset + 1, max(s.position.source, m.rawPosition), m.epoch}
}
