package stats

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
	"trunkline/internal/kafka/kafkatest"
)

func newConfigs(t testing.TB, c *kafka.Cluster) *QueueConfigs {
	p := c.NewProducer(kafka.ProducerConfig{})
	t.Cleanup(func() { _ = p.Close(t.Context()) })
	return NewQueueConfigs(c, p)
}

func configOf(seconds int64, queues ...QueueThresholds) QueueConfig {
	return QueueConfig{Default: Thresholds{seconds, 5}, Queues: queues}
}

func TestAConfigurationIsInForceFromAnIntervalOn(t *testing.T) {
	c := kafkatest.OpenEmbedded(t, 1)
	configs := newConfigs(t, c)
	if got, tag, err := configs.Find(t.Context(), "acme"); err != nil || tag != `"0"` ||
		got.Default != DefaultThresholds() || got.Queues == nil {
		t.Fatalf("%+v, %s, %v", got, tag, err)
	}

	began := time.Now()
	if tag, err := configs.Update(t.Context(), "acme", configOf(30, QueueThresholds{"sales", Thresholds{60, 10}}),
		`"0"`); err != nil || tag != `"1"` {
		t.Fatalf("%s, %v", tag, err)
	}

	other := newConfigs(t, c) // another node
	if got, tag, err := other.Find(t.Context(), "acme"); err != nil || tag != `"1"` ||
		got.Default.ServiceLevelSeconds != 30 || len(got.Queues) != 1 {
		t.Fatalf("%+v, %s, %v", got, tag, err)
	}

	from := other.versions["acme"][0].EffectiveFrom
	if from%900 != 0 || from < began.Add(configLead).Unix() || from > time.Now().Add(configLead+intervalGrid).Unix() {
		t.Errorf("in force from %d", from)
	}

	for _, want := range []struct {
		account, queue string
		start          int64
		level          int64
	}{
		{"acme", "sales", from - 900, 20}, {"acme", "sales", from, 60}, {"acme", "support", from + 900, 30},
		{"other", "sales", from, 20},
	} {
		if got := other.thresholdsAt(want.account, want.queue, want.start); got.ServiceLevelSeconds != want.level {
			t.Errorf("%+v: %+v", want, got)
		}
	}
}

func TestChangesAtOnceAreVersionsOneAfterAnother(t *testing.T) {
	c := kafkatest.OpenEmbedded(t, 1)
	const nodes, each = 3, 4
	var running sync.WaitGroup
	var mu sync.Mutex
	tags := map[string]bool{}

	for n := range nodes {
		configs := newConfigs(t, c)
		running.Go(func() {
			for i := range each {
				for { // a conflict says that nothing was changed
					tag, err := configs.Update(t.Context(), "acme", configOf(int64(100*n+i)), "")
					if fault.KindOf(err) == fault.KindConflict {
						continue
					}

					mu.Lock()
					if err != nil || tags[tag] {
						t.Errorf("%s comes twice, or %v", tag, err)
					}

					tags[tag] = true
					mu.Unlock()

					break
				}
			}
		})
	}

	running.Wait()
	for version := range nodes * each {
		if !tags[fmt.Sprintf(`"%d"`, version+1)] {
			t.Errorf("version %d is missing", version+1)
		}
	}

	// Of two that name the same version one is refused.
	configs := newConfigs(t, c)
	tag := fmt.Sprintf(`"%d"`, nodes*each)
	if _, err := configs.Update(t.Context(), "acme", configOf(1), tag); err != nil {
		t.Error(err)
	}
	if _, err := newConfigs(t, c).Update(t.Context(), "acme", configOf(2),
		tag); fault.KindOf(err) != fault.KindPrecondition {
		t.Errorf("the second one: %v", err)
	}
}

