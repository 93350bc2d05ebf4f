package kafka

import (
	"encoding/binary"
	"testing"
	"time"
)

// produced returns a broker's answer to a batch, stamped with its time.
func produced(stamped int64) []byte {
	b := binary.BigEndian.AppendUint32(nil, 1)
	b = append(b, 0, 1, 't')
	b = binary.BigEndian.AppendUint32(b, 1)
	b = append(b, 0, 0, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint64(b, 7) // base offset
	b = binary.BigEndian.AppendUint64(b, uint64(stamped))
	b = binary.BigEndian.AppendUint64(b, 0) // log start
	return append(b, 0, 0, 0, 0)            // throttle
}

func TestABrokersStampsTellItsClock(t *testing.T) {
	asked := time.UnixMilli(1_800_000_000_000)
	answered := asked.Add(40 * time.Millisecond)
	for name, tc := range map[string]struct {
		at    time.Duration // of the broker's clock, from asked
		ahead time.Duration
	}{
		"it agrees":            {20 * time.Millisecond, 0},
		"as early as it can":   {0, 0},
		"as late as it can":    {40 * time.Millisecond, 0},
		"an hour ahead":        {time.Hour, time.Hour - 40*time.Millisecond},
		"three seconds behind": {-3 * time.Second, -3*time.Second + time.Millisecond},
	} {
		answer := readProduceResponse(produced(asked.Add(tc.at).UnixMilli()), produceTarget{"t", 0})[0]
		if answer.err != nil {
			t.Fatal(answer.err)
		}

		c := &Cluster{}
		c.clock.observe(asked, answered, answer.appendTime)
		if ahead, err := c.ClockAhead(t.Context()); err != nil || ahead != tc.ahead {
			t.Errorf("%s: ahead by %v, want %v: %v", name, ahead, tc.ahead, err)
		}
	}

	answer := readProduceResponse(produced(-1), produceTarget{"t", 0})[0]
	if answer.err != nil {
		t.Fatal(answer.err)
	}

	c := &Cluster{}
	c.clock.observe(asked, answered, answer.appendTime)
	if _, err := c.ClockAhead(t.Context()); err == nil {
		t.Error("a producer's own stamp is taken for the broker's")
	}
}
