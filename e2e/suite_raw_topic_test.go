package e2e

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"trunkline/internal/kafka"
)

// produce produces records to the raw topic without Trunkline's producer.
func (c *cluster) produce(t testing.TB, records ...kafka.Record) {
	t.Helper()
	producer := c.kafka(t).NewProducer(kafka.ProducerConfig{})
	for i := range records {
		records[i].Topic, records[i].Partition = "cc.raw", kafka.AnyPartition
	}
	err := producer.Produce(t.Context(), records...)
	if err := errors.Join(err, producer.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) testRawTopic(t *testing.T) {
	w := c.createAccountAndUser(t, "raw", "demo")
	n := c.lastChannelNode()
	s := n.subscribe(t, subscription{paths: apiPaths, token: n.login(t, apiPaths, w)})
	values := []struct{ value, format, kind string }{
		{`{"Account-ID":"raw","Type":"svc_cc_queue_on_call_event","Queue-ID":"q"}`, "svc.cc",
			"svc_cc_queue_on_call_event"},
		{`{"type":"AGENT_LOGIN","account_id":"raw","data":{"agent":"a"}}`, "generic", "AGENT_LOGIN"},
		{`{"Event-Name":"CUSTOM","Core-UUID":"c","Event-Subclass":"callcenter::info","CC-Action":"agent-offering"}`,
			"freeswitch.callcenter", "svc_cc_queue_on_call_event"},
		{`{"Event-Name":"CHANNEL_CREATE","Core-UUID":"c","Unique-ID":"u"}`, "freeswitch.event", "AGENT_CUSTOM_EVENT"},
		{`{"Event-Category":"call_event","Event-Name":"CHANNEL_ANSWER","Call-ID":"c","Custom-Channel-Vars":{"Account-ID":"raw"}}`,
			"kazoo.call_event", "AGENT_CUSTOM_EVENT"},
		{`{"account_id":"raw","what":"ever"}`, "unknown", "AGENT_CUSTOM_EVENT"},
	}
	var records []kafka.Record

	for _, v := range values {
		records = append(records, kafka.Record{Key: []byte("raw"), Value: []byte(v.value)})
	}

	c.produce(t, records...)
	got := s.awaitCount(t, len(values))
	for i, v := range values {
		e := got[i]
		if !hasRecord(e.Data, v.value) || e.AccountID != "raw" || e.Metadata.OriginalFormat != v.format ||
			e.Metadata.Source != "kafka" {
			t.Errorf("%s\nbecame %s", v.value, s.texts()[i])
		}
		if e.Type != v.kind {
			t.Errorf("%s became %s, want %s", v.value, e.Type, v.kind)
		}
	}
}

// testKcat produces records with kcat.
func (c *cluster) testKcat(t *testing.T) {
	path, err := exec.LookPath("kcat")
	if err != nil {
		skipMissingTool(t, "kcat is not installed")
	}

	w := c.createAccountAndUser(t, "kcat", "demo")
	n := c.lastChannelNode()
	s := n.subscribe(t, subscription{paths: apiPaths, token: n.login(t, apiPaths, w)})
	want := readFile(t, capturedFiles["callcenter"])
	cmd := exec.CommandContext(t.Context(), path, "-P", "-b", c.brokers[0], "-t", c.prefix+"cc.raw", "-k", "kcat",
		"-X", "acks=all", "-X", "message.max.bytes=1000000")
	cmd.Stdin = strings.NewReader(want)

	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("kcat: %v: %s", err, output)
	}

	// kcat has another partitioner, but maps each key to one partition.
	got := s.awaitCount(t, len(lines(want)))
	for i, line := range lines(want) {
		if !hasRecord(got[i].Data, line) {
			t.Fatalf("event %d is\n%s\nwant\n%s", i, got[i].Data, line)
		}
	}
}
