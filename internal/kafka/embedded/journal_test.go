package embedded

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	kafkago "github.com/segmentio/kafka-go"
)

// TestJournalIsReplayed replays journals over what a crash may leave of the log's files.
func TestJournalIsReplayed(t *testing.T) {
	record := func(generation uint64, name string, position int64, content string) []byte {
		return appendRecord(nil, generation, name, position, []byte(content))
	}
	whole := bytes.Join(
		[][]byte{record(7, "p/0.dat", 0, "one "), record(7, "p/0.dat", 4, "two "), record(7, "p/0.dat", 8, "three")},
		nil)
	damaged := bytes.Clone(whole)
	damaged[len(damaged)-1] ^= 1

	for name, test := range map[string]struct {
		journals [2][]byte
		before   string // p/0.dat; empty: missing
		after    string
	}{
		"the file is lost":                  {[2][]byte{whole}, "", "one two three"},
		"the file is whole":                 {[2][]byte{whole}, "one two three", "one two three"},
		"the file is cut":                   {[2][]byte{whole}, "one t", "one two three"},
		"the file has garbage":              {[2][]byte{whole}, "one xxx \x00\x00", "one two three"},
		"the file has what nobody was told": {[2][]byte{whole}, "one two threefour", "one two three"},
		"the last record is torn":           {[2][]byte{whole[:len(whole)-1]}, "one two thr", "one two "},
		"the last record is damaged":        {[2][]byte{damaged}, "", "one two "},
		"records of an earlier turn follow": {[2][]byte{append(record(9, "p/0.dat", 13, " four"), whole...)},
			"one two three", "one two three four"},
		"the newer file is the first": {[2][]byte{record(8, "p/0.dat", 13, " four"), whole}, "",
			"one two three four"},
		"the newer file is the second": {[2][]byte{whole, record(8, "p/0.dat", 13, " four")}, "",
			"one two three four"},
		"the topic was made anew": {[2][]byte{append(bytes.Clone(whole),
			record(7, "p/0.dat", 0, "new")...)}, "one two three", "new"},
		"the file was trimmed":                {[2][]byte{record(7, "p/0.dat", 4, "two")}, "", ""},
		"the file was cut by somebody":        {[2][]byte{record(7, "p/0.dat", 4, "two")}, "o", "o"},
		"the name leads out of the directory": {[2][]byte{record(7, "../p/0.dat", 0, "two")}, "", ""},
		"nothing":                             {[2][]byte{}, "one", "one"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "log", "p", "0.dat")
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}

			if test.before != "" {
				if err := os.WriteFile(path, []byte(test.before), 0o644); err != nil {
					t.Fatal(err)
				}
			}

			for i, content := range test.journals {
				if err := os.WriteFile(filepath.Join(dir, journalName(i)), content, 0o600); err != nil {
					t.Fatal(err)
				}
			}

			for range 2 { // a crash while it is replayed
				if err := replayJournal(dir, filepath.Join(dir, "log"), quiet()); err != nil {
					t.Fatal(err)
				}
			}

			got, err := os.ReadFile(path)
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}

			if string(got) != test.after {
				t.Errorf("the file has %q, want %q", got, test.after)
			}
			if _, err := os.Stat(filepath.Join(dir, "p")); err == nil {
				t.Error("something was written outside the directory")
			}
		})
	}
}

// TestATopicThatWasDeletedStaysDeleted loses the power after a topic was deleted whose records
// are in the journal, and creates it again.
func TestATopicThatWasDeletedStaysDeleted(t *testing.T) {
	b := openBroker(t, Config{})
	create := func(b *Broker) {
		t.Helper()
		if err := b.cluster.CreateTopic("t", 1, nil); err != nil {
			t.Fatal(err)
		}
	}

	create(b)
	d := watchSyncs(t, b)
	if err := tryWrite(t, b, "t"); err != nil {
		t.Fatal(err)
	}

	transport := &kafkago.Transport{Dial: b.Dial}
	defer transport.CloseIdleConnections()

	client := &kafkago.Client{Addr: kafkago.TCP(Address), Transport: transport}
	res, err := client.DeleteTopics(t.Context(), &kafkago.DeleteTopicsRequest{Topics: []string{"t"}})
	if err != nil || res.Errors["t"] != nil {
		t.Fatal(err, res)
	}

	create(b)
	if err := tryWrite(t, b, "t"); err != nil { // found in the new files
		t.Fatal(err)
	}

	left := filepath.Join(t.TempDir(), "left")
	d.losePower(t, left, rand.New(rand.NewPCG(1, 1)))
	b = openBroker(t, Config{Dir: left})
	if info := b.cluster.PartitionInfo("t", 0); info.HighWatermark != 1 {
		t.Errorf("the new topic has %d records, want 1", info.HighWatermark)
	}
}

func FuzzJournal(f *testing.F) {
	f.Add(appendRecord(nil, 1, "partitions/t-0/0.dat", 0, []byte("records")))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, size, ok := parseRecord(b)
		if !ok {
			return
		}
		if again := appendRecord(nil, r.generation, r.name, r.position, r.content); !bytes.Equal(again, b[:size]) {
			t.Errorf("%q is parsed as %+v", b, r)
		}
	})
}