func TestAWrongConfigurationIsRefusedFieldByField(t *testing.T) {
	configs := newConfigs(t, kafkatest.OpenEmbedded(t, 1))
	_, err := configs.Update(t.Context(), "acme",
		QueueConfig{Default: Thresholds{-1, 86_401}, Queues: []QueueThresholds{
			{"q", Thresholds{1, 1}}, {"q", Thresholds{1, 1}}, {"a\x00", Thresholds{}},
		}}, "")
	f := fault.As(err)
	var fields []string

	for _, one := range f.Fields {
		fields = append(fields, one.Field+" "+one.Code)
	}

	want := "[default.service_level_seconds out_of_range default.short_abandon_seconds out_of_range queues[1].queue_id taken queues[2].queue_id invalid]"
	if f.Kind != fault.KindInvalid || fmt.Sprint(fields) != want {
		t.Errorf("%v: %v", err, fields)
	}
	if _, tag, err := configs.Find(t.Context(), "acme"); err != nil || tag != `"0"` {
		t.Errorf("%s, %v", tag, err)
	}
}

func TestThePurgeOfAnAccountDeletesItsConfiguration(t *testing.T) {
	c := kafkatest.OpenEmbedded(t, 1)
	configs := newConfigs(t, c)
	for _, account := range []string{"acme", "other", "acme"} {
		if _, err := configs.Update(t.Context(), account, configOf(30), ""); err != nil {
			t.Fatal(err)
		}
	}

	for _, want := range []int{2, 0} {
		if n, err := configs.PurgeAccount(t.Context(), "acme"); err != nil || n != want {
			t.Errorf("%d, %v, want %d", n, err, want)
		}
	}

	again := newConfigs(t, c)
	for account, want := range map[string]string{"acme": `"0"`, "other": `"1"`} {
		if _, tag, err := again.Find(t.Context(), account); err != nil || tag != want {
			t.Errorf("%s: %s, %v", account, tag, err)
		}
	}
}

// A processor that takes over, and one that folds the whole log again, set the same
// thresholds in rows, although the configuration has changed since.
func TestThresholdsAreTheSameWheneverTheLogIsFolded(t *testing.T) {
	c := kafkatest.OpenEmbedded(t, 1)
	configs := newConfigs(t, c)
	if _, err := configs.Update(t.Context(), account, configOf(40, QueueThresholds{"q0", Thresholds{7, 2}}),
		""); err != nil {
		t.Fatal(err)
	}

	from := time.Unix(configs.versions[account][0].EffectiveFrom, 0)
	// Calls in the intervals before and after the change.
	var events []state.Event
	var last event.ID

	for i := range 40 {
		at := from.Add(time.Duration(i-20) * time.Minute)
		last = event.NextID(last, at.UnixMilli(), 0)
		facts := entered(fmt.Sprint("q", i%2), fmt.Sprint("c", i))
		facts.TimestampMS = at.UnixMilli()
		events = append(events, state.Event{ID: last, Account: account, Timestamp: at.Unix(), Facts: facts})
	}

	fold := func(configs *QueueConfigs) topic {
		rules := testRules()
		rules.Thresholds = configs.thresholdsAt
		f, rows := NewFold(rules), topic{}

		for i := range events {
			f.Apply(&events[i])
		}

		rows.applyFlush(f)
		return rows
	}

	want := fold(configs)
	levels := map[Thresholds]bool{}
	for key := range want {
		if k, err := parseKey(key); err == nil && k.kind == kindQueue {
			levels[configs.thresholdsAt(account, k.id.Value(), k.start)] = true
		}
	}

	if len(levels) != 3 { // the defaults, that of q0 and that of q1
		t.Fatalf("thresholds %v", levels)
	}

	produceEvents(t, c, events[:20])
	stop := start(t, c)
	await(t, c, events[:20])
	stop()

	if _, err := configs.Update(t.Context(), account, configOf(50), ""); err != nil { // for later intervals
		t.Fatal(err)
	}

	produceEvents(t, c, events[20:])
	start(t, c)
	compare(t, await(t, c, events), fold(readConfigs(t, c)))
}

// readConfigs returns configurations that have read the topic.
func readConfigs(t testing.TB, c *kafka.Cluster) *QueueConfigs {
	configs := newConfigs(t, c)
	if err := configs.refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	return configs
}
