package backend

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/event/topics"
	"trunkline/internal/fault"
	"trunkline/internal/kafka/credentials"
	"trunkline/settings"
)

// embeddedSettings returns the defaults on a data directory of the test's own,
// and a log that can be read.
func embeddedSettings(t *testing.T) (*settings.Settings, *slog.Logger, *bytes.Buffer) {
	s := settings.Default()
	s.DataDir = t.TempDir()
	var lines bytes.Buffer
	return s, slog.New(slog.NewTextHandler(&lines, nil)), &lines
}

func TestEachEmbeddedPartSaysWhatItIs(t *testing.T) {
	s, log, lines := embeddedSettings(t)
	s.Kafka.Embedded.Listen = "127.0.0.1:0"
	_, closeKafka, err := OpenKafka(t.Context(), s, nil, prometheus.NewRegistry(), log)
	if err != nil {
		t.Fatal(err)
	}

	_, closeRedis, err := OpenRedis(s, log)
	if err != nil {
		t.Fatal(err)
	}

	db, err := OpenDatabase(t.Context(), s, log)
	if err != nil {
		t.Fatal(err)
	}

	for _, close := range []func() error{closeKafka, closeRedis, db.Close} {
		if err := close(); err != nil {
			t.Error(err)
		}
	}

	for _, line := range []string{
		"embedded broker: one node, not replicated", "address=127.0.0.1:",
		"embedded redis: in memory, one node, lost at exit", "sqlite: one node, not replicated",
	} {
		if !strings.Contains(lines.String(), line) {
			t.Errorf("%q is not in\n%s", line, lines)
		}
	}
}

func TestNamedPartsSayWhereWithoutSecrets(t *testing.T) {
	s, log, lines := embeddedSettings(t)
	s.Kafka.Brokers = []string{"127.0.0.1:1", "127.0.0.1:2"}
	s.Kafka.SASL = credentials.Settings{Mechanism: "plain", Username: "u", Password: "hush"}
	s.Redis.Address, s.Redis.Password = "127.0.0.1:3", "hush"
	s.Database.URL = "postgres://u:hush@127.0.0.1:4/d?connect_timeout=1"
	_, closeKafka, err := OpenKafka(t.Context(), s, nil, prometheus.NewRegistry(), log)
	if err != nil {
		t.Fatal(err)
	}

	_, closeRedis, err := OpenRedis(s, log)
	if err != nil {
		t.Fatal(err)
	}

	for _, close := range []func() error{closeKafka, closeRedis} {
		if err := close(); err != nil {
			t.Error(err)
		}
	}

	_, err = OpenDatabase(t.Context(), s, log)
	if fault.KindOf(err) != fault.KindUnavailable {
		t.Errorf("a database that is away: %v", err)
	}

	output := lines.String() + err.Error()
	if strings.Contains(output, "hush") || !strings.Contains(output, "127.0.0.1:1,127.0.0.1:2") ||
		!strings.Contains(output, "127.0.0.1:3") {
		t.Error(output)
	}
}

func TestOneServerOnADataDirectoryAndCommandsBesideIt(t *testing.T) {
	s, log, _ := embeddedSettings(t)
	if _, _, err := OpenExistingKafka(t.Context(), s, log); fault.KindOf(err) != fault.KindNotFound ||
		!strings.Contains(err.Error(), "data_dir "+s.DataDir+" ") {
		t.Errorf("a broker where none is: %v", err)
	}
	if _, err := OpenExistingDatabase(t.Context(), s, log); fault.KindOf(err) != fault.KindNotFound ||
		!strings.Contains(err.Error(), "data_dir "+s.DataDir+" ") {
		t.Errorf("a database where none is: %v", err)
	}
	if made, err := os.ReadDir(s.DataDir); err != nil || len(made) > 0 {
		t.Errorf("made %v, %v", made, err)
	}

	alone, closeAlone, err := OpenSharedKafka(t.Context(), s, log)
	if err != nil {
		t.Fatal(err)
	}

	if err := alone.EnsureTopics(t.Context(), topics.All(2)); err != nil {
		t.Error(err)
	}
	if err := closeAlone(); err != nil {
		t.Error(err)
	}

	_, closeServer, err := OpenKafka(t.Context(), s, nil, prometheus.NewRegistry(), log)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := closeServer(); err != nil {
			t.Error(err)
		}
	}()

	if _, _, err := OpenKafka(t.Context(), s, nil, prometheus.NewRegistry(),
		log); fault.KindOf(err) != fault.KindConflict {
		t.Errorf("a second server: %v", err)
	}

	beside, closeBeside, err := OpenSharedKafka(t.Context(), s, log)
	if err != nil {
		t.Fatal(err)
	}

	if n, err := beside.Partitions(t.Context(), "cc.raw"); err != nil || n != 2 {
		t.Errorf("cc.raw has %d partitions: %v", n, err)
	}
	if err := closeBeside(); err != nil {
		t.Error(err)
	}
}
